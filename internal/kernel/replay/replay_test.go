package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/state/transcript"
)

// tape is a log that a test writes, with the requests that follow from it.
type tape struct {
	*testing.T
	events []agent.Event
	blobs  map[string][]byte
	state  *transcript.State
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newTape(t *testing.T) *tape {
	p := &tape{T: t, blobs: map[string][]byte{}, state: transcript.New()}
	p.add(agent.SessionOpened{Session: "s", Workdir: "/w", Model: "m"})
	return p
}

func (p *tape) all() iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range p.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *tape) add(bodies ...agent.Body) {
	for _, b := range bodies {
		n := int64(len(p.events) + 1)
		e := agent.Event{Seq: n, Epoch: 1, Time: noon.Add(time.Duration(n) * time.Second), Body: b}
		p.events = append(p.events, e)
		p.state.Apply(e)
	}
}

func (p *tape) blob(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		p.Fatal(err)
	}
	sum := sha256.Sum256(data)
	sha := hex.EncodeToString(sum[:])
	p.blobs[sha] = data
	return sha
}

func (p *tape) ask(step, attempt int) {
	r := agent.ModelRequested{Turn: p.state.Turn.ID, Step: step, Attempt: attempt, Model: "m", System: p.blob([]agent.Section{}), Tools: p.blob([]agent.Spec{})}
	_, hashes := p.state.Conversation()
	r.Messages = len(hashes)
	r.Hash = transcript.RequestHash(r, hashes)
	p.add(r)
}

func (p *tape) answer(step int, text string, calls ...agent.Call) {
	m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
	}
	cost := agent.Money(5)
	p.add(agent.ModelAnswered{Turn: p.state.Turn.ID, Step: step, Answer: agent.Answer{Message: m, Usage: agent.Usage{Input: 10, Output: 1}}, Cost: &cost})
}

func (p *tape) decide(step int, c agent.Call, class agent.Class, v agent.Verdict) {
	p.add(agent.CallDecided{
		Turn: p.state.Turn.ID, Step: step, Proposal: agent.Proposal{Call: c, Class: class}, Key: loop.Key("s", p.state.Turn.ID, step, c.ID),
		Decision: agent.Decision{Verdict: v, By: "rule", Basis: &agent.Basis{Mode: agent.ModeDefault}},
	})
}

func (p *tape) start(step int, c agent.Call, class agent.Class) {
	p.add(agent.CallStarted{ID: c.ID, Tool: c.Tool, Class: class, Key: loop.Key("s", p.state.Turn.ID, step, c.ID)})
}

func finished(id, text string) agent.CallFinished {
	r := agent.OK(text)
	r.ID = id
	return agent.CallFinished{Result: r}
}

func (p *tape) end(steps int) {
	t := p.state.Turn
	p.add(agent.TurnEnded{Turn: t.ID, Reason: agent.EndDone, Steps: steps, Usage: t.Usage, Cost: &t.Cost})
}

// told is a session of two turns: one call is read, one writes, one is denied, and a
// request fails once.
func told(t *testing.T) *tape {
	p := newTape(t)
	read, write, rm := agent.Call{ID: "r", Tool: "read"}, agent.Call{ID: "w", Tool: "write"}, agent.Call{ID: "x", Tool: "rm"}
	p.add(agent.InputAdded{Input: "i1", Text: "go"}, agent.TurnStarted{Turn: "t1"})
	p.ask(1, 1)
	p.answer(1, "I look", read, write, rm)
	p.decide(1, read, agent.Read, agent.Allow)
	p.decide(1, write, agent.Idempotent, agent.Allow)
	p.decide(1, rm, agent.Unsafe, agent.Deny)
	denied := agent.Failure(agent.ErrDenied, "no", "")
	denied.ID = "x"
	p.add(agent.CallFinished{Result: denied})
	p.start(1, read, agent.Read)
	p.add(finished("r", "what it says"))
	p.start(1, write, agent.Idempotent)
	p.add(finished("w", "written"))
	p.ask(2, 1)
	p.add(agent.ModelFailed{Turn: "t1", Step: 2, Attempt: 1, Retry: true, Error: "busy"})
	p.ask(2, 2)
	p.answer(2, "done")
	p.end(2)
	p.add(agent.InputAdded{Input: "i2", Text: "and more"}, agent.TurnStarted{Turn: "t2"})
	p.ask(1, 1)
	p.answer(1, "more")
	p.end(1)
	return p
}

func (p *tape) verify(events []agent.Event) agent.ReplayReport {
	p.Helper()
	rep, err := Verify(p.Context(), p.config(events))
	if err != nil {
		p.Fatal(err)
	}
	return rep
}

