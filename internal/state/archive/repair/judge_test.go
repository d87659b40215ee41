package repair_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"dure/internal/prooftest"
	"dure/internal/state/archive/repair"
)

// judge says whether entries, as JSON, are messages that a provider takes. It knows
// nothing of the package: it reads what a command prints.
func judge(entries []map[string]any) error {
	ids, calls := map[string]bool{}, map[string]bool{}
	open := map[string]bool{} // calls of the message in front
	var message []map[string]any
	role := ""
	flush := func() error {
		err := judgeMessage(role, message, calls, open)
		message = nil
		return err
	}
	for i, e := range entries {
		id, _ := e["id"].(string)
		if id == "" || ids[id] {
			return fmt.Errorf("entry %d: ID %q", i, id)
		}
		ids[id] = true
		content, ok := e["content"].([]any)
		if !ok || len(content) == 0 {
			return fmt.Errorf("entry %s: content %v", id, e["content"])
		}
		r, _ := e["role"].(string)
		if role == "" && r != "user" {
			return fmt.Errorf("entry %s: it begins with %q", id, r)
		}
		if r != role {
			if err := flush(); err != nil {
				return fmt.Errorf("in front of entry %s: %w", id, err)
			}
			role = r
		}
		for _, b := range content {
			block, ok := b.(map[string]any)
			if !ok {
				return fmt.Errorf("entry %s: block %v", id, b)
			}
			message = append(message, block)
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if len(open) > 0 {
		return fmt.Errorf("never answered: %v", slices.Sorted(maps.Keys(open)))
	}
	return nil
}

var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func judgeMessage(role string, blocks []map[string]any, calls, open map[string]bool) error {
	said := false
	for i, b := range blocks {
		str := func(name string) string { s, _ := b[name].(string); return s }
		switch kind := str("type"); {
		case kind == "text" && strings.TrimSpace(str("text")) != "":
			said = true
		case kind == "tool_use" && role == "assistant":
			if _, ok := b["input"].(map[string]any); !ok || calls[str("id")] || !plainID.MatchString(str("id")) || !plainID.MatchString(str("name")) {
				return fmt.Errorf("call %v", b)
			}
			calls[str("id")], open[str("id")] = true, true
		case kind == "tool_result" && role == "user" && !said && open[str("tool_use_id")]:
			delete(open, str("tool_use_id"))
			if list, ok := b["content"].([]any); ok && len(list) == 0 {
				return fmt.Errorf("empty list in %v", b)
			}
		case kind == "thinking" && role == "assistant" && str("signature") != "" && i < len(blocks)-1:
		case kind == "redacted_thinking" && role == "assistant" && str("data") != "" && i < len(blocks)-1:
		case kind == "image" && role == "user":
			said = true
			source, _ := b["source"].(map[string]any)
			data, _ := source["data"].(string)
			if raw, err := base64.StdEncoding.DecodeString(data); err != nil || len(raw) == 0 {
				return fmt.Errorf("image %v", b)
			}
		default:
			return fmt.Errorf("block %v in a message of %q", b, role)
		}
	}
	if role == "user" && len(open) > 0 {
		return fmt.Errorf("not answered: %v", slices.Sorted(maps.Keys(open)))
	}
	return nil
}

// printed is a report as a command prints it.
type printed struct {
	Load      string           `json:"load"`
	Recovered []string         `json:"recovered_ids"`
	Repairs   []string         `json:"repairs"`
	Valid     bool             `json:"api_valid"`
	Warnings  []string         `json:"warnings"`
	Entries   []map[string]any `json:"entries"`
}

// judged checks data, and everything that must be so of any transcript.
func judged(data []byte) (printed, error) {
	before := bytes.Clone(data)
	rep, err := repair.Check(bytes.NewReader(data), int64(len(data)), repair.Options{})
	if err != nil {
		return printed{}, err
	}
	raw, err := json.Marshal(rep)
	if err != nil {
		return printed{}, err
	}
	var p printed
	if err := json.Unmarshal(raw, &p); err != nil {
		return printed{}, err
	}
	switch {
	case !bytes.Equal(data, before):
		return p, errors.New("the transcript was changed")
	case p.Load == "refused" && (p.Valid || len(p.Entries)+len(p.Recovered)+len(p.Repairs) > 0):
		return p, errors.New("something of a refused transcript was taken")
	case p.Load == "refused":
		return p, nil
	case !p.Valid:
		return p, errors.New("it says itself that it is not valid")
	case p.Load == "ok" && len(p.Repairs) > 0:
		return p, errors.New("mended, and nothing was wrong")
	case p.Load == "recovered" && len(p.Warnings) == 0:
		return p, errors.New("recovered, and nobody says from what")
	}
	if err := judge(p.Entries); err != nil {
		return p, err
	}
	kept := map[string]bool{}
	for _, id := range p.Recovered {
		if kept[id] {
			return p, fmt.Errorf("%s was recovered twice", id)
		}
		kept[id] = true
	}
	for _, e := range p.Entries {
		id := e["id"].(string)
		made, isResult := strings.CutPrefix(id, "result-")
		switch {
		case kept[id], id == "beginning":
		case isResult && slices.ContainsFunc(p.Repairs, func(s string) bool {
			call, ok := strings.CutPrefix(s, "synthesize-error-result:")
			return ok && strings.HasPrefix(made, call)
		}):
		case slices.ContainsFunc(p.Recovered, func(of string) bool { return strings.HasPrefix(id, of+"-") }): // a part of it
		default:
			return p, fmt.Errorf("%s was made up, and no repair says so", id)
		}
	}
	var out bytes.Buffer
	if err := rep.Write(&out); err != nil {
		return p, err
	}
	again, err := repair.Check(&out, int64(out.Len()), repair.Options{Session: rep.Session})
	if err != nil {
		return p, err
	}
	second, err := json.Marshal(again.Entries)
	if err != nil {
		return p, err
	}
	if first, _ := json.Marshal(rep.Entries); again.Load != repair.Loaded || len(again.Repairs) > 0 || !bytes.Equal(first, second) {
		return p, fmt.Errorf("the second time: %s %v %q\n%s\n%s", again.Load, again.Repairs, again.Warnings, first, second)
	}
	return p, nil
}

// A pile is lines of a transcript, each with a mark that stands nowhere else.
type pile struct {
	lines []string
	marks []string
	calls [][]string // calls that a line makes
	needs [][]string // calls that it answers
	timed bool
}

func newPile(r *rand.Rand) *pile {
	p := &pile{timed: r.IntN(2) == 0}
	add := func(role string, content any, calls, needs []string) {
		n := len(p.lines)
		rec := map[string]any{"id": fmt.Sprintf("id%d", n), "role": role, "content": content}
		if p.timed {
			rec["timestamp"] = fmt.Sprintf("2026-01-01T%02d:%02d:00.5Z", n/60, n%60)
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(r.IntN(2) == 0)
		if err := enc.Encode(rec); err != nil {
			panic(err)
		}
		p.lines = append(p.lines, strings.TrimSpace(b.String()))
		p.calls, p.needs = append(p.calls, calls), append(p.needs, needs)
	}
	mark := func() string {
		m := fmt.Sprintf("<mark-%d>", len(p.lines))
		p.marks = append(p.marks, m)
		return m
	}
	texts := []string{"안녕 ", "a \"b\" {c} [d], ", "\\ud83d\n\t", "😀 }{ ", `{"id":"evil","role":"user","content":"x"} `, "tail  "}
	text := func() any {
		return map[string]any{"type": "text", "text": texts[r.IntN(len(texts))] + mark()}
	}
	for turn := range 1 + r.IntN(4) {
		if r.IntN(4) == 0 {
			add("user", "as a string "+mark(), nil, nil)
		} else {
			add("user", []any{text()}, nil, nil)
		}
		for step := range r.IntN(3) {
			content := []any{text()}
			if r.IntN(3) == 0 {
				content = append([]any{map[string]any{"type": "thinking", "thinking": "hm", "signature": "c2ln"}}, content...)
			}
			var calls []string
			var results []any
			for k := range 1 + r.IntN(3) {
				id := fmt.Sprintf("call-%d-%d-%d", turn, step, k)
				calls = append(calls, id)
				content = append(content, map[string]any{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"role": "user", "content": "nested"}})
			}
			add("assistant", content, calls, nil)
			at := mark()
			for i, id := range calls {
				out := any("out")
				if i == 0 {
					out = []any{map[string]any{"type": "text", "text": at}}
				}
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": id, "content": out})
			}
			add("user", results, nil, calls)
		}
		add("assistant", []any{text()}, nil, nil)
	}
	return p
}

func utf16Of(s string, big, mark bool) []byte {
	var b bytes.Buffer
	put := func(u uint16) {
		if big {
			b.Write([]byte{byte(u >> 8), byte(u)})
		} else {
			b.Write([]byte{byte(u), byte(u >> 8)})
		}
	}
	if mark {
		put(0xfeff)
	}
	for _, u := range utf16.Encode([]rune(s)) {
		put(u)
	}
	return b.Bytes()
}

func indented(lines []string) string {
	var b bytes.Buffer
	for _, l := range lines {
		if err := json.Indent(&b, []byte(l), "", "  "); err != nil {
			panic(err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// wholeFile is what happens to a file without one record of it being damaged.
var wholeFile = map[string]func(r *rand.Rand, l []string) []byte{
	"as it is":             func(_ *rand.Rand, l []string) []byte { return []byte(lines(l...)) },
	"no newline":           func(_ *rand.Rand, l []string) []byte { return []byte(strings.Join(l, "\n")) },
	"mark":                 func(_ *rand.Rand, l []string) []byte { return []byte("\xef\xbb\xbf" + lines(l...)) },
	"CRLF":                 func(_ *rand.Rand, l []string) []byte { return []byte(strings.Join(l, "\r\n") + "\r\n") },
	"CR":                   func(_ *rand.Rand, l []string) []byte { return []byte(strings.Join(l, "\r")) },
	"blank lines":          func(_ *rand.Rand, l []string) []byte { return []byte("\n \n" + strings.Join(l, " \t\n\n\r\n")) },
	"on one line":          func(_ *rand.Rand, l []string) []byte { return []byte(strings.Join(l, "")) },
	"on one line, spaced":  func(_ *rand.Rand, l []string) []byte { return []byte(strings.Join(l, " \t ")) },
	"laid out":             func(_ *rand.Rand, l []string) []byte { return []byte(indented(l)) },
	"laid out, CRLF":       func(_ *rand.Rand, l []string) []byte { return []byte(strings.ReplaceAll(indented(l), "\n", "\r\n")) },
	"UTF-16":               func(_ *rand.Rand, l []string) []byte { return utf16Of(lines(l...), false, true) },
	"UTF-16, big":          func(_ *rand.Rand, l []string) []byte { return utf16Of(lines(l...), true, true) },
	"UTF-16, no mark":      func(_ *rand.Rand, l []string) []byte { return utf16Of(lines(l...), false, false) },
	"UTF-16, big, no mark": func(_ *rand.Rand, l []string) []byte { return utf16Of(lines(l...), true, false) },
	"two copies":           func(_ *rand.Rand, l []string) []byte { return []byte(lines(l...) + "\xef\xbb\xbf" + lines(l...)) },
	"each twice": func(_ *rand.Rand, l []string) []byte {
		return []byte(strings.Join(l, "\n") + "\n" + strings.Join(l, "\n"))
	},
	"mixed ends": func(r *rand.Rand, l []string) []byte {
		var b bytes.Buffer
		for _, s := range l {
			b.WriteString(s + []string{"\n", "\r\n", "\r", "\n\n", " \n", "\r\r\n"}[r.IntN(6)])
		}
		return b.Bytes()
	},
	"zeros between": func(r *rand.Rand, l []string) []byte {
		var b bytes.Buffer
		for _, s := range l {
			b.Write(make([]byte, r.IntN(3)*4096))
			b.WriteString(s + "\n")
		}
		return append(b.Bytes(), make([]byte, r.IntN(512))...)
	},
	"one line wrapped": func(r *rand.Rand, l []string) []byte {
		l = slices.Clone(l)
		i := r.IntN(len(l))
		at := 1 + r.IntN(len(l[i])-1)
		for l[i][at]&0xc0 == 0x80 { // an editor wraps between characters
			at--
		}
		l[i] = l[i][:at] + "\n" + l[i][at:]
		return []byte(lines(l...))
	},
	"a torn end": func(r *rand.Rand, l []string) []byte {
		torn := `{"id":"torn","role":"user","content":[{"type":"text","text":"안녕하세요"}]}`
		return []byte(lines(l...) + torn[:1+r.IntN(len(torn)-1)])
	},
	"torn lines between": func(r *rand.Rand, l []string) []byte {
		torn := `{"id":"torn","role":"user","content":[{"type":"text","text":"안녕하세요"}]}`
		l = slices.Clone(l)
		for range 3 {
			l = slices.Insert(l, r.IntN(len(l)+1), torn[:1+r.IntN(len(torn)-1)])
		}
		return []byte(lines(l...))
	},
}

func TestWholeFile(t *testing.T) {
	for name, change := range wholeFile {
		for seed := range runs(4, 100) {
			r := rand.New(rand.NewPCG(7, uint64(seed)))
			p := newPile(r)
			data := change(r, p.lines)
			got, err := judged(data)
			var want []string
			for i := range p.lines {
				want = append(want, fmt.Sprintf("id%d", i))
			}
			if err == nil && !slices.Equal(got.Recovered, want) {
				err = fmt.Errorf("recovered %v", got.Recovered)
			}
			if err == nil {
				err = once(got, p, p.lines, func(int) bool { return true })
			}
			if err != nil {
				t.Fatalf("%s, seed %d: %v\n%q\nof\n%s", name, seed, err, got.Warnings, data)
			}
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(lines(hello, done)))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := judged(packed.Bytes()); err != nil || got.Load != "refused" {
		t.Error(got, err)
	}
}

func runs(n, longer int) int {
	if prooftest.Long() {
		return longer * n
	}
	return n
}

// once checks that what a record says stands there once when it must, and never more
// often than on lines that differ.
func once(p printed, of *pile, l []string, must func(i int) bool) error {
	raw, err := json.Marshal(p.Entries)
	if err != nil {
		return err
	}
	for i, m := range of.marks {
		quoted, _ := json.Marshal(m)
		n := bytes.Count(raw, bytes.Trim(quoted, `"`))
		differ := map[string]bool{}
		for at, s := range l {
			if strings.Contains(s, strings.Trim(m, "<>")) {
				if !strings.Contains(s, `"id":"i`) { // it may have been said twice
					s = fmt.Sprint(at, s)
				}
				differ[s] = true
			}
		}
		if must(i) && n == 0 || n > max(1, len(differ)) {
			return fmt.Errorf("record %d stands there %d times", i, n)
		}
	}
	return nil
}

// A misfit changes one record, or where it stands.
var misfits = map[string]func(r *rand.Rand, l []string, i int) []string{
	"cut":           func(r *rand.Rand, l []string, i int) []string { l[i] = l[i][:r.IntN(len(l[i]))]; return l },
	"headless":      func(r *rand.Rand, l []string, i int) []string { l[i] = l[i][1+r.IntN(len(l[i])-1):]; return l },
	"gone":          func(_ *rand.Rand, l []string, i int) []string { l[i] = ""; return l },
	"twice":         func(r *rand.Rand, l []string, i int) []string { return slices.Insert(l, r.IntN(len(l)+1), l[i]) },
	"no ID":         edit(func(_ *rand.Rand, f map[string]any) { delete(f, "id") }),
	"ID a number":   edit(func(r *rand.Rand, f map[string]any) { f["id"] = r.IntN(1000) + 1000 }),
	"ID an object":  edit(func(_ *rand.Rand, f map[string]any) { f["id"] = map[string]any{"a": 1} }),
	"ID null":       edit(func(_ *rand.Rand, f map[string]any) { f["id"] = nil }),
	"ID of another": edit(func(_ *rand.Rand, f map[string]any) { f["id"] = "id0" }),
	"long ID":       edit(func(_ *rand.Rand, f map[string]any) { f["id"] = strings.Repeat("x", 5000) }),
	"no time":       edit(func(_ *rand.Rand, f map[string]any) { delete(f, "timestamp") }),
	"time no time":  edit(func(_ *rand.Rand, f map[string]any) { f["timestamp"] = "yesterday" }),
	"time a list":   edit(func(_ *rand.Rand, f map[string]any) { f["timestamp"] = []any{1} }),
	"role unknown":  edit(func(_ *rand.Rand, f map[string]any) { f["role"] = "developer" }),
	"role system":   edit(func(_ *rand.Rand, f map[string]any) { f["role"] = "system" }),
	"role a number": edit(func(_ *rand.Rand, f map[string]any) { f["role"] = 7 }),
	"no role":       edit(func(_ *rand.Rand, f map[string]any) { delete(f, "role") }),
	"other role": edit(func(_ *rand.Rand, f map[string]any) {
		f["role"] = map[any]string{"user": "assistant", "assistant": "user"}[f["role"]]
	}),
	"content null":     edit(func(_ *rand.Rand, f map[string]any) { f["content"] = nil }),
	"content empty":    edit(func(_ *rand.Rand, f map[string]any) { f["content"] = []any{} }),
	"content a number": edit(func(_ *rand.Rand, f map[string]any) { f["content"] = 5 }),
	"content blank":    edit(func(_ *rand.Rand, f map[string]any) { f["content"] = " \n" }),
	"content a block":  edit(func(_ *rand.Rand, f map[string]any) { f["content"] = map[string]any{"type": "text", "text": "alone"} }),
	"no content":       edit(func(_ *rand.Rand, f map[string]any) { delete(f, "content") }),
	"odd blocks": edit(func(_ *rand.Rand, f map[string]any) {
		f["content"] = []any{
			nil, 1, "s",
			[]any{},
			map[string]any{},
			map[string]any{"type": "text"},
			map[string]any{"type": "text", "text": 1},
			map[string]any{"type": "hologram"},
			map[string]any{"type": "tool_use"},
			map[string]any{"type": "tool_use", "id": 1, "name": "x"},
			map[string]any{"type": "tool_result"},
			map[string]any{"type": "tool_use", "id": "ö.1", "name": "a.b", "input": []any{}},
			map[string]any{"type": "tool_use", "id": "ü.1", "name": "", "input": "{}"},
			map[string]any{"type": "tool_result", "tool_use_id": "ü.1", "content": []any{map[string]any{"type": "text", "text": ""}}, "is_error": true},
			map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "!!!"}},
			map[string]any{"type": "thinking", "thinking": "x"},
			map[string]any{"type": "redacted_thinking", "data": "x"},
			map[string]any{"type": "thinking", "thinking": "x", "signature": "s"},
		}
	}),
	"only thinking": edit(func(_ *rand.Rand, f map[string]any) {
		f["content"] = []any{map[string]any{"type": "redacted_thinking", "data": "x"}, map[string]any{"type": "thinking", "thinking": "", "signature": "s"}}
	}),
	"half a call": edit(func(_ *rand.Rand, f map[string]any) {
		if list, ok := f["content"].([]any); ok && len(list) > 1 {
			f["content"] = list[:len(list)-1]
		}
	}),
	"result twice": edit(func(_ *rand.Rand, f map[string]any) {
		list, _ := f["content"].([]any)
		if n := len(list); n > 0 && strings.Contains(fmt.Sprint(list[n-1]), "tool_use_id") {
			f["content"] = append(list, list[n-1])
		}
	}),
	"another session": edit(func(_ *rand.Rand, f map[string]any) { f["session"] = "another" }),
	"deep": edit(func(_ *rand.Rand, f map[string]any) {
		f["deep"] = json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))
	}),
	"half a character": func(_ *rand.Rand, l []string, i int) []string {
		l[i] = strings.Replace(l[i], `mark-`, `\udc00mark-`, 1)
		return l
	},
	"a key twice": func(_ *rand.Rand, l []string, i int) []string {
		l[i] = `{"role":"user","content":"first",` + l[i][1:]
		return l
	},
	"a key twice, before": func(_ *rand.Rand, l []string, i int) []string {
		l[i] = l[i][:len(l[i])-1] + `,"role":"assistant","id":"second"}`
		return l
	},
	"flipped": func(r *rand.Rand, l []string, i int) []string {
		b := []byte(l[i])
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		l[i] = string(b)
		return l
	},
	"not UTF-8": func(r *rand.Rand, l []string, i int) []string {
		at := r.IntN(len(l[i]))
		l[i] = l[i][:at] + "\xff\xc3" + l[i][at:]
		return l
	},
	"zeros over it": func(r *rand.Rand, l []string, i int) []string {
		at := r.IntN(len(l[i]))
		l[i] = l[i][:at] + strings.Repeat("\x00", len(l[i])-at)
		return l
	},
	"swapped": func(r *rand.Rand, l []string, i int) []string {
		j := r.IntN(len(l))
		l[i], l[j] = l[j], l[i]
		return l
	},
}

func edit(f func(r *rand.Rand, fields map[string]any)) func(*rand.Rand, []string, int) []string {
	return func(r *rand.Rand, l []string, i int) []string {
		var m map[string]any
		if json.Unmarshal([]byte(l[i]), &m) != nil {
			return l // something else has happened to it
		}
		f(r, m)
		raw, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		l[i] = string(raw)
		return l
	}
}

// TestMisfits damages records in every way, one or several at a time: all the others
// are kept, once.
func TestMisfits(t *testing.T) {
	names := slices.Sorted(maps.Keys(misfits))
	for seed := range runs(160, 250) {
		r := rand.New(rand.NewPCG(8, uint64(seed)))
		p := newPile(r)
		l := slices.Clone(p.lines)
		var did []string
		for n := range 1 + r.IntN(3) {
			name := names[r.IntN(len(names))]
			if n == 0 {
				name = names[seed%len(names)]
			}
			if i := r.IntN(len(l)); len(l[i]) > 1 {
				did = append(did, name)
				l = misfits[name](r, l, i)
			}
		}
		data := []byte(lines(l...))
		got, err := judged(data)
		if err == nil && got.Load == "refused" && slices.ContainsFunc(p.marks, func(m string) bool { return survives(p, l, slices.Index(p.marks, m)) }) {
			err = errors.New("it was refused")
		}
		if err == nil {
			err = once(got, p, l, func(i int) bool { return survives(p, l, i) })
		}
		if err != nil && len(p.lines) > 1 {
			t.Fatalf("seed %d, %v: %v\n%q\n%q\nof\n%s", seed, did, err, got.Warnings, got.Repairs, data)
		}
	}
}

// survives reports whether record i must be kept: its line stands there as it was,
// and so do, for results, those that make their calls, with nobody else's results.
func survives(p *pile, l []string, i int) bool {
	whole := func(i int) bool { return slices.Contains(l, p.lines[i]) }
	if !whole(i) || strings.Contains(strings.Join(l, "\n"), `"session":"another"`) {
		return false
	}
	for j := range p.lines {
		related := slices.ContainsFunc(p.needs[i], func(id string) bool { return slices.Contains(p.calls[j], id) || slices.Contains(p.needs[j], id) })
		if related && !whole(j) {
			return false
		}
	}
	return true
}
