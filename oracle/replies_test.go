package oracle_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
)

const (
	replies = 2000 // random ones of each format
	seed    = 1
	shown   = 5 // differences that are printed, of each format

	maxShown = 2000 // bytes of a stream
)

// TestRandomReplies plays random replies of the scripted model.
func TestRandomReplies(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c := newCompare(t, a)
		differ, bytes, stops, calls := 0, 0, map[string]int{}, 0
		for n := range replies {
			r := maker{rand.New(rand.NewPCG(seed, uint64(n)))}.reply(a.format)
			body := perform(t, a, r, n)
			bytes += len(body)
			ours, err, theirs, theirsErr := c.play(t, recording{body: body, seed: uint64(n)})
			stops[ours.Stop]++
			for _, b := range ours.Blocks {
				if b.Kind == "call" {
					calls++
				}
			}
			if diff := difference(ours, err, theirs, theirsErr); diff != "" || err != nil {
				if differ++; differ <= shown {
					t.Errorf("reply %d: the library's answer (-) and the adapter's (+): %v %s\n%s", n, err, diff, body[:min(len(body), maxShown)])
				}
			}
		}
		if differ > 0 {
			t.Errorf("%d replies differ", differ)
		}
		t.Logf("%d replies, %d bytes, %d calls, stops %v", replies, bytes, calls, stops)
	})
}

// perform returns the stream of events with which the scripted model gives a
// reply to the n-th request of
// an adapter.
func perform(t *testing.T, a api, reply script.Reply, n int) []byte {
	t.Helper()
	m := a.open("http://127.0.0.1:1") // never dialled
	defer m.Close()
	r := question()
	r.Messages[0] = agent.UserText(fmt.Sprint("hello ", n))
	body, err := m.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	path := a.path
	if n%2 == 0 { // a model whose calls have no IDs, and that takes no level of thinking
		path = strings.Replace(path, "gemini-3-pro", "gemini-2.5-pro", 1)
	}
	h := script.NewHandler(script.Script{Replies: []script.Reply{reply}}, script.Options{Keep: -1, Trust: path != a.path})
	in := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("Anthropic-Version", "2023-06-01")
	out := httptest.NewRecorder()
	h.ServeHTTP(out, in)
	if out.Code != http.StatusOK {
		t.Fatalf("reply %d: the scripted model refuses: %s", n, out.Body)
	}
	return out.Body.Bytes()
}

// A maker makes random things.
type maker struct{ *rand.Rand }

// chance is true once in n times.
func (m maker) chance(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m maker, list ...T) T { return list[m.IntN(len(list))] }

// reply returns a reply that an API can give: what a format does not have is
// left out.
func (m maker) reply(f script.Format) script.Reply {
	r := script.Reply{Chunk: 1 + m.IntN(64), Interleave: m.chance(2)}
	if m.chance(3) {
		r.Thinking = "Hm." + m.text(m.IntN(12))
	}
	if m.chance(10) {
		r.Redacted = base64.StdEncoding.EncodeToString([]byte(m.text(2)))
	}
	if !m.chance(4) {
		r.Text = m.text(m.IntN(20))
	}
	if m.chance(2) {
		for range 1 + m.IntN(4) {
			r.Calls = append(r.Calls, m.call())
		}
	}
	if m.chance(3) {
		m.stop(&r, f)
	}
	if m.chance(2) {
		write := m.IntN(3000)
		r.Usage = &agent.Usage{
			Input: m.IntN(5000), Output: m.IntN(5000), CacheRead: m.IntN(2) * m.IntN(100_000),
			CacheWrite: write, CacheHour: m.IntN(write + 1),
		}
	}
	if f == script.Chat && m.chance(4) {
		r.Quirks = []script.Quirk{pick(m, script.NoDone, script.WholeCalls, script.NoUsage, script.UsageInside, script.Reasoning)}
	}
	return r
}

// stop gives a reply another reason to end than its own.
func (m maker) stop(r *script.Reply, f script.Format) {
	r.Stop = pick(m, agent.StopEnd, agent.StopCalls, agent.StopLength, agent.StopSequence, agent.StopRefusal, agent.StopPause, agent.StopWindow, "unheard_of")
	if r.Stop == agent.StopCalls && len(r.Calls) == 0 {
		r.Stop = agent.StopEnd
	}
	if r.Stop == agent.StopSequence || r.Stop == agent.StopRefusal && m.chance(2) {
		r.StopText = "stop " + m.text(2)
	}
	if r.Stop == "unheard_of" && r.Text == "" { // such an answer has to say something
		r.Text = "Hm."
	}
	if n := len(r.Calls); n > 0 && r.Stop == agent.StopLength && f != script.Gemini { // cut in the middle of a call
		whole := string(r.Calls[n-1].Input)
		r.Calls[n-1] = script.Call{Tool: r.Calls[n-1].Tool, Raw: strings.ToValidUTF8(whole[:m.IntN(len(whole)+1)], "")}
	}
}

func (m maker) call() script.Call {
	c := script.Call{Tool: pick(m, "Read", "Bash", "mcp__a__b", "a-b_9", strings.Repeat("n", 64))}
	if !m.chance(6) { // else no input at all
		c.Input = json.RawMessage(m.object(0))
	}
	if m.chance(3) {
		c.ID = fmt.Sprintf("id_%d", m.Uint64())
	}
	return c
}

// words are what texts are made of.
var words = []string{
	"a", "word", "I look.", " ", "  ", "\n", "\n\n", "\r\n", "\t", `"`, `\`, `\n`, `\u0041`, "/", "</script>", "<b>", "&amp;", "'",
	"é", "e\u0301", "日本語", "العربية", "😀", "👩‍👩‍👧", "\u2028", "\u2029", "\ufeff", "\ufffd", "\x00", "\x01", "\x1b[0m", "\x7f", "\u0085",
	"data: [DONE]\n\n", "event: error\n", ": comment\n", "{}", `{"a":1}`, "[DONE]", "null", "```go\nfunc main() {}\n```", "<think>",
}

func (m maker) text(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(pick(m, words...))
	}
	return b.String()
}

const deepest = 4 // levels of a random value

// object returns a JSON object, as compact as models write it and with escapes
// of all kinds.
func (m maker) object(depth int) string {
	var members []string
	for i := range m.IntN(4) {
		members = append(members, m.quoted(fmt.Sprint(pick(m, "", "a", "file_path", "日", `"`, "\n"), i))+":"+m.value(depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (m maker) value(depth int) string {
	kinds := 7
	if depth >= deepest {
		kinds = 5
	}
	switch m.IntN(kinds) {
	case 0:
		return pick(m, "true", "false", "null")
	case 1:
		return pick(m, "0", "-0", "1", "-17", "2.50", "1e5", "1E-7", "12345678901234567890", "0.1", "9007199254740993")
	case 2:
		return `"` + pick(m, `\u00e9`, `\ud83d\ude00`, `\/`, `\b\f\n\r\t`, `\u0000`, `\u2028`, `\ud800`, `\"`) + `"`
	case 5:
		return m.object(depth)
	case 6:
		var items []string
		for range m.IntN(4) {
			items = append(items, m.value(depth+1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return m.quoted(m.text(m.IntN(6)))
}

func (m maker) quoted(s string) string {
	q, _ := json.Marshal(s) // a string always encodes
	return string(q)
}
