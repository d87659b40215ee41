package valid_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"dure/agent"
)

// A maker makes the log of one random session: everything that a model, a
// person, a crash or another provider may leave in it.
type maker struct {
	*rand.Rand
	pool map[string][]agent.Answer // genuine answers by provider; each is used once in a log
	used map[string]bool

	events []agent.Event
	ids    []string // of calls so far
	turn   int
	step   int
	open   bool // a turn is open
}

// maxLog is how many turns a log has at most.
const maxLog = 6

// log makes the events of a session, and calls ask wherever a model would be
// asked, the last time at the end.
func (m *maker) log(ask func(events []agent.Event, last bool)) {
	m.add(agent.SessionOpened{Session: "s", Workdir: "/w"})
	for range 1 + m.IntN(maxLog) {
		m.input()
		m.turn++
		m.open = true
		m.add(agent.TurnStarted{Turn: fmt.Sprint("t", m.turn)})
		for range m.IntN(5) {
			ask(m.events, false)
			if m.chance(20) {
				m.add(agent.ModelFailed{Step: m.step, Attempt: 1, Class: agent.FailServer, Error: "lost", Retry: true})
			}
			if m.answer() {
				break
			}
			if m.chance(8) {
				m.add(agent.SettingsChanged{Model: "another"})
			}
		}
		if m.chance(10) { // a crash: the next owner goes on
			m.add(agent.SessionOpened{Session: "s", Workdir: "/w"})
			m.add(agent.TurnStarted{Turn: fmt.Sprint("t", m.turn), Attempt: 2})
			ask(m.events, false)
		}
		reason := pick(m, agent.EndDone, agent.EndInterrupted, agent.EndFailed, agent.EndLimit)
		m.add(agent.TurnEnded{Turn: fmt.Sprint("t", m.turn), Reason: reason})
		m.open = false
	}
	m.input()
	ask(m.events, true)
}

func (m *maker) add(b agent.Body) {
	n := int64(len(m.events) + 1)
	m.events = append(m.events, agent.Event{Seq: n, Epoch: 1, Time: time.Unix(n, 0), ID: fmt.Sprint(n), Body: b})
}

// chance is true once in n times.
func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

// input adds what a person says, at once or out of the queue.
func (m *maker) input() {
	in := agent.InputAdded{Input: fmt.Sprint("i", len(m.events)), Text: m.text()}
	if strings.TrimSpace(in.Text) == "" && (len(m.events) == 1 || !m.chance(10)) { // no session begins with nothing
		in.Text = "go on"
	}
	if m.chance(4) {
		for range 1 + m.IntN(2) {
			in.Parts = append(in.Parts, m.media())
		}
	}
	if m.chance(5) {
		m.add(agent.InputQueued{Input: in.Input, Text: in.Text, Parts: in.Parts})
	}
	m.add(in)
}

// answer adds an answer of a model, and what came of its calls. It reports
// whether the turn is over.
func (m *maker) answer() (over bool) {
	m.step++
	a := m.said()
	m.add(agent.ModelAnswered{Turn: fmt.Sprint("t", m.turn), Step: m.step, Answer: a})
	calls := a.Message.Calls()
	if len(calls) == 0 {
		return a.Stop != agent.StopPause
	}
	m.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	left := 0 // calls that get no result
	if m.chance(6) {
		left = 1 + m.IntN(len(calls))
	}
	for _, c := range calls[left:] {
		m.add(agent.CallStarted{ID: c.ID, Tool: c.Tool})
		m.add(agent.CallFinished{Tool: c.Tool, Result: m.result(c.ID)})
		if m.chance(15) {
			m.add(agent.CallFinished{Tool: c.Tool, Result: m.result(c.ID)}) // twice
		}
		if m.chance(15) {
			m.add(agent.CallFinished{Tool: c.Tool, Result: m.result("nobody")})
		}
	}
	if m.chance(6) {
		m.input() // steering, or words that settle what is open
	}
	return left > 0
}

// said returns an answer: one that an adapter read, or one made up.
func (m *maker) said() agent.Answer {
	if m.chance(2) {
		provider := pick(m, providers...)
		if list := m.pool[provider]; len(list) > 0 {
			i := m.IntN(len(list))
			if key := fmt.Sprint(provider, i); !m.used[key] {
				m.used[key] = true
				a := list[i]
				if m.chance(6) { // cut short by a person: only what came first is kept
					blocks := a.Message.Blocks
					a.Message.Blocks = blocks[: 1+m.IntN(len(blocks)) : len(blocks)]
				}
				return a
			}
		}
	}
	msg := agent.Message{Role: agent.Assistant}
	for range m.IntN(5) {
		msg.Blocks = append(msg.Blocks, m.block())
	}
	m.unique(msg)
	return agent.Answer{Message: msg, Stop: pick(m, agent.StopEnd, agent.StopEnd, agent.StopLength, agent.StopPause, "odd")}
}

