package compact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/knowledge/compact"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

// life writes the log of a session to which everything happens that can happen to a
// conversation. Compactions are real ones, of the conversation as it is or as a reader of
// a long log sees it.
type life struct {
	t    *testing.T
	rnd  *rand.Rand
	seed uint64
	log  []agent.Event
	live *transcript.State
	turn int
	id   int
	bare []int64 // behind these events no call was open, and people may go back to them
}

func (l *life) reread() iter.Seq2[agent.Event, error] {
	log := l.log
	return func(yield func(agent.Event, error) bool) {
		for _, e := range log {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{t: t, rnd: rand.New(rand.NewPCG(seed, 11)), seed: seed, live: transcript.New()}
	l.live.Reread(l.reread)
	l.add(agent.SessionOpened{Session: "s", Model: "m"})
	return l
}

func (l *life) add(bodies ...agent.Body) {
	for _, b := range bodies {
		e := agent.Event{Seq: int64(len(l.log)) + 1, Body: b}
		l.log = append(l.log, e)
		l.live.Apply(e)
	}
	if l.live.Open == nil {
		l.bare = append(l.bare, int64(len(l.log)))
	}
}

// words are a text of up to most bytes, now and then a very long one.
func (l *life) words(most int) string {
	n := 1 + l.rnd.IntN(most)
	if l.rnd.IntN(10) == 0 {
		n += 9000
	}
	l.id++
	return fmt.Sprintf("%d %s", l.id, strings.Repeat("말 word ", n/9))
}

// extra puts something before the model, unless it is there.
func (l *life) extra() {
	source, key := []string{"memory", "rules", "mention"}[l.rnd.IntN(3)], ""
	if source != "memory" {
		key = fmt.Sprint(l.rnd.IntN(3))
	}
	for _, x := range l.live.Extras {
		if x.Source == source && x.Key == key && l.rnd.IntN(4) > 0 {
			return
		}
	}
	c := agent.ContextAdded{Source: source, Key: key, Text: source + key + " " + l.words(300)}
	if l.rnd.IntN(6) == 0 {
		c.Blocks = []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: make([]byte, 3000)}}}
	}
	l.add(c)
}

// step is an answer with calls and their results, which may come in another order, or
// not at all.
func (l *life) step() {
	m := agent.Message{Role: agent.Assistant}
	if l.rnd.IntN(3) == 0 {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.ThinkingBlock, Text: l.words(400), Signature: "sig", Provider: "p"})
	}
	m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: l.words(300)})
	var results []agent.Result
	for range l.rnd.IntN(3) {
		l.id++
		id := fmt.Sprint("c", l.id)
		in, _ := json.Marshal(map[string]string{"file_path": "/f" + id, "content": l.words(500)})
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: fmt.Sprint("t", l.rnd.IntN(3)), Input: in}})
		results = append(results, l.result(id))
	}
	l.add(agent.ModelRequested{Turn: fmt.Sprint("t", l.turn), Step: 1})
	l.add(agent.ModelAnswered{Answer: agent.Answer{Message: m, Usage: agent.Usage{Input: l.rnd.IntN(20_000), Output: 1}}})
	l.rnd.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	for _, r := range results {
		if l.rnd.IntN(12) > 0 {
			l.add(agent.CallFinished{Tool: "t", Result: r})
		}
	}
}

func (l *life) result(id string) agent.Result {
	r := agent.Result{ID: id, Status: agent.StatusOK, Text: l.words(3000), Files: []agent.FileState{{Path: "/f" + id}}}
	switch l.rnd.IntN(9) {
	case 0:
		r = agent.Failure(agent.ErrTool, l.words(2000), "try again")
		r.ID = id
	case 1:
		r.Blocks = []agent.Block{{Type: agent.TextBlock, Text: l.words(5000)}, {Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", Data: make([]byte, 9000)}}}
	case 2:
		r.Status, r.Handle = agent.StatusPending, "job:"+id
	case 3:
		r.Spill = &agent.Spill{Handle: "output:" + id, Bytes: 1 << 20}
	case 4:
		r.Output, _ = json.Marshal(r.Text)
		r.Text = ""
	case 5:
		r.Meta = map[string]json.RawMessage{agent.MetaTask: json.RawMessage(fmt.Sprintf(`{"decisions":[{"decision":"d%s","reason":"r"}]}`, id))}
	case 6:
		r.Text, r.Fence = "[fence]\n"+r.Text, "fence"
	}
	return r
}

func (l *life) compact() {
	view := l.live
	if l.rnd.IntN(2) == 0 {
		view = transcript.New()
		view.Reread(l.reread)
		odd := l.rnd.IntN(3)
		view.Slim(func(seq int64) bool { return odd > 0 && seq%3 == int64(odd) })
		for _, e := range l.log {
			view.Apply(e)
		}
	}
	o := compact.Options{Strategy: append(compact.Strategies, "")[l.rnd.IntN(5)], Recent: l.rnd.IntN(8) - 1, Reserve: 500}
	conv := compact.Conversation{
		Messages: view.Timed(), Used: l.live.Context, Counted: l.live.Counted, Window: 3000 + l.rnd.IntN(20_000),
		Trigger: []string{"auto", "manual", "overflow"}[l.rnd.IntN(3)], Through: l.live.Head,
	}
	if n := len(l.live.Compactions); n > 0 {
		conv.Pinned, conv.Last = l.live.Compactions[n-1].Pinned, l.live.Compactions[n-1].Seq
	}
	for _, d := range l.live.Task.Decisions {
		conv.Facts = append(conv.Facts, compact.Pin(compact.Decision, d.Decision, d.Seq))
	}
	ask := func(context.Context, agent.Question) (agent.Answer, error) {
		if l.rnd.IntN(3) == 0 {
			return agent.Answer{}, errors.New("down")
		}
		return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: l.words(400)}}}}, nil
	}
	done, err := compact.New(compact.Config{Options: o, Ask: ask, Recall: "Recall"}).Compact(l.t.Context(), conv)
	if err != nil {
		l.t.Fatalf("seed %d: %v", l.seed, err)
	}
	if done != nil {
		l.add(*done)
	}
}

