package guard

import (
	"bytes"
	"strings"
)

// maxSecret bounds a secret, with everything before and behind it that decides
// whether it is one, in bytes from its trigger on.
const maxSecret = 32 << 10

// A secret is a well-known form of credential. Its trigger is a text that every
// one of them has. Extent looks at the trigger at b[i] and returns where the part
// to mask begins and ends, not before i. It looks at no more than the byte before
// i and maxSecret bytes from i on.
type secret struct {
	name    string
	trigger string
	bytes   []byte // of trigger
	extent  func(b []byte, i int) (start, end int, ok bool)
}

// judged is how much of a long value decides whether it is a secret. A text full
// of triggers must not cost a long look at each of them; what is masked is not
// looked at again.
const judged = 512

// Sets of characters that tokens are made of.
const (
	digits   = "0123456789"
	lower    = "abcdefghijklmnopqrstuvwxyz"
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum    = digits + lower + upper
	hexa     = digits + "abcdefABCDEF"
	urlSafe  = alnum + "_-"
	anyToken = alnum + "._~+/=-"
)

// secrets is sorted so that a longer trigger comes before a shorter one that it
// begins with.
var secrets = []secret{
	token("anthropic-key", "sk-ant-", urlSafe, 20, 300, nil),
	token("openrouter-key", "sk-or-v1-", hexa, 32, 128, nil),
	token("openai-key", "sk-", urlSafe, 20, 300, random),
	token("stripe-key", "sk_live_", alnum, 16, 300, nil),
	token("stripe-key", "sk_test_", alnum, 16, 300, nil),
	token("stripe-key", "rk_live_", alnum, 16, 300, nil),
	token("webhook-secret", "whsec_", alnum+"+/=", 24, 300, nil),
	token("github-token", "ghp_", alnum, 36, 255, nil),
	token("github-token", "gho_", alnum, 36, 255, nil),
	token("github-token", "ghu_", alnum, 36, 255, nil),
	token("github-token", "ghs_", alnum, 36, 255, nil),
	token("github-token", "ghr_", alnum, 36, 255, nil),
	token("github-token", "github_pat_", alnum+"_", 22, 255, nil),
	token("gitlab-token", "glpat-", urlSafe+".", 20, 300, nil),
	token("slack-token", "xoxb-", alnum+"-", 20, 300, nil),
	token("slack-token", "xoxp-", alnum+"-", 20, 300, nil),
	token("slack-token", "xoxa-", alnum+"-", 20, 300, nil),
	token("slack-token", "xoxs-", alnum+"-", 20, 300, nil),
	token("slack-token", "xapp-", alnum+"-", 20, 300, nil),
	token("slack-webhook", "hooks.slack.com/services/", alnum+"/", 30, 200, nil),
	token("aws-key", "AKIA", upper+digits, 16, 16, nil),
	token("aws-key", "ASIA", upper+digits, 16, 16, nil),
	token("google-key", "AIza", urlSafe, 35, 35, nil),
	token("google-token", "ya29.", urlSafe+".", 20, judged, nil),
	token("google-secret", "GOCSPX-", urlSafe, 20, 64, nil),
	token("npm-token", "npm_", alnum, 36, 36, nil),
	token("pypi-token", "pypi-AgE", urlSafe, 50, 500, nil),
	token("huggingface-token", "hf_", alnum, 30, 64, nil),
	token("sendgrid-key", "SG.", urlSafe+".", 60, 90, nil),
	token("groq-key", "gsk_", alnum, 40, 100, nil),
	token("xai-key", "xai-", alnum, 60, 120, nil),
	token("perplexity-key", "pplx-", alnum, 40, 100, nil),
	token("replicate-token", "r8_", alnum, 37, 37, nil),
	token("digitalocean-token", "dop_v1_", hexa, 64, 64, nil),
	token("shopify-token", "shpat_", hexa, 32, 32, nil),
	token("databricks-token", "dapi", hexa, 32, 32, nil),
	token("linear-key", "lin_api_", alnum, 32, 64, nil),
	token("tailscale-key", "tskey-", alnum+"-", 20, 100, nil),
	token("vault-token", "hvs.", urlSafe, 24, 300, nil),
	token("age-key", "AGE-SECRET-KEY-1", upper+digits, 58, 58, nil),
	after("azure-key", "AccountKey=", alnum+"+/=", 44, 100, nil),
	after("bearer-token", "Bearer ", anyToken, 20, judged, random),
	after("bearer-token", "bearer ", anyToken, 20, judged, random),
	after("basic-auth", "Authorization: Basic ", alnum+"+/=", 8, judged, nil),
	after("basic-auth", "authorization: Basic ", alnum+"+/=", 8, judged, nil),
	{"jwt", "eyJ", []byte("eyJ"), jwt},
	{"private-key", "-----BEGIN ", []byte("-----BEGIN "), privateKey},
	{"password", "://", []byte("://"), urlPassword},
	assigned("API_KEY="), assigned("ACCESS_KEY="), assigned("SECRET_KEY="), assigned("PRIVATE_KEY="), assigned("AUTH_KEY="),
	assigned("_TOKEN="), assigned("_SECRET="), assigned("PASSWORD="), assigned("_PASSWD="),
	{"aws-secret", "aws_secret_access_key", []byte("aws_secret_access_key"), awsSecret},
}

