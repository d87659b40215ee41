package compact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/knowledge/compact"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

// applied is the conversation that a compaction makes of messages.
func applied(messages []agent.Message, done agent.ContextCompacted) []agent.Message {
	kept := append([]agent.Message(nil), messages[min(done.Messages, len(messages)):]...)
	for _, t := range done.Trimmed {
		if t.Message < len(kept) {
			kept[t.Message] = transcript.Trim(kept[t.Message], t.Texts)
		}
	}
	return append(append([]agent.Message(nil), done.Head...), kept...)
}

var reference = regexp.MustCompile(`\[#(\d+)(?:\s*[-–]\s*#?(\d+))?\]`)

// named are the events that a text names, as pairs of the first and the last.
func named(text string) (spans [][2]int64) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.ParseInt(m[1], 10, 64)
		to := from
		if m[2] != "" {
			to, _ = strconv.ParseInt(m[2], 10, 64)
		}
		spans = append(spans, [2]int64{from, to})
	}
	return spans
}

// talk makes conversations as a log gives them: every message has a number.
type talk struct {
	rnd *rand.Rand
	ms  []agent.Timed
	seq int64
}

func newTalk(seed uint64) *talk { return &talk{rnd: rand.New(rand.NewPCG(seed, 7))} }

func (t *talk) add(m agent.Message) {
	t.seq += 1 + t.rnd.Int64N(4)
	t.ms = append(t.ms, agent.Timed{Seq: t.seq, Message: m})
}

func (t *talk) words(n int) string {
	words := []string{"the", "parser", "fails", "on", "nested", "quotes", "고쳐", "주세요", "internal/loop/ask.go", "0x1f", "\n", "return err", "42"}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[t.rnd.IntN(len(words))] + " ")
	}
	return b.String()
}

func (t *talk) user(text string) { t.add(agent.UserText(text)) }

// step is an answer with calls, and their results of about size bytes.
func (t *talk) step(calls, size int) {
	a := agent.Message{Role: agent.Assistant}
	if t.rnd.IntN(3) == 0 {
		a.Blocks = append(a.Blocks, agent.Block{Type: agent.ThinkingBlock, Text: t.words(80), Signature: "sig"})
	}
	a.Blocks = append(a.Blocks, agent.Block{Type: agent.TextBlock, Text: t.words(60)})
	r := agent.Message{Role: agent.User}
	for range calls {
		id := fmt.Sprintf("c%d_%d", t.seq, len(a.Blocks))
		a.Blocks = append(a.Blocks, agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: "bash__exec", Input: json.RawMessage(`{"command":"go test ./..."}`)}})
		res := agent.Result{ID: id, Status: agent.StatusOK, Text: t.words(1 + t.rnd.IntN(2*size+1))}
		switch t.rnd.IntN(12) {
		case 0:
			res = agent.Failure(agent.ErrAborted, "it failed", "try again")
			res.ID = id
		case 1:
			res.Spill = &agent.Spill{Handle: "output:abc", Bytes: 1 << 20}
		case 2:
			res.Blocks = []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte("x")}}}
		case 3:
			res.Status, res.Handle = agent.StatusPending, "job:1"
		}
		r.Blocks = append(r.Blocks, agent.Block{Type: agent.ResultBlock, Result: &res})
	}
	t.add(a)
	if calls > 0 {
		t.add(r)
	}
}

func (t *talk) messages() (all []agent.Message) {
	for _, m := range t.ms {
		all = append(all, m.Message)
	}
	return all
}

// valid is what every provider asks of a conversation: it begins with the user, every
// call is answered once, in the next message, and nothing else is.
func valid(ms []agent.Message) error {
	if len(ms) > 0 && ms[0].Role != agent.User {
		return errors.New("it begins with the assistant")
	}
	open := map[string]bool{}
	for i, m := range ms {
		answers := map[string]bool{}
		for _, b := range m.Blocks {
			if b.Result != nil {
				answers[b.Result.ID] = true
			}
		}
		if !reflect.DeepEqual(answers, open) {
			return fmt.Errorf("message %d answers %v, open are %v", i, answers, open)
		}
		open = map[string]bool{}
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
		if len(m.Blocks) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
	}
	if len(open) > 0 {
		return errors.New("calls are left open")
	}
	return nil
}