func (p *tape) config(events []agent.Event) Config {
	return Config{
		Session: "s", Events: (&tape{events: events}).all(),
		Blob: func(_ context.Context, sha string) (io.ReadCloser, error) {
			data, ok := p.blobs[sha]
			if !ok {
				return nil, errors.New("no such blob")
			}
			return io.NopCloser(bytes.NewReader(data)), nil
		},
		Decide: func(d agent.DecisionRecord, _ []string) (was agent.Verdict, now agent.Decision, err error) {
			now = agent.Decision{Verdict: agent.Allow, By: "rule"}
			if d.Proposal.Call.Tool == "rm" {
				now = agent.Decision{Verdict: agent.Deny, By: "floor", Reason: "it deletes"}
			}
			now.Basis = d.Decision.Basis
			return d.Decision.Verdict, now, nil
		},
	}
}

func TestVerify(t *testing.T) {
	p := told(t)
	want := agent.ReplayReport{Session: "s", OK: true, Requests: 4, Decisions: 3, Redecided: 3, Folds: 2}
	if got := p.verify(p.events); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

// edit changes the n-th event of type T, counted from 0.
func edit[T agent.Body](n int, f func(*T)) func([]agent.Event) []agent.Event {
	return func(events []agent.Event) []agent.Event {
		for i, e := range events {
			if b, ok := e.Body.(T); ok {
				if n--; n < 0 {
					f(&b)
					events[i].Body = b
					break
				}
			}
		}
		return events
	}
}

// drop leaves the n-th event of type T out.
func drop[T agent.Body](n int) func([]agent.Event) []agent.Event {
	return func(events []agent.Event) []agent.Event {
		return slices.DeleteFunc(events, func(e agent.Event) bool {
			_, ok := e.Body.(T)
			if ok {
				n--
			}
			return ok && n == -1
		})
	}
}

func TestDivergences(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func([]agent.Event) []agent.Event
		want   string // event: problem | expected | came
	}{
		{"the input", edit(0, func(b *agent.InputAdded) { b.Text = "stop" }), `4: the request had hash * | * | *`},
		{"an input left out", drop[agent.InputAdded](0), `4: the request had 1 messages, the log gives 0 | 1 | 0`},
		{"a result", edit(1, func(b *agent.CallFinished) { b.Result.Text = "other" }), `14: the request had hash * | * | *`},
		{"a later input", edit(1, func(b *agent.InputAdded) { b.Text = "x" }), `21: the request had hash * | * | *`},
		{"a blob", edit(0, func(b *agent.ModelRequested) { b.Tools = strings.Repeat("0", 64) }), `4: catalog of tools: no such blob |  | `},
		{"the verdict", edit(2, func(b *agent.CallDecided) { b.Decision.Verdict = agent.Allow }), `8: the policy said allow to call x, and with the same rules and the same knowledge it says deny | allow | deny floor it deletes`},
		{"no verdict", edit(0, func(b *agent.CallDecided) { b.Decision.Verdict = agent.AskUser }), `6: call r was left undecided | ask | allow or deny`},
		{"a key", edit(1, func(b *agent.CallDecided) { b.Key = "k" }), `7: call w has another key | k | *`},
		{"the key of a start", edit(0, func(b *agent.CallStarted) { b.Key = "k" }), `10: call r was started with another key | k | *`},
		{"a decision left out", drop[agent.CallDecided](1), `12: call w was started without leave | the start of call w | verdict`},
		{"the class", edit(1, func(b *agent.CallStarted) { b.Class = agent.Read }), `12: call w was started as another class than it was decided on | read | idempotent`},
		{"a start left out", drop[agent.CallStarted](0), `11: call r has a result and was never started | ok | error`},
		{"a denied call that ran", edit(0, func(b *agent.CallFinished) { b.Result.Status = agent.StatusOK }), `9: call x was denied and has a result all the same | ok | error`},
		{"a result left out", drop[agent.CallFinished](1), `12: call w was started beside call r, and one of them must run alone | the start of call w | call r runs`},
		{"a failure left out", drop[agent.ModelFailed](0), `16: the request is attempt 2 at step 2, and no attempt has failed | 2 | 1`},
		{"an attempt", edit(0, func(b *agent.ModelFailed) { b.Attempt = 2 }), `15: a request failed that was not made | step 2 of turn t1 | step 2 of turn t1`},
		{"a request left out", drop[agent.ModelRequested](0), `5: an answer came to no request | step 1 of turn t1 | no request`},
		{"the step of an answer", edit(0, func(b *agent.ModelAnswered) { b.Step = 7 }), `5: an answer came to no request | step 7 of turn t1 | step 1 of turn t1`},
		{"the usage", edit(0, func(b *agent.TurnEnded) { b.Usage.Input = 1 }), `18: the turn has used what its answers do not add up to | * | *`},
		{"the cost", edit(0, func(b *agent.TurnEnded) { b.Cost = nil }), `18: the turn has cost what its answers do not add up to | null | *`},
		{"the steps", edit(0, func(b *agent.TurnEnded) { b.Steps = 1 }), `18: the turn has ended with 1 steps, and has had 2 | 1 | 2`},
		{"an end left out", drop[agent.TurnEnded](0), `20: turn t2 starts while another one runs | the end of turn t1 | turn t2`},
	} {
		p := told(t)
		rep := p.verify(tt.change(slices.Clone(p.events)))
		if got := fmt.Sprintf("%d: %s | %s | %s", rep.At, rep.Problem, rep.Expected, rep.Came); rep.OK || !like(tt.want, got) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// like reports whether s is what pattern says; a * stands for anything.
func like(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1:] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return s == "" || strings.HasSuffix(pattern, "*")
}

// A call that something else than the model has made may outlive the turn.
func TestSideCallsOutliveTurns(t *testing.T) {
	p := newTape(t)
	p.add(agent.InputAdded{Input: "i1", Text: "go"}, agent.TurnStarted{Turn: "t1"})
	p.ask(1, 1)
	p.answer(1, "done")
	c := agent.Call{ID: "side", Tool: "read"}
	p.add(agent.CallDecided{Turn: "t1", Step: 1, Proposal: agent.Proposal{Call: c, Class: agent.Read, Origin: "hook"}, Key: loop.Key("s", "t1", 1, "side"), Decision: agent.Decision{Verdict: agent.Allow}})
	p.end(1)
	p.add(agent.CallStarted{ID: "side", Tool: "read", Class: agent.Read, Key: loop.Key("s", "t1", 1, "side")}, finished("side", "found"))
	if rep := p.verify(p.events); !rep.OK {
		t.Errorf("%+v", rep)
	}
}

// What was held elsewhere has answers without requests.
func TestImportedConversations(t *testing.T) {
	p := newTape(t)
	p.events[0].Body = agent.SessionOpened{Session: "s", Origin: &agent.Origin{Source: "codex", ID: "old"}}
	p.add(agent.InputAdded{Input: "i1", Text: "go"}, agent.TurnStarted{Turn: "imported-1"})
	p.answer(1, "done")
	p.end(1)
	if rep := p.verify(p.events); !rep.OK {
		t.Errorf("%+v", rep)
	}
	p.add(agent.SessionOpened{Session: "s"}, agent.InputAdded{Input: "i2", Text: "go on"}, agent.TurnStarted{Turn: "t1"})
	p.answer(1, "of itself")
	if rep := p.verify(p.events); rep.OK || rep.At != 9 {
		t.Errorf("an answer of ours to no request: %+v", rep)
	}
}

// A snapshot that says something else than the log is found, down to the lines of the
// message that differ.
func TestSnapshotsAreCompared(t *testing.T) {
	p := told(t)
	at := int64(17)
	snapshot := func(change func(*transcript.State)) map[int64][]byte {
		s := transcript.New()
		for _, e := range p.events[:at] {
			s.Apply(e)
		}
		change(s)
		data, err := s.Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		return map[int64][]byte{at: data}
	}
	for name, tt := range map[string]struct {
		change func(*transcript.State)
		want   string
	}{
		"nothing": {func(*transcript.State) {}, "0: ; "},
		"a message": {func(s *transcript.State) {
			s.Messages[0].Blocks = []agent.Block{{Type: agent.TextBlock, Text: "went"}}
			s.Hashes[0] = transcript.HashOf(s.Messages[0])
		}, `17: the snapshot has another message 0 than the log gives; -       "text": "went" +       "text": "go"`},
		"its text alone": {func(s *transcript.State) {
			s.Messages[1].Blocks = slices.Clone(s.Messages[1].Blocks)
			s.Messages[1].Blocks[0].Text = "away"
		}, `17: the snapshot has a message 1 that does not have its hash; -       "text": "away" +       "text": "I look"`},
		"the title": {func(s *transcript.State) { s.Title = "other" }, `17: the snapshot has other title than the log gives; - "other" + "go"`},
	} {
		cfg := p.config(p.events)
		cfg.Snapshots = snapshot(tt.change)
		rep, err := Verify(t.Context(), cfg)
		if got := fmt.Sprintf("%d: %s; %s", rep.At, rep.Problem, strings.Join(rep.Diff, " ")); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, tt.want)
		}
	}
}

func TestLineDiffIsBounded(t *testing.T) {
	long := strings.Repeat(strings.Repeat("é", 400)+"\n", 100)
	got := lineDiff("same\n"+long+"end", "same\nnew\nend")
	if len(got) != maxDiff/2+2 || got[len(got)-1] != "+ new" || got[maxDiff/2] != "- ... 80 more lines" || len(got[0]) > maxText+20 {
		t.Errorf("%d lines: %q", len(got), got[maxDiff/2:])
	}
}
