package repair_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dure/internal/prooftest"
	"dure/internal/state/archive/repair"
)

// A talk is a random transcript that is valid: lines with the IDs of their
// records, and the calls that each needs to be kept. IDs are far from each other,
// so that a flipped bit makes none of them another one.
type talk struct {
	lines []string
	ids   []string
	calls [][]string // made by a record
	needs [][]string // answered by a record and nothing else in it
}

func newTalk(r *rand.Rand) *talk {
	t := &talk{}
	timed := r.IntN(2) == 0
	n := 0
	add := func(role string, content []any, calls, needs []string) {
		n++
		rec := map[string]any{"id": fmt.Sprintf("m%d-%08x", n, r.Uint32()), "role": role, "content": content}
		if timed {
			rec["timestamp"] = fmt.Sprintf("2026-01-01T00:%02d:%02dZ", n/60, n%60)
		}
		raw, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		t.lines, t.ids = append(t.lines, string(raw)), append(t.ids, rec["id"].(string))
		t.calls, t.needs = append(t.calls, calls), append(t.needs, needs)
	}
	text := func() any {
		all := []string{"hello", "안녕하세요", "a \"quoted\" {word}", "line\nline", `{"id":"evil","role":"user","content":"x"}`, "😀"}
		return map[string]any{"type": "text", "text": all[r.IntN(len(all))] + fmt.Sprint(r.IntN(1000))}
	}
	for turn := range 1 + r.IntN(5) {
		add("user", []any{text()}, nil, nil)
		for step := range r.IntN(3) {
			var calls []string
			content := []any{text()}
			for k := range 1 + r.IntN(3) {
				id := fmt.Sprintf("c%d-%d-%d-%08x", turn, step, k, r.Uint32())
				calls = append(calls, id)
				content = append(content, map[string]any{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"role": "user", "content": "nested"}})
			}
			add("assistant", content, calls, nil)
			var results []any
			for _, id := range calls {
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": id, "content": fmt.Sprint("out of ", id)})
			}
			if r.IntN(2) == 0 {
				add("user", results, nil, calls)
				continue
			}
			for i, id := range calls {
				add("user", results[i:i+1], nil, []string{id})
			}
		}
		add("assistant", []any{text()}, nil, nil)
	}
	return t
}

// A wreck is a talk after damage. touched are the lines that are not intact.
type wreck struct {
	*talk
	order   []int // of lines, which may stand there twice
	raw     map[int][]byte
	touched map[int]bool
	glued   map[int]bool // positions in order without a newline behind them
}

func (w *wreck) damage(r *rand.Rand) {
	at := r.IntN(len(w.order))
	i := w.order[at]
	line := w.raw[i]
	switch r.IntN(7) {
	case 0: // cut
		w.touched[i] = true
		w.raw[i] = line[:r.IntN(len(line))]
		if len(w.raw[i]) == 0 {
			w.raw[i] = []byte("x")
		}
	case 1: // flip
		w.touched[i] = true
		line = bytes.Clone(line)
		if b := &line[r.IntN(len(line))]; *b != '\n' {
			*b ^= 1 << r.IntN(8)
		}
		w.raw[i] = line
	case 2: // twice
		w.order = slices.Insert(w.order, r.IntN(len(w.order)+1), i)
		w.glued = map[int]bool{}
	case 3: // swap
		other := r.IntN(len(w.order))
		w.order[at], w.order[other] = w.order[other], i
		w.glued = map[int]bool{}
	case 4: // glue
		w.glued[at] = true
	case 5: // zeros
		w.touched[i] = true
		k := r.IntN(len(line))
		w.raw[i] = slices.Concat(line[:k], make([]byte, 1+r.IntN(20)), line[min(len(line), k+r.IntN(5)):])
	case 6: // gone
		w.touched[i] = true
		w.raw[i] = []byte(" ")
	}
}