// lossy answers with the first words of what it was shown, and a few references.
func lossy(t *talk) agent.Ask {
	return func(_ context.Context, q agent.Question) (agent.Answer, error) {
		m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "The parser was mended [#1-2] and [#999999]. " + t.words(100)}}}
		return agent.Answer{Message: m, Stop: agent.StopEnd}, nil
	}
}

// Whatever the conversation, the strategy and the window: it stays valid, ends as it
// did, fits, and nothing that is pinned is lost.
func TestCompactAnything(t *testing.T) {
	seeds := uint64(150)
	if prooftest.Long() {
		seeds = 400
	}
	for seed := range seeds {
		tk := newTalk(seed)
		for range 1 + tk.rnd.IntN(6) {
			tk.user("request " + tk.words(1+tk.rnd.IntN(400)))
			for range tk.rnd.IntN(10) {
				tk.step(1+tk.rnd.IntN(3), 1+tk.rnd.IntN(4000))
			}
			tk.step(0, 0)
		}
		tk.user("and now " + tk.words(50))
		o := compact.Options{Strategy: append(compact.Strategies, "")[tk.rnd.IntN(5)], Recent: tk.rnd.IntN(9) - 1, Reserve: 500}
		conv := compact.Conversation{
			Messages: tk.ms, Window: 3000 + tk.rnd.IntN(20_000), Trigger: []string{"auto", "manual", "overflow"}[tk.rnd.IntN(3)],
			Facts: []agent.Pinned{compact.Pin(compact.Decision, "use "+tk.words(40)+"\nindeed", 3), compact.Pin(compact.Todo, "write tests", 4)},
		}
		ask := lossy(tk)
		if tk.rnd.IntN(4) == 0 {
			ask = func(context.Context, agent.Question) (agent.Answer, error) { return agent.Answer{}, errors.New("down") }
		}
		done, err := compact.New(compact.Config{Options: o, Ask: ask, Recall: "Recall"}).Compact(t.Context(), conv)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		est := compact.NewEstimator("")
		before := est.Messages(tk.messages())
		if done == nil {
			if before > conv.Window-500 && conv.Trigger != "overflow" {
				t.Fatalf("seed %d: nothing was done with %d tokens in a window of %d", seed, before, conv.Window)
			}
			continue
		}
		got := applied(tk.messages(), *done)
		if err := valid(got); err != nil {
			t.Fatalf("seed %d, %s: %v", seed, o.Strategy, err)
		}
		if n := est.Messages(got); n >= before || n > conv.Window-500 || n > done.After+20 {
			t.Fatalf("seed %d, %v: %d tokens of %d, said %d, window %d", seed, done.Stages, n, before, done.After, conv.Window)
		}
		if last := len(got) - 1; !reflect.DeepEqual(got[last], tk.ms[len(tk.ms)-1].Message) {
			t.Fatalf("seed %d: what the user said last is gone", seed)
		}
		if done.Messages > 0 {
			if err := compact.Carried(done.Head, done.Pinned); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if strings.Contains(done.Head[0].Text(), "999999") {
				t.Fatalf("seed %d: a reference to nothing", seed)
			}
			if done.Through != tk.ms[done.Messages-1].Seq {
				t.Fatalf("seed %d: it stands for events through %d", seed, done.Through)
			}
		}
		sameAsTheFold(t, seed, tk, *done, got)
	}
}

// sameAsTheFold checks that the event says the same to the fold of the log.
func sameAsTheFold(t *testing.T, seed uint64, tk *talk, done agent.ContextCompacted, want []agent.Message) {
	t.Helper()
	s := transcript.New()
	for _, m := range tk.ms {
		s.Messages, s.Hashes, s.Seqs = append(s.Messages, m.Message), append(s.Hashes, transcript.HashOf(m.Message)), append(s.Seqs, m.Seq)
	}
	s.Apply(agent.Event{Seq: tk.seq + 1, Body: done})
	if s.Err() != nil {
		t.Fatalf("seed %d: %v", seed, s.Err())
	}
	got, hashes := s.Conversation()
	if !reflect.DeepEqual(hashes, transcript.Hashes(want)) || len(got) != len(want) {
		t.Fatalf("seed %d: the fold makes another conversation of it", seed)
	}
}

