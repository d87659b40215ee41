package guard

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// makers write secrets of every kind, with the random part that must not survive.
var makers = []func(r *rand.Rand) (text, secret string){
	func(r *rand.Rand) (string, string) { s := "ghp_" + chars(r, alnum, 36); return s, s[10:] },
	func(r *rand.Rand) (string, string) {
		s := "sk-ant-api03-" + chars(r, urlSafe[:62], 60)
		return s, s[20:]
	},
	func(r *rand.Rand) (string, string) { s := "AKIA" + chars(r, upper+digits, 16); return s, s[4:] },
	func(r *rand.Rand) (string, string) { s := "glpat-" + chars(r, alnum, 20); return s, s[6:] },
	func(r *rand.Rand) (string, string) {
		s := "p1" + chars(r, alnum, 12)
		return "DB_PASSWORD=" + s + " ", s
	},
	func(r *rand.Rand) (string, string) {
		s := "p1" + chars(r, alnum, 12)
		return `{"password":"` + s + `"}`, s
	},
	func(r *rand.Rand) (string, string) {
		s := chars(r, alnum, 16)
		return "https://u:" + s + "@h.example/", s
	},
	func(r *rand.Rand) (string, string) { s := card(r); return s, s[4:12] },
	func(r *rand.Rand) (string, string) {
		s := chars(r, alnum+"+/", 64) + "\n" + chars(r, alnum+"+/", 64)
		return "-----BEGIN RSA " + "PRIVATE KEY-----\n" + s + "\n-----END RSA " + "PRIVATE KEY-----", s[10:50]
	},
}

// breaks are what is put into a secret, and does not show.
var breaks = []string{"\u200b", "\x1b[0m", "\x00", "\u00ad", "\x1b]0;t\a", "\u202e", "x\b", "\u2060\ufeff"}

func chars(r *rand.Rand, set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[r.IntN(len(set))]
	}
	b[n/2] = '7'
	return string(b)
}

func card(r *rand.Rand) string {
	d := []byte("4" + chars(r, digits, 14) + "0")
	for !luhn(d) {
		d[15]++
	}
	return string(d)
}

// No secret of a generator survives, wherever it stands and whatever is put into
// it.
func FuzzNoSecretSurvives(f *testing.F) {
	f.Add(uint64(1), "some text", "more\ntext", uint16(0))
	f.Add(uint64(2), "a\rb", "\x1b[1m\rc", uint16(40_000))
	f.Add(uint64(3), "계좌 ", " 입니다", uint16(32_760))
	f.Fuzz(func(t *testing.T, seed uint64, before, after string, pad uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		text, secret := makers[r.IntN(len(makers))](r)
		at := strings.Index(text, secret) + 1 + r.IntN(len(secret)-1)
		if r.IntN(2) == 0 {
			text = text[:at] + breaks[r.IntN(len(breaks))] + text[at:]
		}
		text = strings.Repeat("a line of text\n", int(pad)/15) + before + "\n" + text + "\n" + after
		for _, group := range []string{"", "files"} {
			if group == "files" && (strings.ContainsRune(text, '\b') || !strings.Contains(secret, "+") && strings.Trim(secret, digits) == "") {
				continue // nothing is written over there, and numbers stay
			}
			out, kinds := Eval(text, group)
			// It is masked, or gone with a string for terminals that it stands in.
			half := len(secret) / 2
			left := strings.Contains(out, secret[:half]) || strings.Contains(out, secret[half:])
			if strings.Contains(out, secret) || len(kinds) == 0 && left {
				t.Fatalf("%s: %q\nlets through %q: %v", group, tail(text), tail(out), kinds)
			}
		}
	})
}

// The time that a text takes grows with its length, whatever is in it.
func TestLinear(t *testing.T) {
	units := []string{
		"\x1b]", "\x1b[", "\x1b[99D", "\x1b[9Cx", "a\r", "a\b", "\r", "=", "password=", "password=a ", `"password":"`, "://", "://a:", "[redacted:", "[redacted:x]", "4111 ", "4-", "1 ",
		"account 1234567", "DE89 ", "eyJ", "eyJa.", "-----BEGIN PRIVATE KEY-----\n", "\u200d", "👩\u200d", "\U0001f3f4", "<password>", "--token ", "계좌 1234567890123456789 ", "Authorization: Basic ", "\xff", "\u202e",
	}
	size := 16 << 10
	if prooftest.Long() {
		size = 32 << 10
	}
	for _, unit := range units {
		took := func(n, runs int) time.Duration {
			text := strings.Repeat(unit, n/len(unit))
			least := time.Hour
			for range runs {
				start := time.Now()
				Eval(text, "")
				least = min(least, time.Since(start))
			}
			return least
		}
		for tries := 1; ; tries++ { // a busy machine may take its time once
			short, long := took(size, 3), took(8*size, 1)
			if long <= 40*short+20*time.Millisecond { // 8 times as long
				break
			}
			if tries == 15 {
				t.Errorf("%q: %s, and %s for 8 times as much", unit, short, long)
				break
			}
		}
	}
}