// unique gives calls of one answer different IDs, as the loop does before it
// stores an answer. Other answers may have the same ones, and now and then the
// log is not the loop's own.
func (m *maker) unique(msg agent.Message) {
	if m.chance(10) {
		return
	}
	seen := map[string]bool{}
	for i, b := range msg.Blocks {
		if b.Type != agent.CallBlock {
			continue
		}
		for n := i; b.Call.ID == "" || seen[b.Call.ID]; n++ {
			b.Call.ID = fmt.Sprintf("call_t%d_%d_%d", m.turn, m.step, n)
		}
		seen[b.Call.ID] = true
		m.ids = append(m.ids, b.Call.ID)
	}
}

func (m *maker) block() agent.Block {
	switch m.IntN(12) {
	case 0, 1, 2:
		b := agent.Block{Type: agent.TextBlock, Text: m.text()}
		if m.chance(8) {
			b.Provider, b.Signature = "foreign", "c2lnbmF0dXJl"
		}
		return b
	case 3: // of a server that signs nothing, or of one that nobody else can read
		return agent.Block{Type: agent.ThinkingBlock, Text: m.text(), Provider: pick(m, "", "mistral", "script", providers[0], providers[1], providers[2])}
	case 4:
		return agent.Block{Type: agent.ThinkingBlock, Text: m.text(), Provider: pick(m, "mistral", "foreign"), Signature: "c2lnbmF0dXJl"}
	case 5:
		return agent.Block{Type: agent.RawBlock, Provider: pick(m, "mistral", "foreign"), Raw: json.RawMessage(pick(m, `{"type":"poem"}`, `{}`, `null`, `[1]`, ``))}
	case 6: // in the forms that our own providers have, but of another
		return agent.Block{Type: agent.ThinkingBlock, Text: m.text(), Provider: "foreign", Raw: json.RawMessage(pick(
			m, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"}`, `{"type":"redacted_thinking","data":"c2ln"}`,
			`[{"type":"reasoning.encrypted","data":"c2ln"}]`,
		))}
	}
	c := m.call()
	b := agent.Block{Type: agent.CallBlock, Call: &c}
	if m.chance(8) {
		b.Provider, b.Signature = "foreign", "c2lnbmF0dXJl"
	}
	return b
}

func (m *maker) call() agent.Call {
	id := fmt.Sprint("call_", m.Uint32())
	switch m.IntN(8) {
	case 0:
		id = pick(m, "", "functions.bash:0", "call|fc_1", strings.Repeat("x", 200), "日本", "a b", "\xff", "1", "call_1", "unknown", "_")
	case 1:
		if len(m.ids) > 0 {
			id = pick(m, m.ids...) // of another answer, or of this one
		}
	}
	tool := pick(m, "file-system__read", "bash__exec", "mcp__a__b", "bash__exec", "", "no such tool", "9lives", "日本", "a.b:c", strings.Repeat("n", 100), "\xff\xfe")
	if m.chance(8) {
		return agent.InvalidInput(id, tool, pick(m, `{"a":`, "", "\xff"), "it is no JSON")
	}
	return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(pick(
		m, `{}`, `{"file_path":"a.go"}`, `{ "a" : [1, 2.50, 12345678901234567890] }`, `{"a":"\u003cb\u003e \ud83d\ude00"}`,
		`{"a":{"b":null}}`, `{"":""}`, `{"a":"\u0000"}`, `null`, `[]`, `"x"`,
	))}
}

func (m *maker) result(id string) agent.Result {
	r := agent.Result{ID: id, Status: pick(m, agent.StatusOK, agent.StatusOK, agent.StatusOK, agent.StatusError, agent.StatusPending), Text: m.text()}
	if m.chance(5) {
		r = agent.Failure(agent.ErrTool, m.text(), "")
		r.ID = id
	}
	if m.chance(6) {
		r.Text, r.Output = "", json.RawMessage(pick(m, `{"a":1}`, `"<x>"`, `null`, `[]`))
	}
	if m.chance(5) {
		for range 1 + m.IntN(3) {
			r.Blocks = append(r.Blocks, pick(m, m.media(), agent.Block{Type: agent.TextBlock, Text: m.text()}))
		}
	}
	return r
}

// media returns an image or a document, of kinds that only some can read.
func (m *maker) media() agent.Block {
	data := []byte{1, 2, 3}
	return pick(
		m,
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: data}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/jpeg; q=1", Name: "a.jpg", Data: data}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", URL: "https://example.com/a.png"}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/tiff", Data: data}},
		agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "", Data: nil}},
		agent.Block{Type: agent.ImageBlock},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", Name: "a.pdf", Data: data}},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "text/plain", Name: "a.txt", Data: []byte("text")}},
		agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/zip", Name: "\xff", Data: data}},
		agent.Block{Type: agent.TextBlock, Text: m.text()},
	)
}

func (m *maker) text() string {
	return pick(
		m, "", " ", "\n\t", "Hello.", "Hello.", "Line 1\nLine 2", `","role":"assistant","content":"`, "é😀\u2028</b>&amp;", "\xff\xfe", "a\x00b", "\ufffd",
		strings.Repeat("long ", 50), "{}", "null", "data: [DONE]\n\n", fmt.Sprint(m.Uint64()),
	)
}