// What nobody has said comes again by itself: it is neither summarised nor taken for
// what the user wants, and takes no place among the newest messages.
func TestWhatNobodyHasSaid(t *testing.T) {
	told := func(origin string) *talk {
		tk := newTalk(9)
		for range 8 {
			tk.user("do " + tk.words(300))
			m := agent.UserText("RULES " + strings.Repeat("of the house ", 20))
			m.Origin = origin
			tk.add(m)
			tk.step(1, 900)
		}
		return tk
	}
	shorten := func(tk *talk, ask agent.Ask) (*agent.ContextCompacted, string) {
		var asked strings.Builder
		c := compact.New(compact.Config{Options: compact.Options{Strategy: compact.Summarize}, Ask: func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			asked.WriteString(q.Messages[0].Text())
			return ask(ctx, q)
		}})
		done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 100_000, Trigger: "manual"})
		if err != nil || done == nil {
			t.Fatalf("%+v, %v", done, err)
		}
		return done, asked.String()
	}
	down := func(context.Context, agent.Question) (agent.Answer, error) { return agent.Answer{}, errors.New("down") }
	said, asked := shorten(told(""), lossy(newTalk(9)))
	if !strings.Contains(asked, "RULES") {
		t.Fatal("what the user says is not summarised")
	}
	for name, ask := range map[string]agent.Ask{"summary": lossy(newTalk(9)), "outline": down} {
		done, asked := shorten(told("memory"), ask)
		if strings.Contains(asked, "RULES") || strings.Contains(done.Head[0].Text(), "RULES") {
			t.Errorf("%s: it holds what nobody has said:\n%s\n%s", name, asked, done.Head[0].Text())
		}
		for _, f := range done.Pinned {
			if strings.Contains(f.Text, "RULES") {
				t.Errorf("%s: pinned: %s", name, f.Text)
			}
		}
		if done.Before != said.Before {
			t.Errorf("%s: estimated as %d tokens, and as %d when the user has said it", name, done.Before, said.Before)
		}
	}
	done, _ := shorten(told("memory"), down)
	left := 0
	for _, m := range told("memory").ms[done.Messages:] {
		if m.Origin == "" {
			left++
		}
	}
	if left < 5 {
		t.Errorf("%d of the newest messages stay", left)
	}
}

