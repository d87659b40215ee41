package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/journal"
)

var begin = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// logs is a source in memory.
type logs struct {
	ids   []string
	metas map[string]journal.Meta
	all   map[string][]agent.Event
	blobs map[string]string
	bad   map[string]error // behind the last event
	reads int
}

func newLogs() *logs {
	return &logs{metas: map[string]journal.Meta{}, all: map[string][]agent.Event{}, blobs: map[string]string{}, bad: map[string]error{}}
}

func (l *logs) List(context.Context, journal.Query) iter.Seq2[journal.Meta, error] {
	return func(yield func(journal.Meta, error) bool) {
		for i := len(l.ids) - 1; i >= 0; i-- {
			if !yield(l.metas[l.ids[i]], nil) {
				return
			}
		}
	}
}

func (l *logs) Read(_ context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		l.reads++
		for _, e := range l.all[id] {
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
		if err := l.bad[id]; err != nil {
			yield(agent.Event{}, err)
		}
	}
}

func (l *logs) Blob(_ context.Context, _, sha string) (io.ReadCloser, error) {
	if s, ok := l.blobs[sha]; ok {
		return io.NopCloser(strings.NewReader(s)), nil
	}
	return nil, errors.New("no such blob")
}

// add appends events to a session, which is made when there is none.
func (l *logs) add(id string, bodies ...agent.Body) {
	m, ok := l.metas[id]
	if !ok {
		m.ID, m.Workdir = id, "/home/user/"+id
		m.Created = begin.Add(time.Duration(len(l.ids)) * 24 * time.Hour).Format(time.RFC3339)
		l.ids = append(l.ids, id)
	}
	first, _ := time.Parse(time.RFC3339, m.Created)
	for _, b := range bodies {
		m.Head++
		at := first.Add(time.Duration(m.Head) * time.Minute)
		l.all[id] = append(l.all[id], agent.Event{Seq: m.Head, Epoch: 1, Time: at, ID: fmt.Sprintf("%s.%d", id, m.Head), Body: b})
		m.Updated = at.Format(time.RFC3339)
	}
	l.metas[id] = m
}

// spill returns a result of which the whole is a blob.
func (l *logs) spill(id, shown, whole string) agent.Result {
	sum := sha256.Sum256([]byte(whole))
	sha := hex.EncodeToString(sum[:])
	l.blobs[sha] = whole
	return agent.Result{ID: id, Status: agent.StatusOK, Text: shown, Spill: &agent.Spill{Handle: "output:" + sha[:12], SHA256: sha, Bytes: int64(len(whole)), Shown: len(shown)}}
}

func input(s string) agent.Body { return agent.InputAdded{Text: s} }

func answer(s string, calls ...agent.Call) agent.Body {
	m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: s}}}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
	}
	return agent.ModelAnswered{Answer: agent.Answer{Message: m}}
}

func call(id, tool string, in map[string]string) agent.Call {
	data, _ := json.Marshal(in)
	return agent.Call{ID: id, Tool: tool, Input: data}
}

func result(id, tool, s string) agent.Body {
	return agent.CallFinished{Tool: tool, Result: agent.Result{ID: id, Status: agent.StatusOK, Text: s}}
}

// A writer makes up text whose words are as frequent as those of languages are.
type writer struct {
	r              *rand.Rand
	latin, korean  []string
	often, oftenKo *rand.Zipf
}

func newWriter(seed uint64) *writer {
	w := &writer{r: rand.New(rand.NewPCG(seed, 7))}
	fixed := rand.New(rand.NewPCG(1, 2)) // all writers have the same words
	const vocabulary, vocabularyKo = 30_000, 8_000
	heads := strings.Fields("b br c ch d dr f fl g gr h j k l m n p pr qu r s st t tr v w z")
	vowels := strings.Fields("a e i o u ai ea io ou")
	for len(w.latin) < vocabulary {
		s := ""
		for range 1 + fixed.IntN(4) {
			s += heads[fixed.IntN(len(heads))] + vowels[fixed.IntN(len(vowels))]
		}
		w.latin = append(w.latin, s+[]string{"", "n", "r", "s", "t"}[fixed.IntN(5)])
	}
	for len(w.korean) < vocabularyKo {
		s := ""
		for range 2 + fixed.IntN(3) {
			s += string(rune(0xAC00 + fixed.IntN(399)*28 + fixed.IntN(8)))
		}
		w.korean = append(w.korean, s)
	}
	const skew = 1.07
	w.often = rand.NewZipf(w.r, skew, 4, vocabulary-1)
	w.oftenKo = rand.NewZipf(w.r, skew, 4, vocabularyKo-1)
	return w
}