// token is a credential that begins with its trigger: behind it come min to max
// characters of a set and then none, and before it no letter or digit. With a max
// of judged there is no limit but that of a secret. ok, when it is not nil, has to
// like it as well.
func token(name, trigger, set string, min, max int, ok func([]byte) bool) secret {
	table := tableOf(set)
	return secret{name, trigger, []byte(trigger), func(b []byte, i int) (int, int, bool) {
		if i > 0 && isWord(b[i-1]) {
			return 0, 0, false
		}
		from := i + len(trigger)
		n := run(b[from:], &table, max+1)
		if n < min || n > max && max < judged || ok != nil && !ok(b[from:from+n]) {
			return 0, 0, false
		}
		if max == judged {
			n = run(b[from:], &table, maxSecret/2)
		}
		return i, from + n, true
	}}
}

// after is a credential that stands behind its trigger, which stays.
func after(name, trigger, set string, min, max int, ok func([]byte) bool) secret {
	s := token(name, trigger, set, min, max, ok)
	extent := s.extent
	s.extent = func(b []byte, i int) (int, int, bool) {
		_, end, found := extent(b, i)
		return i + len(trigger), end, found
	}
	return s
}

// random reports whether a token looks made by a machine, rather than like the
// name of a style class: it has digits, and capitals beside small letters or
// great length without a hyphen.
func random(b []byte) bool {
	has := func(set string) bool { return bytes.ContainsAny(b, set) }
	return has(digits) && (has(upper) && has(lower) || len(b) >= 32 && !has("-"))
}

// jwt matches three parts of base64 with dots between them.
func jwt(b []byte, i int) (int, int, bool) {
	if i > 0 && urlSafeTable[b[i-1]] {
		return 0, 0, false
	}
	end := i
	for part := range 3 {
		n := run(b[end:], &urlSafeTable, maxSecret/4)
		if n < 10 || n == maxSecret/4 {
			return 0, 0, false
		}
		end += n
		if part < 2 {
			if end >= len(b) || b[end] != '.' {
				return 0, 0, false
			}
			end++
		}
	}
	return i, end, true
}

// privateKey matches a PEM block, also one that was cut off or that stands in a
// string with \n for its line ends.
func privateKey(b []byte, i int) (int, int, bool) {
	b = b[:min(len(b), i+maxSecret)]
	head := b[i:min(len(b), i+80)]
	at := bytes.Index(head, []byte("PRIVATE KEY"))
	if at < 0 || bytes.ContainsAny(head[:at], "\n\r") {
		return 0, 0, false
	}
	from := i + at + len("PRIVATE KEY")
	from += run(b[from:], &blockTable, 10) // " BLOCK-----"
	body := run(b[from:], &pemTable, len(b))
	end := from + body
	if stop := bytes.Index(b[from:end], []byte("-----END")); stop >= 0 {
		end = from + stop + len("-----END")
		end += run(b[end:], &endTable, 60)
		return i, end, true
	}
	if body < 64 {
		return 0, 0, false // somebody talks about keys
	}
	return i, end, true
}

// urlPassword matches what stands between the colon and the at sign of a URL.
func urlPassword(b []byte, i int) (int, int, bool) {
	rest := b[i+len("://") : min(len(b), i+512)]
	colon := bytes.IndexByte(rest, ':')
	at := bytes.IndexByte(rest, '@')
	if colon < 0 || at <= colon+1 || bytes.ContainsAny(rest[:at], "/ \t\n\"'<>`\\?#") || isPlaceholder(rest[colon+1:at]) {
		return 0, 0, false
	}
	from := i + len("://") + colon + 1
	return from, i + len("://") + at, true
}

// assigned matches the value of an environment variable whose name in capitals
// ends as the trigger says.
func assigned(trigger string) secret {
	least := 16
	if strings.HasPrefix(trigger, "PASS") || strings.HasPrefix(trigger, "_PASS") {
		least = 6
	}
	return secret{"value", trigger, []byte(trigger), func(b []byte, i int) (int, int, bool) {
		if i > 0 && b[i-1] != '_' && (b[i-1] < '0' || b[i-1] > 'Z') && isWord(b[i-1]) {
			return 0, 0, false
		}
		from := i + len(trigger)
		if from < len(b) && (b[from] == '"' || b[from] == '\'') {
			from++
		}
		value := b[from : from+run(b[from:], &valueTable, judged)]
		if len(value) < least || isPlaceholder(value) || least > 6 && !(bytes.ContainsAny(value, digits) && bytes.ContainsAny(value, lower+upper)) {
			return 0, 0, false
		}
		return from, from + run(b[from:], &valueTable, maxSecret/2), true
	}}
}

// awsSecret matches the key of an AWS credentials file.
func awsSecret(b []byte, i int) (int, int, bool) {
	from := i + len("aws_secret_access_key")
	from += run(b[from:], &separatorTable, 8)
	n := run(b[from:], &base64Table, 41)
	return from, from + n, n == 40
}

// isPlaceholder reports whether a value only stands for one.
func isPlaceholder(b []byte) bool {
	return len(b) == 0 || strings.IndexByte("$<{(%*[", b[0]) >= 0
}

var (
	urlSafeTable   = tableOf(urlSafe)
	base64Table    = tableOf(alnum + "+/=")
	pemTable       = tableOf(alnum + "+/=\n\r\t \\:,-_@.()\"")
	blockTable     = tableOf(" BLOCK-")
	endTable       = tableOf(upper + " -")
	valueTable     = tableOf(alnum + "+/=_.:~!@#%^&*?,$<{([-")
	separatorTable = tableOf(" =:\"'\t")
)

// table says which bytes belong to a set.
type table [256]bool

func tableOf(set string) table {
	var t table
	for i := range len(set) {
		t[set[i]] = true
	}
	return t
}

// run counts the bytes at the start of b that are in the set, up to most.
func run(b []byte, t *table, most int) int {
	for i, c := range b {
		if i == most || !t[c] {
			return i
		}
	}
	return len(b)
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}
