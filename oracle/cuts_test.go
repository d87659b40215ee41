package oracle_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/models/script"
)

const randomCuts = 60 // places anywhere in each stream, besides those between events

// terminal is what the event has in it that ends an answer.
var terminal = map[script.Format]*regexp.Regexp{
	script.Messages:  regexp.MustCompile(`"type": ?"message_stop"`),
	script.Chat:      regexp.MustCompile(`"finish_reason": ?"[A-Za-z]`),
	script.Responses: regexp.MustCompile(`"type": ?"response\.(completed|incomplete)"`),
	script.Gemini:    regexp.MustCompile(`"(finishReason|blockReason)":`),
}

// TestCutStreams cuts streams at every event and inside of events. An adapter
// never takes what lacks the terminal event for an answer, and reports a failure
// that is worth another attempt. What the libraries make of it is in the log.
func TestCutStreams(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c := newCompare(t, a)
		var report cuts
		bodies := cutBodies(t, c)
		for n, body := range bodies {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			whole, err, _, _ := c.play(t, recording{body: body})
			at := terminal[a.format].FindIndex(body)
			if err != nil || at == nil {
				t.Fatalf("stream %d has no end: %v\n%s", n, err, body)
			}
			rest, _, _ := bytes.Cut(body[at[1]:], []byte("\n"))
			done := at[1] + len(bytes.TrimSuffix(rest, []byte("\r"))) // the terminal event is all there
			for _, place := range places(body, rng) {
				for _, torn := range []bool{false, true} {
					c.cut(t, &report, recording{body: body[:place.at], seed: rng.Uint64(), torn: torn}, place, place.at < done, whole)
				}
			}
		}
		t.Logf("%d streams%s", len(bodies), report.table())
	})
}

// cutBodies returns streams that have something of everything: replies of the
// scripted model, and the recorded streams on which all readers agree.
func cutBodies(t *testing.T, c *compare) [][]byte {
	t.Helper()
	var bodies [][]byte
	for i, r := range []script.Reply{
		{Text: "Line 1\nLine \"2\" é😀\u2028</b>", Chunk: 3},
		{Thinking: "First.\n\nThen é😀.", Text: "I look.", Chunk: 5, Calls: []script.Call{{Tool: "Read", Input: []byte(`{"file_path":"a.go"}`)}}},
		{Text: "Both.", Interleave: true, Chunk: 7, Calls: []script.Call{
			{Tool: "Read", Input: []byte(`{"file_path":"<é>.go"}`)}, {ID: "mine", Tool: "Bash", Input: []byte(`{"command":"ls"}`)}, {Tool: "Todo"},
		}},
	} {
		bodies = append(bodies, perform(t, c.api, r, 2*i+1))
	}
	files := recordings(t, c.api)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		c.tape.now.Store(&recording{body: files[name]})
		if _, err := c.readOurs(t); err == nil && exceptions[name] == "" {
			bodies = append(bodies, files[name])
		}
	}
	return bodies
}

// A place is where a stream is cut.
type place struct {
	at     int  // bytes in front of it
	inside bool // of an event
}

// places returns where to cut a stream: behind every event but the last, and at
// random.
func places(body []byte, rng *rand.Rand) []place {
	all := []place{{at: 0}}
	text := string(body)
	for at := 0; ; {
		n, gap := strings.Index(text[at:], "\n\n"), 2
		if m := strings.Index(text[at:], "\r\n\r\n"); m >= 0 && (n < 0 || m < n) {
			n, gap = m, 4
		}
		if at += n + gap; n < 0 || at >= len(body) {
			break
		}
		all = append(all, place{at: at})
	}
	for range randomCuts {
		at := rng.IntN(len(body))
		all = append(all, place{at: at, inside: !strings.HasSuffix(text[:at], "\n\n") && !strings.HasSuffix(text[:at], "\r\n\r\n")})
	}
	return all
}

// cut plays a stream that was cut. early says that its terminal event is missing.
func (c *compare) cut(t *testing.T, report *cuts, rec recording, at place, early bool, whole said) {
	t.Helper()
	ours, err, theirs, theirsErr := c.play(t, rec)
	var failed *agent.ModelError
	retryable := errors.As(err, &failed) && failed.Retryable() && failed.Class == agent.FailServer
	switch {
	case early && err == nil:
		t.Errorf("the adapter takes a cut stream for an answer: %+v\n%s", ours, rec.body)
	case err != nil && !retryable:
		t.Errorf("the adapter does not call a cut stream worth another attempt: %v\n%s", err, rec.body)
	case err == nil:
		// What comes behind the end may be missing: the count of tokens.
		if ours.Usage = whole.Usage; cmp.Diff(whole, ours) != "" {
			t.Errorf("the adapter makes another answer of a stream cut behind its end: %s\n%s", cmp.Diff(whole, ours), rec.body)
		}
	}
	if early {
		report.add(at, rec.torn, theirsErr, theirs, whole)
	}
}

// cuts counts what a library makes of streams without their terminal event.
type cuts [4]struct{ streams, failed, silent int }

var cutKinds = [4]string{"ended between events", "ended inside an event", "broken between events", "broken inside an event"}

func (c *cuts) add(at place, torn bool, err error, got, whole said) {
	kind := 0
	if at.inside {
		kind++
	}
	if torn {
		kind += 2
	}
	row := &c[kind]
	row.streams++
	if err != nil {
		row.failed++
	} else {
		row.silent++
	}
}

// table returns the counts as a table.
func (c *cuts) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-24s %8s %14s %18s %15s\n", "without terminal event", "streams", "library fails", "library says done", "adapter retries")
	for i, row := range c {
		fmt.Fprintf(&b, "%-24s %8d %14d %18d %15d\n", cutKinds[i], row.streams, row.failed, row.silent, row.streams)
	}
	return b.String()
}