// happens lets one more thing happen.
func (l *life) happens() {
	switch n := l.rnd.IntN(20); {
	case n < 5:
		l.add(agent.InputAdded{Input: fmt.Sprint("in", len(l.log)), Text: l.words(500)})
		l.turn++
		l.add(agent.TurnStarted{Turn: fmt.Sprint("t", l.turn)})
	case n < 11:
		l.step()
	case n < 14:
		l.extra()
	case n < 15:
		l.add(agent.FilesRewound{Files: 1})
	case n < 16:
		for handle := range l.live.Pending {
			l.add(agent.CallSettled{Handle: handle, Notice: "[" + handle + " is over]"})
			break
		}
	case n < 18 && l.live.Open == nil:
		l.compact()
	case n < 19:
		l.add(agent.ConversationRewound{To: l.bare[l.rnd.IntN(len(l.bare))]})
	case len(l.live.Compactions) > 0:
		l.add(agent.ContextRestored{Of: l.live.Compactions[len(l.live.Compactions)-1].Seq})
	}
}

// plain is a state without what only says which messages are at hand.
func plain(s *transcript.State) map[string]any {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		panic(err)
	}
	delete(m, "messages")
	delete(m, "let_go")
	for k, v := range m { // none is as good as no list
		if list, ok := v.([]any); v == nil || ok && len(list) == 0 {
			delete(m, k)
		}
	}
	return m
}

// However a session is read, as a whole, from a snapshot with little at hand, or with
// little left of most messages, everything that others see of it is the same; and what is
// known of it is true of the messages themselves.
func TestEveryWayToReadASessionIsTheSame(t *testing.T) {
	seeds := uint64(25)
	if prooftest.Long() {
		seeds = 2000
	}
	for seed := range seeds {
		l := newLife(t, seed)
		for range 20 + l.rnd.IntN(60) {
			l.happens()
		}
		if err := l.live.Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		l.sound()
		read := map[string]*transcript.State{"slim": transcript.New(), "a part": transcript.New(), "anew": transcript.New()}
		wanted := map[int64]bool{}
		for _, seq := range l.live.Seqs[len(l.live.Seqs)/2:] {
			wanted[seq] = true
		}
		read["slim"].Slim(func(seq int64) bool { return wanted[seq] })
		read["a part"].Keep(5000)
		middle := l.rnd.IntN(len(l.log))
		for name, s := range read {
			s.Reread(l.reread)
			for i, e := range l.log {
				s.Apply(e)
				if i == middle && name == "a part" {
					s = l.again(s)
				}
			}
			if s.Err() != nil || !reflect.DeepEqual(plain(s), plain(l.live)) {
				t.Fatalf("seed %d: read %s, it is another session: %v\n%v\n%v", seed, name, s.Err(), plain(s), plain(l.live))
			}
			got, want := s.Messages, l.live.Messages[len(l.live.Messages)-len(s.Messages):]
			for i, seq := range s.Seqs[len(s.Seqs)-len(s.Messages):] {
				if (name != "slim" || wanted[seq]) && !reflect.DeepEqual(transcript.HashOf(got[i]), transcript.HashOf(want[i])) {
					t.Fatalf("seed %d: read %s, message %d is %+v, not %+v", seed, name, i, got[i], want[i])
				}
			}
		}
	}
}

// again is a state as a snapshot brings it back.
func (l *life) again(s *transcript.State) *transcript.State {
	data, err := s.Encode(4000)
	if err != nil {
		l.t.Fatal(err)
	}
	back, err := transcript.Decode(data)
	if err != nil {
		l.t.Fatal(err)
	}
	back.Keep(5000)
	back.Reread(l.reread)
	return back
}

// sound checks that a state says what is so of its messages.
func (l *life) sound() {
	l.t.Helper()
	msgs, hashes := l.live.Conversation()
	if len(msgs) != len(hashes) || len(msgs) > 0 && !reflect.DeepEqual(transcript.Hashes(msgs), hashes) {
		l.t.Fatalf("seed %d: the hashes are not those of the messages", l.seed)
	}
	if err := valid(msgs); err != nil && err.Error() != "it begins with the assistant" {
		l.t.Fatalf("seed %d: %v", l.seed, err)
	}
	var there, known []string
	for _, m := range msgs {
		if m.Origin != "" {
			there = append(there, m.Origin+" "+m.Text())
		}
	}
	for _, x := range l.live.Extras {
		c := l.log[x.Seq-1].Body.(agent.ContextAdded)
		known = append(known, c.Source+" "+c.Text)
	}
	if !slices.Equal(there, known) {
		l.t.Fatalf("seed %d: of what nobody has said, the conversation has\n%.80q\nand is thought to have\n%.80q", l.seed, there, known)
	}
}

// What the provider has counted is what decides, although most of it is not at hand.
func TestWhatIsCountedDecides(t *testing.T) {
	tk := newTalk(13)
	for range 12 {
		tk.user("do it")
		tk.step(1, 500)
	}
	conv := compact.Conversation{Messages: tk.ms, Window: 100_000, Trigger: "auto", Used: 90_000, Counted: tk.seq, Through: tk.seq}
	done, err := compact.New(compact.Config{}).Compact(t.Context(), conv)
	if err != nil || done == nil || done.Before != 90_000 || done.After > 50_000 {
		t.Errorf("%+v, %v", done, err)
	}
}