// A hundred facts are carried word for word through ten compactions of a conversation
// whose summaries forget nearly everything, and every reference leads to an event.
func TestHundredFactsTenTimes(t *testing.T) {
	tk := newTalk(1)
	tk.user("Build the importer. " + tk.words(200))
	var facts []agent.Pinned
	for i := range 100 {
		facts = append(facts, compact.Pin([]string{compact.Decision, compact.Fact}[i%2], fmt.Sprintf("fact %d: the key of table %d is %x", i, i*7, i*7919), int64(i+1)))
	}
	window := 40_000
	c := compact.New(compact.Config{Ask: lossy(tk), Recall: "Recall"})
	s := transcript.New()
	grow := func(ms []agent.Timed) {
		for _, m := range ms {
			s.Messages, s.Hashes, s.Seqs, s.Head = append(s.Messages, m.Message), append(s.Hashes, transcript.HashOf(m.Message)), append(s.Seqs, m.Seq), m.Seq
		}
	}
	grow(tk.ms)
	est := compact.NewEstimator("")
	compactions, last := 0, int64(0)
	var pinned []agent.Pinned
	for steps := 0; compactions < 10; steps++ {
		if steps > 3000 {
			t.Fatal("it does not come to ten compactions")
		}
		from := len(tk.ms)
		tk.step(1+tk.rnd.IntN(2), 2000)
		grow(tk.ms[from:])
		if n := est.Messages(s.Messages); n > window {
			t.Fatalf("%d tokens in a window of %d", n, window)
		}
		if !(compact.Options{}).State(est.Messages(s.Messages), window).Needed {
			continue
		}
		conv := compact.Conversation{Messages: s.Timed(), Window: window, Trigger: "auto", Pinned: pinned, Last: last, Through: tk.seq}
		if compactions == 0 {
			conv.Facts = facts // told once; afterwards only the compactions carry them
		}
		done, err := c.Compact(t.Context(), conv)
		if err != nil {
			t.Fatal(err)
		}
		if done == nil {
			t.Fatalf("nothing is gained at compaction %d", compactions)
		}
		tk.seq++
		s.Apply(agent.Event{Seq: tk.seq, Body: *done})
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		compactions++
		last, pinned = tk.seq, done.Pinned
		if err := valid(s.Messages); err != nil {
			t.Fatal(err)
		}
		if done.After > window/2+1000 {
			t.Errorf("compaction %d leaves %d tokens", compactions, done.After)
		}
		if done.Messages == 0 {
			continue // results alone were enough
		}
		head := done.Head[0].Text()
		if err := compact.Carried(done.Head, facts); err != nil {
			t.Fatalf("compaction %d: %v", compactions, err)
		}
		for _, span := range named(head) {
			if span[0] < 1 || span[1] > done.Through {
				t.Errorf("compaction %d: reference %v leads nowhere", compactions, span)
			}
		}
		if !strings.Contains(head, "Build the importer.") {
			t.Errorf("compaction %d: the goal is lost", compactions)
		}
	}
}

func TestBlocked(t *testing.T) {
	tk := newTalk(3)
	tk.user("go")
	for range 20 {
		tk.step(1, 3000)
	}
	all := compact.NewEstimator("").Messages(tk.messages())
	before := func(context.Context, string, string) (string, error) { return "", errors.New("not now") }
	c := compact.New(compact.Config{})
	if _, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: all * 10 / 9, Trigger: "auto", Before: before}); !errors.Is(err, compact.ErrBlocked) {
		t.Errorf("below the limit: %v", err)
	}
	done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: all, Trigger: "auto", Before: before})
	if err != nil || done == nil || done.Strategy != compact.Tools || done.Stages[0] != "blocked" {
		t.Errorf("close to overflow: %+v, %v", done, err)
	}
}

// A conversation that stays long is not shortened at every step.
func TestNoLoop(t *testing.T) {
	tk := newTalk(4)
	tk.user("go " + tk.words(20_000)) // the newest message alone is too long
	c := compact.New(compact.Config{Ask: lossy(tk), Options: compact.Options{Reserve: 100}})
	all := compact.NewEstimator("").Messages(tk.messages())
	done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: all * 10 / 9, Trigger: "auto"})
	if done != nil || err != nil {
		t.Errorf("one message: %+v, %v", done, err)
	}
	tk.step(1, 10)
	done, err = c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: all * 10 / 9, Trigger: "auto", Last: 1})
	if done != nil || err != nil {
		t.Errorf("while it cools down: %+v, %v", done, err)
	}
}

// Who asks for a shorter conversation gets one, however much room there still is.
func TestShorterOnRequest(t *testing.T) {
	tk := newTalk(7)
	for range 12 {
		tk.user("do " + tk.words(300))
		tk.step(2, 900)
	}
	for _, strategy := range append([]string{compact.Adaptive}, compact.Strategies...) {
		c := compact.New(compact.Config{Ask: lossy(tk), Options: compact.Options{Strategy: strategy}})
		done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 1_000_000, Trigger: "manual"})
		if err != nil || done == nil {
			t.Errorf("%q: nothing was done, %v", strategy, err)
			continue
		}
		if done.After > done.Before*7/10 || strategy == compact.Adaptive && done.Strategy != compact.Summarize {
			t.Errorf("%q: %s took %d tokens to %d", strategy, done.Strategy, done.Before, done.After)
		}
	}
}