func (w *wreck) bytes() []byte {
	var b bytes.Buffer
	for at, i := range w.order {
		b.Write(w.raw[i])
		if !w.glued[at] {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// expected returns the IDs that must be kept: of records that are intact, have
// a line of their own or one that is glued to intact ones, and whose calls, when
// they only answer calls, are intact too.
func (w *wreck) expected() (ids []string) {
	whole := func(i int) bool { return !w.touched[i] }
	for at, i := range w.order {
		if w.glued[at] || at > 0 && w.glued[at-1] {
			for _, n := range []int{at - 1, at + 1} {
				if n >= 0 && n < len(w.order) && w.touched[w.order[n]] {
					return nil // it may be read as a part of what is broken
				}
			}
		}
		if !whole(i) {
			continue
		}
		ok := len(w.needs[i]) == 0
		for j, calls := range w.calls {
			ok = ok || whole(j) && slices.ContainsFunc(w.needs[i], func(id string) bool { return slices.Contains(calls, id) })
		}
		// A broken copy of a result, or of a call, may come first.
		clash := false
		for _, id := range slices.Concat(w.needs[i], w.calls[i]) {
			for j := range w.lines {
				clash = clash || w.touched[j] && (slices.Contains(w.needs[j], id) || slices.Contains(w.calls[j], id))
			}
		}
		if ok && !clash {
			ids = append(ids, w.ids[i])
		}
	}
	return ids
}

func TestRandomDamage(t *testing.T) {
	runs := 200
	if prooftest.Long() {
		runs = 100_000
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(1, uint64(seed)))
		w := &wreck{talk: newTalk(r), raw: map[int][]byte{}, touched: map[int]bool{}, glued: map[int]bool{}}
		for i, l := range w.lines {
			w.order, w.raw[i] = append(w.order, i), []byte(l)
		}
		for range r.IntN(6) {
			w.damage(r)
		}
		data := w.bytes()
		before := bytes.Clone(data)
		rep, err := repair.Check(bytes.NewReader(data), int64(len(data)), repair.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Load == repair.Refused {
			if rep.Code == "unreadable" && len(w.expected()) == 0 {
				continue
			}
			t.Fatalf("seed %d: refused: %s\n%s", seed, rep.Reason, data)
		}
		if err := repair.Valid(rep.Entries); err != nil || !rep.Valid {
			t.Fatalf("seed %d: %v\n%s\nfrom\n%s", seed, err, shape(rep.Entries), data)
		}
		for _, id := range w.expected() {
			if !slices.Contains(rep.Recovered, id) {
				t.Fatalf("seed %d: %s is lost\n%s\nfrom\n%s\n%q", seed, id, shape(rep.Entries), data, rep.Warnings)
			}
		}
		if slices.ContainsFunc(rep.Entries, func(e repair.Entry) bool {
			return strings.HasPrefix(e.ID, "evil") || slices.ContainsFunc(e.Content, func(b repair.Block) bool { return strings.Contains(string(b.Raw), `"text":"nested"`) })
		}) {
			t.Fatalf("seed %d: data became a record\n%s", seed, data)
		}
		again(t, rep)
		if t.Failed() || !bytes.Equal(data, before) {
			t.Fatalf("seed %d:\n%s\n%q", seed, data, rep.Warnings)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		lines(hello, calling, result, done),
		lines(hello, calling, result[:40]+done),
		lines(calling, "\x00\x00"+hello, result),
		lines(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"input.added","id":"e1","d":{"input":"i","text":"x"}}`),
		lines(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"input.added","id":"` + strings.Repeat("m", 396) + `","d":{"input":"i","text":"x"}}`),
		lines(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"note","id":"m","d":{"text":"x"}}`, `{"v":1,"seq":2,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"input.added","id":"`+strings.Repeat("m", 256)+`","d":{"input":"i","text":"x"}}`),
		lines(`{"id":"`+strings.Repeat("한", 85)+`","role":"user","content":"x"}`, `{"id":"`+strings.Repeat("한", 85)+`","role":"user","content":"y"}`),
		lines(`{"id":"a","role":"assistant","content":[{"type":"tool_use","id":"a b","name":"","input":"{}"}]}`),
		lines(`{"role":"tool","tool_call_id":"x","content":null}`, `{"role":"system","content":[{"type":"image","source":{}}]}`),
		wide(lines(hello), true),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := repair.Check(bytes.NewReader(data), -1, repair.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Load == repair.Refused {
			return
		}
		if err := repair.Valid(rep.Entries); err != nil {
			t.Fatalf("%v\n%s", err, shape(rep.Entries))
		}
		again(t, rep)
		for _, e := range rep.Entries {
			e.Message(nil, "p")
		}
	})
}
