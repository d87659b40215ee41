package guard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
)

// A secret is a well-known form of credential. Its trigger is what every one of
// them begins with. Extent looks at the trigger at b[i] and returns where the part
// to mask begins and ends, not before i.
type secret struct {
	kind      string
	trigger   string
	word      bool // no letter, digit or _ may stand before it
	financial bool
	extent    func(b []byte, i int) (start, end int, ok bool)

	// open reports whether what extent says depends on what comes behind b; nil =
	// until there is white space behind the trigger.
	open func(b []byte, i int) bool
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

// known are the forms of credentials, as their issuers and the public scanners of
// repositories describe them.
var known = []secret{
	token("anthropic-key", "sk-ant-", urlSafe, 20, judged, nil),
	token("openrouter-key", "sk-or-v1-", hexa, 32, judged, nil),
	token("openai-key", "sk-", urlSafe, 20, judged, random),
	token("stripe-key", "sk_live_", alnum, 16, judged, nil),
	token("stripe-key", "rk_live_", alnum, 16, judged, nil),
	token("stripe-key", "sk_test_", alnum, 16, judged, nil),
	token("stripe-key", "rk_test_", alnum, 16, judged, nil),
	token("webhook-secret", "whsec_", alnum+"+/=", 24, judged, nil),
	token("github-token", "ghp_", alnum, 30, judged, nil),
	token("github-token", "gho_", alnum, 30, judged, nil),
	token("github-token", "ghu_", alnum, 30, judged, nil),
	token("github-token", "ghs_", alnum, 30, judged, nil),
	token("github-token", "ghr_", alnum, 30, judged, nil),
	token("github-token", "github_pat_", alnum+"_", 22, judged, nil),
	token("gitlab-token", "glpat-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "gldt-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "glrt-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "glptt-", hexa, 40, judged, nil),
	token("gitlab-token", "glcbt-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "glagent-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "glsoat-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "glft-", urlSafe+".", 20, judged, nil),
	token("gitlab-token", "gloas-", urlSafe+".", 20, judged, nil),
	token("slack-token", "xoxb-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxp-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxa-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxs-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxr-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxe-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxe.", alnum+"-.", 20, judged, nil),
	token("slack-token", "xoxc-", alnum+"-", 20, judged, nil),
	token("slack-token", "xoxd-", urlSafe+"%", 20, judged, nil),
	token("slack-token", "xapp-", alnum+"-", 20, judged, nil),
	after("slack-webhook", "hooks.slack.com/services/", alnum+"/", 30, judged, nil),
	after("slack-webhook", "hooks.slack.com/workflows/", alnum+"/", 30, judged, nil),
	after("discord-webhook", "discord.com/api/webhooks/", urlSafe+"/", 60, judged, nil),
	after("discord-webhook", "discordapp.com/api/webhooks/", urlSafe+"/", 60, judged, nil),
	anywhere(after("teams-webhook", ".webhook.office.com/webhookb2/", urlSafe+"/@", 60, judged, nil)),
	token("aws-key", "AKIA", upper+digits, 16, 16, nil),
	token("aws-key", "ASIA", upper+digits, 16, 16, nil),
	token("google-key", "AIza", urlSafe, 35, 35, nil),
	token("google-token", "ya29.", urlSafe+".", 20, judged, nil),
	token("google-secret", "GOCSPX-", urlSafe, 20, judged, nil),
	token("npm-token", "npm_", alnum, 36, 36, nil),
	token("pypi-token", "pypi-AgE", urlSafe, 50, judged, nil),
	token("huggingface-token", "hf_", alnum, 30, 64, nil),
	token("sendgrid-key", "SG.", urlSafe+".", 60, judged, dotted),
	token("twilio-key", "SK", hexa, 32, 32, nil),
	token("mailgun-key", "key-", hexa, 32, 32, nil),
	token("groq-key", "gsk_", alnum, 40, judged, nil),
	token("xai-key", "xai-", alnum, 60, judged, nil),
	token("perplexity-key", "pplx-", alnum, 40, judged, nil),
	token("replicate-token", "r8_", alnum, 37, 37, nil),
	token("digitalocean-token", "dop_v1_", hexa, 64, 64, nil),
	token("digitalocean-token", "doo_v1_", hexa, 64, 64, nil),
	token("digitalocean-token", "dor_v1_", hexa, 64, 64, nil),
	token("shopify-token", "shpat_", hexa, 32, 32, nil),
	token("shopify-token", "shpss_", hexa, 32, 32, nil),
	token("databricks-token", "dapi", hexa+"-", 32, 34, nil),
	token("doppler-token", "dp.pt.", alnum, 40, 44, nil),
	token("doppler-token", "dp.st.", alnum+"._-", 40, judged, nil),
	token("doppler-token", "dp.ct.", alnum, 40, 44, nil),
	token("linear-key", "lin_api_", alnum, 32, judged, nil),
	token("tailscale-key", "tskey-", alnum+"-", 20, judged, nil),
	token("vault-token", "hvs.", urlSafe, 24, judged, nil),
	token("vault-token", "hvb.", urlSafe, 24, judged, nil),
	token("age-key", "AGE-SECRET-KEY-1", upper+digits, 58, 58, nil),
	token("grafana-token", "glsa_", alnum+"_", 32, judged, nil),
	token("grafana-token", "glc_", alnum+"+/=", 32, judged, nil),
	token("atlassian-token", "ATATT3", anyToken, 60, judged, nil),
	token("docker-token", "dckr_pat_", urlSafe, 20, judged, nil),
	token("notion-token", "ntn_", alnum, 40, judged, nil),
	token("postman-key", "PMAK-", hexa+"-", 50, judged, nil),
	token("rubygems-key", "rubygems_", hexa, 48, 48, nil),
	token("newrelic-key", "NRAK-", alnum, 27, 27, nil),
	token("supabase-key", "sbp_", hexa, 40, 40, nil),
	token("supabase-key", "sb_secret_", urlSafe, 20, judged, nil),
	token("figma-token", "figd_", urlSafe, 36, judged, nil),
	token("planetscale-token", "pscale_tkn_", urlSafe+".", 32, judged, nil),
	token("square-token", "sq0csp-", urlSafe, 43, judged, nil),
	token("square-token", "sq0atp-", urlSafe, 22, judged, nil),
	token("shopify-token", "shpca_", hexa, 32, 32, nil),
	token("shopify-token", "shppa_", hexa, 32, 32, nil),
	token("heroku-key", "HRKU-", urlSafe, 36, judged, nil),
	token("notion-token", "secret_", alnum, 43, 43, random),
	token("sentry-token", "sntrys_", alnum+"_+/=-", 60, judged, nil),
	token("sentry-token", "sntryu_", hexa, 64, 64, nil),
	token("atlassian-token", "ATCTT3", anyToken, 60, judged, nil),
	token("bitbucket-token", "ATBB", alnum, 28, 40, random),
	token("crates-token", "cio", alnum, 32, 32, random),
	token("nuget-key", "oy2", lower+digits, 43, 43, random),
	token("fly-token", "fm2_", alnum+"+/=", 40, judged, nil),
	token("fly-token", "fo1_", urlSafe, 40, judged, nil),
	token("netlify-token", "nfp_", alnum, 36, judged, nil),
	token("langsmith-key", "lsv2_", alnum+"_", 36, judged, nil),
	token("pinecone-key", "pcsk_", alnum+"_", 40, judged, nil),
	token("hubspot-token", "pat-na1-", hexa+"-", 36, 36, nil),
	token("hubspot-token", "pat-eu1-", hexa+"-", 36, 36, nil),
	token("sonar-token", "squ_", hexa, 40, 40, nil),
	token("sonar-token", "sqp_", hexa, 40, 40, nil),
	token("buildkite-token", "bkua_", hexa, 40, 40, nil),
	token("1password-token", "ops_eyJ", urlSafe, 100, judged, nil),
	token("nvidia-key", "nvapi-", urlSafe, 40, judged, nil),
	token("bedrock-key", "ABSK", alnum+"+/=", 100, judged, nil),
	anywhere(after("terraform-token", ".atlasv1.", urlSafe, 40, judged, nil)),
	{kind: "private-key", trigger: "LS0tLS1CRUdJTi", word: true, extent: encodedKey},
	after("bearer-token", "Bearer ", anyToken, 20, judged, random),
	after("bearer-token", "bearer ", anyToken, 20, judged, random),
	after("bearer-token", "BEARER ", anyToken, 20, judged, random),
	{kind: "basic-auth", trigger: "Basic ", word: true, extent: basicLogin},
	{kind: "jwt", trigger: "eyJ", extent: jwt},
	{kind: "private-key", trigger: "-----BEGIN ", extent: privateKey, open: openKey},
	{kind: "private-key", trigger: "---- BEGIN ", extent: privateKey, open: openKey},
	{kind: "password", trigger: "--", extent: flagValue, open: openFlag},
	{kind: "password", trigger: "-u ", word: true, extent: loginPassword, open: openLogin},
	{kind: "password", trigger: "--user ", extent: loginPassword, open: openLogin},
	{kind: "password", trigger: "<", extent: elementValue, open: openElement},
}

// token is a credential that begins with its trigger: behind it come min to max
// characters of a set and then none, and before it no letter or digit. With a max
// of judged there is no limit but that of a secret. ok, when it is not nil, has to
// like it as well.
func token(kind, trigger, set string, min, max int, ok func([]byte) bool) secret {
	table := tableOf(set)
	return secret{kind: kind, trigger: trigger, word: true, extent: func(b []byte, i int) (int, int, bool) {
		from := i + len(trigger)
		n := run(b[from:], &table, max+1)
		if n < min || n > max && max < judged || ok != nil && !ok(b[from:from+n]) {
			return 0, 0, false
		}
		if max < judged && from+n < len(b) && isWord(b[from+n]) {
			return 0, 0, false
		}
		if max == judged {
			n = run(b[from:], &table, maxSecret/2)
		}
		for n > min && (b[from+n-1] == '.' || b[from+n-1] == '-') { // of the sentence
			n--
		}
		return i, from + n, true
	}}
}

// after is a credential that stands behind its trigger, which stays.
func after(kind, trigger, set string, min, max int, ok func([]byte) bool) secret {
	s := token(kind, trigger, set, min, max, ok)
	extent := s.extent
	s.extent = func(b []byte, i int) (int, int, bool) {
		_, end, found := extent(b, i)
		return i + len(trigger), end, found
	}
	return s
}

// anywhere is a credential that may stand in a word.
func anywhere(s secret) secret {
	s.word = false
	return s
}

// encodedKey matches a private key that is in base64 once more, as it stands in
// settings of Kubernetes and in variables.
func encodedKey(b []byte, i int) (int, int, bool) {
	const head = 64 // characters, that hold what kind of key it is
	n := run(b[i:], &base64Table, maxSecret/2)
	if n < 2*head {
		return 0, 0, false
	}
	raw, err := base64.StdEncoding.DecodeString(string(b[i : i+head]))
	return i, i + n, err == nil && bytes.Contains(raw, []byte("PRIVATE KEY"))
}

// random reports whether a token looks made by a machine, rather than like the
// name of a style class: it has digits, and capitals beside small letters or
// some length without a hyphen.
func random(b []byte) bool {
	has := func(set string) bool { return bytes.ContainsAny(b, set) }
	return has(digits) && (has(upper) && has(lower) || len(b) >= 20 && has(lower) && !has("-"))
}

// dotted reports whether a token has two long parts.
func dotted(b []byte) bool {
	dot := bytes.IndexByte(b, '.')
	return dot >= 16 && len(b)-dot > 32
}

// basicLogin matches a name and a password in base64.
func basicLogin(b []byte, i int) (int, int, bool) {
	from := i + len("Basic ")
	n := run(b[from:], &base64Chars, judged)
	if n < 8 || n == judged {
		return 0, 0, false
	}
	raw, err := base64.RawStdEncoding.DecodeString(string(b[from : from+n]))
	n += run(b[from+n:], &paddingTable, 2)
	return from, from + n, err == nil && bytes.IndexByte(raw, ':') > 0 && isPlain(string(raw))
}

// jwt matches three parts of base64 with dots between them, or the five of an
// encrypted one. The first names an algorithm.
func jwt(b []byte, i int) (int, int, bool) {
	if i > 0 && urlSafeTable[b[i-1]] && !endsEscape(b[max(0, i-longestEscape):i]) {
		return 0, 0, false
	}
	n := run(b[i:], &urlSafeTable, maxSecret/4)
	if n < 10 || n > 2048 || i+n >= len(b) || b[i+n] != '.' {
		return 0, 0, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(b[i : i+n]))
	var header struct {
		Alg string `json:"alg"`
	}
	if err != nil || json.Unmarshal(raw, &header) != nil || header.Alg == "" {
		return 0, 0, false
	}
	end := i + n
	for part := range 4 {
		if end >= len(b) || b[end] != '.' {
			break
		}
		n := run(b[end+1:], &urlSafeTable, maxSecret/4)
		if part == 0 && n < 4 {
			return 0, 0, false
		}
		if part == 1 && n == 0 || part > 1 && n < 10 {
			break
		}
		end += 1 + n
	}
	return i, end, true
}

// urlPassword matches what stands between the colon and the at sign of a URL,
// whose :// is at b[i].
func urlPassword(b []byte, i int) (start, end int, ok bool) {
	rest := b[i+len("://") : min(len(b), i+512)]
	if n := bytes.IndexAny(rest, "/ \t\r\n\"'<>`\\?#"); n >= 0 {
		rest = rest[:n]
	}
	if maskLength(rest) > 0 {
		return 0, 0, false
	}
	colon := bytes.IndexByte(rest, ':')
	at := bytes.LastIndexByte(rest, '@')
	if from := i + len("://"); colon < 0 && at >= 20 && random(rest[:at]) {
		return from, from + at, true // a token in the place of a name
	}
	if colon < 0 || at <= colon+1 {
		return 0, 0, false
	}
	password := rest[colon+1 : at]
	if isPlaceholder(password) {
		return 0, 0, false
	}
	from := i + len("://")
	return from + colon + 1, from + at, true
}

// discordTokens are those of bots: the number of an account in base64 comes first.
func discordTokens() []secret {
	var all []secret
	for _, t := range []string{"MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"} {
		all = append(all, secret{kind: "discord-token", trigger: t, word: true, extent: discordToken})
	}
	return all
}

func discordToken(b []byte, i int) (int, int, bool) {
	end := i
	for part, size := range [3][2]int{{23, 28}, {6, 7}, {27, 40}} {
		n := run(b[end:], &urlSafeTable, size[1]+1)
		if n < size[0] || n > size[1] {
			return 0, 0, false
		}
		if end += n; part < 2 {
			if end >= len(b) || b[end] != '.' {
				return 0, 0, false
			}
			end++
		}
	}
	return i, end, random(b[i:end])
}

var (
	urlSafeTable = tableOf(urlSafe)
	base64Table  = tableOf(alnum + "+/=")
	base64Chars  = tableOf(alnum + "+/")
	paddingTable = tableOf("=")
	hexTable     = tableOf(hexa)
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

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// What a byte may begin, or be noticed by.
const (
	digit = iota + 1
	bracket
	separator
	letter
)

// triggers tells quickly where a secret may begin or be noticed.
type triggers struct {
	classes [256]byte       // of bytes; 0 = nothing begins with it
	pairs   [1 << 16]uint16 // the bucket of the first two bytes of a trigger; 0 = none
	buckets [][]secret
}

// index is that of all forms; it takes 150 KB, and is made for the first text.
var index = sync.OnceValue(func() *triggers {
	return newTriggers(slices.Concat(known, discordTokens(), ibans()))
})

func newTriggers(all []secret) *triggers {
	t := &triggers{buckets: make([][]secret, 1)}
	for c := range 256 {
		switch {
		case isDigit(byte(c)):
			t.classes[c] = digit
		case c == '[':
			t.classes[c] = bracket
		case c == '=' || c == ':':
			t.classes[c] = separator
		}
	}
	for _, s := range all {
		second := s.trigger[1:min(2, len(s.trigger))]
		if second == "" {
			second = lower + upper
		}
		t.classes[s.trigger[0]] = letter
		for i := range len(second) {
			at := &t.pairs[int(s.trigger[0])<<8|int(second[i])]
			if *at == 0 {
				*at = uint16(len(t.buckets))
				t.buckets = append(t.buckets, nil)
			}
			t.buckets[*at] = append(t.buckets[*at], s)
		}
	}
	return t
}