func TestFocusAndChunks(t *testing.T) {
	tk := newTalk(5)
	for range 40 {
		tk.user("do " + tk.words(3000))
		tk.step(0, 0)
	}
	var systems []string
	questions := 0
	ask := func(ctx context.Context, q agent.Question) (agent.Answer, error) {
		questions++
		systems = append(systems, q.System)
		if n := compact.NewEstimator("").Text(q.Messages[0].Text()); n > 6000 {
			t.Errorf("a question has %d tokens", n)
		}
		return lossy(tk)(ctx, q)
	}
	c := compact.New(compact.Config{Ask: ask, Options: compact.Options{Strategy: compact.Summarize}})
	done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 10_000, Trigger: "manual", Focus: "the importer", Before: func(context.Context, string, string) (string, error) {
		return "the tests", nil
	}})
	if err != nil || done == nil {
		t.Fatal(done, err)
	}
	if questions < 3 || !strings.Contains(systems[0], "the importer\nthe tests") {
		t.Errorf("%d questions, the first says %q", questions, systems[0])
	}
}

func TestState(t *testing.T) {
	for _, tt := range []struct {
		used, window int
		want         compact.Status
		needed       bool
	}{
		{69_999, 104_096, compact.Safe, false}, // there is room for 100,000 beside the reserve
		{70_000, 104_096, compact.Warning, false},
		{79_999, 104_096, compact.Warning, false},
		{80_000, 104_096, compact.Warning, true},
		{84_999, 104_096, compact.Warning, true},
		{85_000, 104_096, compact.Critical, true},
		{95_904, 100_000, compact.Critical, true},
		{95_905, 100_000, compact.Exceeded, true},
		{5, 0, compact.Safe, false},
		{10, 12, compact.Exceeded, true},
	} {
		if got := (compact.Options{}).State(tt.used, tt.window); got.Status != tt.want || got.Needed != tt.needed {
			t.Errorf("%d of %d: %+v", tt.used, tt.window, got)
		}
	}
}

func TestBreakdown(t *testing.T) {
	got := (compact.Options{}).Breakdown(map[string]int{compact.PartMessages: 30, compact.PartSystem: 10, compact.PartDeferred: 5}, 100)
	want := []compact.Part{{compact.PartSystem, 10}, {compact.PartDeferred, 5}, {compact.PartMessages, 30}, {compact.PartBuffer, 40}, {compact.PartFree, 20}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// A model that reads less than the one it writes for is asked in pieces that it can read,
// and what it has not written by then is told without it.
func TestSummariesFitTheirReader(t *testing.T) {
	tk := newTalk(5)
	tk.user("go")
	for range 60 {
		tk.step(2, 2000)
	}
	for _, tt := range []struct {
		name          string
		works, chunks int
		stages        string
	}{
		{"all of it", 100, 0, "[summarize]"},
		{"then no more", 2, 0, "[summarize outline]"},
		{"nothing", 0, 0, "[summarize outline]"},
		{"more than is asked", 100, 400, "[summarize chunks-outlined:"},
	} {
		name, reads, asked := tt.name, 9000, 0
		if tt.chunks > 0 {
			reads = 4000
			for range tt.chunks {
				tk.step(1, 2000)
			}
		}
		c := compact.New(compact.Config{Ask: func(_ context.Context, q agent.Question) (agent.Answer, error) {
			if n := compact.NewEstimator("").Messages(q.Messages); n > reads-compact.NewEstimator("").Text(q.System) {
				t.Errorf("%s: asked with %d tokens", name, n)
			}
			if asked++; asked > tt.works {
				return agent.Answer{}, errors.New("down")
			}
			return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: fmt.Sprintf("Part %d.", asked)}}}}, nil
		}})
		done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 200_000, Reads: reads, Trigger: "manual", Through: tk.seq})
		if err != nil || done == nil {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		head := done.Head[0].Text()
		if !strings.HasPrefix(fmt.Sprint(done.Stages), tt.stages) {
			t.Errorf("%s: %v", name, done.Stages)
		}
		if strings.Contains(head, "Part 1.") != (tt.works > 0) || strings.Contains(head, "bash__exec: go test") != (tt.stages[len(tt.stages)-1] == ':' || tt.works < 100) {
			t.Errorf("%s: the head is\n%s", name, head)
		}
	}
}