func (w *writer) word() string { return w.latin[w.often.Uint64()] }

func (w *writer) wordKo() string {
	return w.korean[w.oftenKo.Uint64()] + []string{"은", "는", "이", "가", "을", "를", "에서", "으로", "", ""}[w.r.IntN(10)]
}

func (w *writer) line(kind int) string {
	switch kind {
	case 0: // code
		return fmt.Sprintf("\tif %s, err := %s.%s(ctx, %s); err != nil {\n\t\treturn fmt.Errorf(\"%s %s: %%w\", err)\n\t}\n",
			w.word(), w.word(), w.word(), w.word(), w.word(), w.word())
	case 1: // logs
		return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:%02dZ level=%s component=%s request=%08x %s %s took=%dms\n", 1+w.r.IntN(12), 1+w.r.IntN(28),
			w.r.IntN(24), w.r.IntN(60), w.r.IntN(60), []string{"info", "warn", "error"}[w.r.IntN(3)], w.word(), w.r.Uint32(), w.word(), w.word(), w.r.IntN(3000))
	case 2: // prose
		var s []string
		for range 14 {
			s = append(s, w.word())
		}
		return strings.Join(s, " ") + ".\n"
	default: // Korean
		var s []string
		for range 10 {
			s = append(s, w.wordKo())
		}
		return strings.Join(s, " ") + "다.\n"
	}
}

func (w *writer) text(kind, bytes int) string {
	var s strings.Builder
	for s.Len() < bytes {
		s.WriteString(w.line(kind))
	}
	return s.String()
}

// written is a source that makes its logs up when they are read: sessions of turns in
// which something is asked, a tool is called and something is answered.
type written struct {
	sessions, turns, bytes int // bytes of a result
}

func (s written) id(n int) string { return fmt.Sprintf("s%06d", n) }

func (s written) List(context.Context, journal.Query) iter.Seq2[journal.Meta, error] {
	return func(yield func(journal.Meta, error) bool) {
		for n := range s.sessions {
			var m journal.Meta
			at := begin.Add(time.Duration(n) * time.Hour).Format(time.RFC3339)
			m.ID, m.Workdir, m.Created, m.Updated, m.Head = s.id(n), fmt.Sprintf("/home/user/p%d", n%50), at, at, int64(4*s.turns)
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (s written) Read(_ context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		var n int
		fmt.Sscanf(id, "s%d", &n)
		w := newWriterOf(n)
		seq := int64(0)
		say := func(b agent.Body) bool {
			seq++
			at := begin.Add(time.Duration(n)*time.Hour + time.Duration(seq)*time.Second)
			return seq <= after || yield(agent.Event{Seq: seq, Epoch: 1, Time: at, ID: fmt.Sprintf("%s.%d", id, seq), Body: b}, nil)
		}
		for t := range s.turns {
			kind := (n + t) % 4
			c := call("c", "bash__exec", map[string]string{"command": w.word() + " -" + w.word() + " " + w.word() + "/" + w.word() + ".go"})
			if !say(input(w.text(2+t%2, 200))) || !say(answer(w.text(2+n%2, 600), c)) ||
				!say(result("c", "bash__exec", w.text(kind, s.bytes))) || !say(answer(w.text(2+n%2, 400))) {
				return
			}
		}
	}
}

func (s written) Blob(context.Context, string, string) (io.ReadCloser, error) {
	return nil, errors.New("no such blob")
}

var words0 = newWriter(1)

func newWriterOf(n int) *writer {
	w := *words0
	w.r = rand.New(rand.NewPCG(uint64(n), 7))
	const skew = 1.07
	w.often = rand.NewZipf(w.r, skew, 4, uint64(len(w.latin)-1))
	w.oftenKo = rand.NewZipf(w.r, skew, 4, uint64(len(w.korean)-1))
	return &w
}
