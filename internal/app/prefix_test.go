//go:build unix

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// What is sent again is cheap only as far as it is the same from its first byte on:
// all of the last request has to begin the next one, unless an event between them says
// why not. Sessions of many kinds are asked in each wire format, and their requests are
// compared as they came over the wire.
func TestPrefix(t *testing.T) {
	t.Parallel()
	var all prefixShare
	var mu sync.Mutex // guards all
	t.Run("wires", func(t *testing.T) {
		for _, wire := range script.Wires {
			t.Run(wire, func(t *testing.T) {
				t.Parallel()
				p := recordPrefixes(t, wire)
				mu.Lock()
				defer mu.Unlock()
				all.add(p)
			})
		}
	})
	t.Logf("%+v", all)
	if all.Requests < 100 || all.Explained == 0 {
		t.Errorf("too little was asked: %+v", all)
	}
	if all.Same*100 < (all.Requests-all.Explained)*99 || all.Kept*100 < all.Bytes*99 {
		t.Errorf("less than 99 in 100 stay: %+v", all)
	}
}

// prefixShare counts what stayed of requests. Pairs with an event between them that
// explains a break count as explained, and nowhere else.
type prefixShare struct {
	Requests, Explained, Same int
	Bytes, Kept               int // of the requests that have to stay; of them, those that did
}

func (p *prefixShare) add(o prefixShare) {
	p.Requests += o.Requests
	p.Explained += o.Explained
	p.Same += o.Same
	p.Bytes += o.Bytes
	p.Kept += o.Kept
}

var chainSaid = regexp.MustCompile(`chain (\d+)`)

// chainStory counts down by calling commands, and does what single words ask for.
func chainStory(r script.Request) script.Reply {
	bash := func(line string, background bool) script.Reply {
		return script.Reply{Text: "I call.", Thinking: "Which one?", Calls: []script.Call{tool("Bash", fields{"command": line, "run_in_background": background})}}
	}
	if m := chainSaid.FindStringSubmatch(r.Last); m != nil {
		var n int
		fmt.Sscan(m[1], &n)
		switch {
		case n == 0:
			return script.Reply{Text: "Done.", Stop: agent.StopEnd}
		case n%3 == 0:
			return script.Reply{Calls: []script.Call{
				tool("Bash", fields{"command": fmt.Sprintf("echo chain %d", n-1)}),
				tool("Write", fields{"file_path": fmt.Sprintf("n%d.txt", n), "content": strings.Repeat("line\n", n)}),
				tool("LS", fields{}),
			}}
		}
		return bash(fmt.Sprintf("echo chain %d; seq 50", n-1), false)
	}
	for word, reply := range map[string]script.Reply{
		"job please":   bash("sleep 0.1; echo from behind", true),
		"wait please":  bash("sleep 0.3; echo chain 2", false),
		"sleep please": bash("sleep 60", false),
	} {
		if strings.Contains(r.Last, word) {
			return reply
		}
	}
	return script.Reply{Text: "So it is.", Thinking: "Is it?", Stop: agent.StopEnd}
}

// chain asks for a chain of calls, which is shorter in the short form.
func chain(n int) string {
	if !prooftest.Long() {
		n = 1 + 2*(n/9) // one of 3 has an answer with several calls
	}
	return fmt.Sprint("chain ", n)
}

// recordPrefixes has a session go through all that sessions go through.
func recordPrefixes(t *testing.T, wire string) prefixShare {
	w := newWorld(t, script.Script{}, script.Options{Func: chainStory})
	w.write("a.txt", "one\n")
	flags := app.Flags{Skip: true, Effort: "low", Settings: fmt.Sprintf(
		`{"providers":{"here":{"type":%q,"baseUrl":%q}},"models":[{"id":"one","provider":"here","window":200000},{"id":"two","provider":"here","window":200000}]}`, wire, w.model.URL())}
	how := options(w.work, w.home, w.model.URL(), flags)
	k := w.talkWith(how, agent.Open{Model: "here/one"})
	id := k.Info.ID
	k.turn(chain(12))
	middle := last(k)
	k.turn("say @a.txt")
	k.send(agent.Change{Title: "A session", Tags: &[]string{"a"}})
	k.turn(chain(4))

	k.send(agent.Prompt{Text: "wait please"}) // and something is said meanwhile
	k.until("the call", func(e agent.Event) bool { _, ok := e.Body.(agent.CallStarted); return ok })
	k.send(agent.Prompt{Text: "by the way"})
	k.send(agent.Prompt{Text: "and later", Later: true})
	k.rest()

	k.send(agent.Prompt{Text: "job please"}) // it may end before the turn does, or after it
	k.rest()
	k.send(agent.Prompt{Text: "sleep please"})
	k.until("the call", func(e agent.Event) bool { _, ok := e.Body.(agent.CallStarted); return ok })
	k.send(agent.Interrupt{})
	body[agent.TurnEnded](k)
	k.turn(chain(3))
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	k = w.talkWith(how, agent.Open{Session: id}) // by another program
	k.turn(chain(5))
	k.send(agent.Compact{})
	body[agent.ContextCompacted](k)
	k.turn(chain(4))
	k.send(agent.Restore{})
	body[agent.ContextRestored](k)
	k.turn(chain(3))
	k.send(agent.Rewind{To: middle, Conversation: true})
	body[agent.ConversationRewound](k)
	k.turn(chain(4))
	k.send(agent.Change{Model: "here/two"})
	k.turn(chain(4))
	k.send(agent.Change{Mode: agent.ModePlan})
	k.turn("say it")
	k.send(agent.Change{Mode: agent.ModeBypass})
	k.turn(chain(9))
	return comparePrefixes(t, w.model.Requests(), k.seen)
}