// Who waits for a summary does so for a limited time.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk := newTalk(5)
		for range 12 {
			tk.user("do " + tk.words(300))
			tk.step(2, 900)
		}
		c := compact.New(compact.Config{Ask: func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
			<-ctx.Done()
			return agent.Answer{}, context.Cause(ctx)
		}})
		begun := time.Now()
		done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 200_000, Trigger: "manual"})
		if err != nil || done == nil || !strings.Contains(done.Head[0].Text(), "the user said: do") {
			t.Fatalf("%+v, %v", done, err)
		}
		if waited := time.Since(begun); waited != 5*time.Minute {
			t.Errorf("waited %s", waited)
		}
	})
}

// Nobody is asked for a summary that cannot make the conversation much shorter.
func TestNoSummaryInVain(t *testing.T) {
	tk := newTalk(6)
	tk.user("go")
	tk.step(0, 0)
	tk.user("and this: " + tk.words(20_000))
	tk.step(0, 0)
	for range 4 {
		tk.user("on " + tk.words(100))
	}
	all := compact.NewEstimator("").Messages(tk.messages())
	done, err := compact.New(compact.Config{
		Options: compact.Options{Recent: 6, Reserve: 100},
		Ask: func(context.Context, agent.Question) (agent.Answer, error) {
			t.Error("a summary is asked for")
			return agent.Answer{}, nil
		},
	}).Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: all * 8 / 7, Trigger: "auto"})
	if done != nil || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

// What the program has said in the place of the user, or in front of what he says, is
// not what he wants.
func TestAsidesAreNoGoals(t *testing.T) {
	tk := newTalk(7)
	tk.user("mend it")
	tk.step(1, 3000)
	m := agent.UserText("[job 1 is over]")
	m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: "and test it"})
	tk.add(m)
	both := tk.seq
	tk.step(1, 3000)
	tk.user("[go on where you were cut]")
	cut := tk.seq
	for range 4 {
		tk.step(1, 3000)
	}
	done, err := compact.New(compact.Config{Options: compact.Options{Recent: 2}}).Compact(t.Context(), compact.Conversation{
		Messages: tk.ms, Window: 200_000, Trigger: "manual", Through: tk.seq, Asides: map[int64]int{both: 1, cut: 1},
	})
	if err != nil || done == nil {
		t.Fatalf("%+v, %v", done, err)
	}
	var goals []string
	for _, f := range done.Pinned {
		goals = append(goals, f.Kind+" "+f.Text)
	}
	if want := []string{"goal mend it", "goal and test it"}; !slices.Equal(goals, want) {
		t.Errorf("pinned are %q, want %q", goals, want)
	}
	if head := done.Head[0].Text(); strings.Contains(head, "said: [") {
		t.Errorf("the head is\n%s", head)
	}
}

// What was read with an input does not come again by itself: a summary is made of it.
func TestWhatWasReadWithAnInput(t *testing.T) {
	tk := newTalk(8)
	tk.user("explain @a.go")
	m := agent.UserText("<attached file=\"a.go\">\npackage a\n</attached>")
	m.Origin = "mention"
	tk.add(m)
	for range 6 {
		tk.step(1, 3000)
	}
	var asked string
	for _, works := range []bool{true, false} {
		done, err := compact.New(compact.Config{Ask: func(_ context.Context, q agent.Question) (agent.Answer, error) {
			asked = q.Messages[0].Text()
			if !works {
				return agent.Answer{}, errors.New("down")
			}
			return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "fine"}}}}, nil
		}}).Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 200_000, Trigger: "manual", Through: tk.seq})
		if err != nil || done == nil {
			t.Fatalf("%+v, %v", done, err)
		}
		if !strings.Contains(asked, "read with the input: <attached file=") {
			t.Errorf("asked with\n%.500s", asked)
		}
		if head := done.Head[0].Text(); !works && !strings.Contains(head, "read with the input: <attached file=") {
			t.Errorf("the head is\n%s", head)
		}
	}
}

