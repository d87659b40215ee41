package compact

import (
	"encoding/json"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

// family is how a provider's models count, against the estimate. Their tokenizers
// differ, and most are not public: these are set so that real text is rather
// over- than underestimated, and a session corrects them by what the provider has
// counted.
var family = map[string]float64{"anthropic": 1.2, "openai": 1, "google": 1.05}

const (
	perMessage = 6    // tokens that frame a message, a call or a result
	perImage   = 1600 // of an image, at most; providers scale larger ones down
	perPage    = 2000 // of a page of a document, text and image
	pageBytes  = 40_000
)

// An Estimator estimates tokens without a tokenizer. Its zero value is for unknown
// providers. It is safe for concurrent use.
type Estimator struct{ scale float64 }

// NewEstimator returns the estimator for the models of a provider.
func NewEstimator(provider string) Estimator { return Estimator{family[provider]} }

// Corrected returns an estimator that agrees with a count of the provider's: counted
// tokens for what was estimated. It does not go beyond half or double.
func (e Estimator) Corrected(counted, estimated int) Estimator {
	if counted <= 0 || estimated <= 0 {
		return e
	}
	return Estimator{e.factor() * min(2, max(0.5, float64(counted)/float64(estimated)))}
}

func (e Estimator) factor() float64 {
	if e.scale == 0 {
		return 1.1
	}
	return e.scale
}

func (e Estimator) scaled(n float64) int { return int(math.Ceil(n * e.factor())) }

// Text returns about how many tokens s has.
func (e Estimator) Text(s string) int { return e.scaled(count(s)) }

// Message returns about how many tokens a message has.
func (e Estimator) Message(m agent.Message) int { return e.scaled(weigh(m)) }

// Messages returns about how many tokens messages have.
func (e Estimator) Messages(ms []agent.Message) int {
	var n float64
	for _, m := range ms {
		n += weigh(m)
	}
	return e.scaled(n)
}

// Fixed returns about how many tokens a system prompt and tools have.
func (e Estimator) Fixed(system []agent.Section, tools []agent.Spec) int {
	var n float64
	for _, s := range system {
		n += count(s.Text)
	}
	for _, t := range tools {
		n += perMessage + count(t.Name) + count(t.Description) + count(string(t.Input))
	}
	return e.scaled(n)
}

func weigh(m agent.Message) float64 {
	n := float64(perMessage)
	for _, b := range m.Blocks {
		n += count(b.Text) + count(string(b.Raw)) + float64(len(b.Signature))/4
		if b.Call != nil {
			n += perMessage + count(b.Call.Tool) + count(string(b.Call.Input))
		}
		if r := b.Result; r != nil {
			n += perMessage + count(r.Text) + weigh(agent.Message{Blocks: r.Blocks})
			if r.Text == "" {
				n += count(string(r.Output))
			}
			if r.Error != nil {
				data, _ := json.Marshal(r.Error)
				n += count(string(data))
			}
		}
		if b.Media != nil {
			n += media(*b.Media)
		}
	}
	return n
}

func media(m agent.Media) float64 {
	if strings.HasPrefix(m.Type, "image/") {
		return perImage
	}
	return perPage * float64(1+len(m.Data)/pageBytes)
}

// count counts tokens by what kind of characters stand together. Vocabularies of
// this size have most English words whole, with the blank or sign before them, three
// digits at a time, usual signs in twos and threes, and one or two syllables of
// Hangul. The numbers are set by the public vocabulary of OpenAI's models: of each kind
// of text that conversations consist of, the estimate is at most a tenth too low.
func count(s string) float64 {
	var n float64
	for len(s) > 0 {
		c := s[0]
		var size int
		switch {
		case c >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRuneInString(s)
			n += wide(r)
		case letter(c):
			size = run(s, letter)
			n += word(s[:size])
		case c >= '0' && c <= '9':
			size = run(s, digit)
			n += float64(size+2) / 3
		case c == ' ':
			size = run(s, func(d byte) bool { return d == ' ' })
			if size > 1 {
				n += 0.6 + float64(size)/32
			}
		case c <= ' ':
			size = run(s, func(d byte) bool { return d == c })
			n += 0.7 + float64(size-1)/8
		default:
			size = run(s, sign)
			n += signs(s[:size], size < len(s) && letter(s[size]))
		}
		s = s[size:]
	}
	return n
}

// word counts a run of letters, which may be several words with a capital each. One
// that changes case all the time is no word, but a part of something encoded.
func word(w string) float64 {
	n, start, humps := 1.0, 0, 0
	for i := 1; i <= len(w); i++ {
		if i < len(w) && (!upper(w[i]) || upper(w[i-1])) {
			continue
		}
		n += float64(max(0, i-start-6)) / 4.5
		if start = i; i < len(w) {
			humps++
		}
	}
	if humps*4 >= len(w) {
		return float64(len(w)) * 0.9
	}
	return n + float64(humps)*0.8
}

// signs counts a run of signs. The last one goes with the word behind it, and the same
// sign again and again is hardly more than one.
func signs(s string, before bool) float64 {
	n := 0.45
	if before {
		n = 0.05
	}
	for i := range len(s) {
		if i > 0 && s[i] == s[i-1] {
			n += 0.02
		} else {
			n += 0.4
		}
	}
	return n
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || upper(c) }

func run(s string, is func(byte) bool) int {
	n := 1
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
func upper(c byte) bool { return c >= 'A' && c <= 'Z' }
func sign(c byte) bool  { return c > ' ' && c < utf8.RuneSelf && !letter(c) && !digit(c) }

func wide(r rune) float64 {
	switch {
	case r == utf8.RuneError:
		return 1.5
	case unicode.Is(unicode.Hangul, r):
		return 0.75
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return 0.9
	case unicode.IsLetter(r):
		return 0.5
	case r > 0xffff:
		return 2.2
	}
	return 1
}