// rest reads events until nothing is left to do: no turn runs, and the model was told how
// each job in the background came out.
func (k *talk) rest() {
	k.t.Helper()
	open := true
	k.until("rest", func(e agent.Event) bool {
		switch e.Body.(type) {
		case agent.TurnStarted:
			open = true
		case agent.TurnEnded:
			open = false
		}
		jobs := 0
		for _, b := range all[agent.CallFinished](k.seen) {
			if b.Result.Handle != "" {
				jobs++
			}
		}
		for _, b := range all[agent.InputAdded](k.seen) {
			if b.Origin == "settled" {
				jobs--
			}
		}
		return !open && jobs == 0
	})
}

// comparePrefixes compares each request with the one before it.
func comparePrefixes(t *testing.T, asked []script.Recorded, events []agent.Event) (p prefixShare) {
	asked = slices.DeleteFunc(asked, func(r script.Recorded) bool { return len(r.Body) == 0 })
	var before []byte
	why := ""
	n := 0
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.ContextCompacted, agent.ContextRestored, agent.ConversationRewound:
			why += " " + e.Kind()
		case agent.ToolsChanged:
			why += " " + e.Kind()
		case agent.SettingsChanged:
			if b.Model != "" || b.Mode != "" {
				why += " " + e.Kind()
			}
		case agent.ModelRequested:
			if n >= len(asked) {
				t.Fatalf("event %d: there were only %d requests", e.Seq, n)
			}
			now := promptOf(t, asked[n])
			n++
			if b.Purpose != "" {
				continue
			}
			if before != nil {
				p.compare(t, e.Seq, before, now, why)
			}
			before, why = now, ""
		}
	}
	if n != len(asked) {
		t.Errorf("%d requests, and %d of them in the log", len(asked), n)
	}
	return p
}

func (p *prefixShare) compare(t *testing.T, seq int64, before, now []byte, why string) {
	p.Requests++
	same := 0
	for same < len(before) && same < len(now) && before[same] == now[same] {
		same++
	}
	if why != "" {
		p.Explained++
		return
	}
	p.Bytes, p.Kept = p.Bytes+len(before), p.Kept+same
	if same == len(before) {
		p.Same++
		return
	}
	from := max(0, same-100)
	t.Errorf("event %d: of %d bytes %d stay, and no event says why; there was\n%s\nand is\n%s", seq, len(before), same,
		before[from:min(len(before), same+200)], now[from:min(len(now), same+200)])
}

// promptOf returns what a cache sees of a request: its tools, its system prompt, and
// its messages, in their order and byte for byte, but for the marks that ask for the
// cache. Each block of a message stands by itself: what is said next may belong to the
// same message.
func promptOf(t *testing.T, r script.Recorded) []byte {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &whole); err != nil {
		t.Fatalf("%s: %v", r.Path, err)
	}
	var b bytes.Buffer
	for _, name := range []string{"tools", "system", "instructions", "systemInstruction"} {
		fmt.Fprintf(&b, "%s %s\n", name, whole[name])
	}
	for _, name := range []string{"messages", "input", "contents"} {
		var messages []map[string]json.RawMessage
		if json.Unmarshal(whole[name], &messages) != nil {
			continue
		}
		for _, m := range messages {
			member := "content"
			if m["parts"] != nil {
				member = "parts"
			}
			var blocks []json.RawMessage
			if json.Unmarshal(m[member], &blocks) != nil {
				blocks = []json.RawMessage{m[member]}
			}
			delete(m, member)
			rest, err := json.Marshal(m) // sorted by name
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range blocks {
				fmt.Fprintf(&b, "%s %s\n", rest, block)
			}
		}
	}
	return bytes.ReplaceAll(b.Bytes(), []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
}