// A result that is one of several leads back to the events of all of them, for its own
// is not the one that the message has.
func TestTheWayBackToOneOfSeveralResults(t *testing.T) {
	r := agent.Message{Role: agent.User}
	a := agent.Message{Role: agent.Assistant}
	for _, id := range []string{"x", "y"} {
		a.Blocks = append(a.Blocks, agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: "t", Input: json.RawMessage("{}")}})
		r.Blocks = append(r.Blocks, agent.Block{Type: agent.ResultBlock, Result: &agent.Result{ID: id, Status: agent.StatusOK, Text: strings.Repeat(id+" ", 5000)}})
	}
	ms := []agent.Timed{{Seq: 2, Message: agent.UserText("go")}, {Seq: 5, Message: a}, {Seq: 11, Message: r}, {Seq: 12, Message: agent.UserText("on")}}
	done, err := compact.New(compact.Config{Recall: "Recall", Options: compact.Options{Strategy: compact.Tools, Recent: 1}}).
		Compact(t.Context(), compact.Conversation{Messages: ms, Window: 8000, Trigger: "auto"})
	if err != nil || done == nil || len(done.Trimmed) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if want := "[Result truncated for context management; Recall opens it among events 6 to 11]"; done.Trimmed[0].Texts["x"] != want {
		t.Errorf("what is left says %q, want %q", done.Trimmed[0].Texts["x"], want)
	}
}

// Of the references of a summary those stay that lead somewhere, however they are
// written.
func TestReferences(t *testing.T) {
	for said, want := range map[string]string{
		"a [#1]":                  "a [#1]",
		"a [#1-3]":                "a [#1-3]",
		"a [#1, #2-3; #99]":       "a [#1] [#2-3]",
		"a [#2,3]":                "a [#2] [#3]",
		"a [#3-1] b [#0] c [#99]": "a  b  c",
		"a [#1–#2], x[1], #7":     "a [#1–#2], x[1], #7",
	} {
		tk := newTalk(9)
		for range 12 {
			tk.user("do " + tk.words(300))
			tk.step(1, 900)
		}
		done, err := compact.New(compact.Config{Ask: func(context.Context, agent.Question) (agent.Answer, error) {
			return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: said}}}}, nil
		}}).Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: 200_000, Trigger: "manual", Through: tk.seq})
		if err != nil || done == nil {
			t.Fatalf("%+v, %v", done, err)
		}
		_, got, _ := strings.Cut(done.Head[0].Text(), "What happened:\n")
		if got != want+"\n" {
			t.Errorf("of %q there is %q", said, got)
		}
	}
}

// Right after a compaction, results are shortened wherever they stand before a model is
// asked for another summary, and at once when there is no room left.
func TestSoonAgain(t *testing.T) {
	tk := newTalk(12)
	tk.user("go")
	for range 9 {
		tk.step(1, 100)
	}
	last := tk.seq
	tk.step(1, 1)
	for i := range tk.ms[len(tk.ms)-1].Blocks {
		tk.ms[len(tk.ms)-1].Blocks[i].Result.Text = tk.words(30_000)
	}
	all := compact.NewEstimator("").Messages(tk.messages())
	c := compact.New(compact.Config{Options: compact.Options{Reserve: 1000}, Ask: func(context.Context, agent.Question) (agent.Answer, error) {
		t.Error("a summary is asked for")
		return agent.Answer{}, nil
	}})
	for _, tt := range []struct {
		window int
		stages string
	}{{all * 10 / 9, ""}, {all + 500, "[soon]"}} {
		done, err := c.Compact(t.Context(), compact.Conversation{Messages: tk.ms, Window: tt.window, Trigger: "auto", Last: last, Through: tk.seq})
		if err != nil || (done != nil) != (tt.stages != "") {
			t.Fatalf("%d of %d: %+v, %v", all, tt.window, done, err)
		}
		if done != nil && (!strings.HasSuffix(fmt.Sprint(done.Stages), tt.stages[1:]) || done.Messages != 0 || done.After > tt.window-1000) {
			t.Errorf("%+v", done)
		}
	}
}
