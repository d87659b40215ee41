package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/prooftest"
)

// blobs is a place for what does not fit.
type blobs map[string]string

func (b blobs) put(_ context.Context, r io.Reader) (string, int64, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(all)
	b[hex.EncodeToString(sum[:])] = string(all)
	return hex.EncodeToString(sum[:]), int64(len(all)), nil
}

// stream is a result's stream.
type stream struct {
	io.Reader
	closed bool
}

func (s *stream) Close() error { s.closed = true; return nil }

var (
	shell = agent.Spec{Name: "bash__exec", Group: "system", Budget: 10_000}
	read  = agent.Spec{Name: "file-system__read", Group: "files", Budget: 12_000}
)

// Secrets are put together here so that no scanner takes this file for a leak.
var (
	githubToken = "ghp_" + strings.Repeat("aB3d", 9)
	openaiKey   = "sk-" + "proj-" + strings.Repeat("Ab1", 14)
	privKey     = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("MIIEabcdefghij0123456789+/\n", 12) + "-----END RSA " + "PRIVATE KEY-----"
	jwtToken    = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38:5:1mx", "red x"},
		{"cursor", "a\x1b[2J\x1b[H\x1b7b\x1b(Bc", "abc"},
		{"title", "\x1b]0;evil\ab\x1b]52;c;ZXZpbA==\x1b\\c", "bc"},
		{"device strings", "a\x1bPq#0\x1b\\b\x1b_x\x1b\\c", "abc"},
		{"sequence without an end", "a\x1b[12\nb\x1b]0;title", "a[12\nb]0;title"},
		{"forms of the end", "a\x1b]0;x\u009cb\u009d0;y\x07c\x1bPq\x18d", "abcd"},
		{"lone escape", "a\x1b", "a"},
		{"eight bit", "a\u009b31mb\u0085", "ab"},
		{"control characters", "a\x00\a\v\f\x7fb", "ab"},
		{"carriage returns", "a\r\nb\r\r\nc 10%\rc 20%\r", "a\nb\nc 20%"},
		{"invalid UTF-8", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"other scripts", "두레 ✓ é", "두레 ✓ é"},

		{"github", "x " + githubToken + " y", "x [redacted:github-token] y"},
		{"openai", openaiKey, "[redacted:openai-key]"},
		{"anthropic", "key=sk-" + "ant-api03-" + strings.Repeat("xY_9", 10) + ";", "key=[redacted:anthropic-key];"},
		{"aws", "AKIA" + "IOSFODNN7EXAMPLE", "[redacted:aws-key]"},
		{"aws secret", "aws_secret_access_key = " + strings.Repeat("aB3/", 10), "aws_secret_access_key = [redacted:aws-secret]"},
		{"jwt", "token " + jwtToken + ".", "token [redacted:jwt]."},
		{"private key", "a\n" + privKey + "\nb", "a\n[redacted:private-key]\nb"},
		{"private key in a string", strings.ReplaceAll("\""+privKey+"\"", "\n", `\n`), `"[redacted:private-key]"`},
		{"private key that was cut off", privKey[:200], "[redacted:private-key]"},
		{"password in a URL", "postgres://me:s3cret@db:5432/x?a=b", "postgres://me:[redacted:password]@db:5432/x?a=b"},
		{"bearer", "Authorization: Bearer abcDEF123456789ghijk", "Authorization: Bearer [redacted:bearer-token]"},
		{"basic", "Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted:basic-auth]"},
		{"environment", "HOME=/x\nMY_API_KEY=abcdefgh12345678\nDB_PASSWORD='hunter22'\n", "HOME=/x\nMY_API_KEY=[redacted:secret]\nDB_PASSWORD='[redacted:password]'\n"},
		{"behind colours", "\x1b[31msk-" + "\x1b[0m" + openaiKey[3:], "[redacted:openai-key]"},

		{"a word with a trigger in it", "desk-and-chair-for-12-people-in-a-room task-sk-spinner-rotating-plane", "desk-and-chair-for-12-people-in-a-room task-sk-spinner-rotating-plane"},
		{"talk about keys", "-----BEGIN RSA " + "PRIVATE KEY----- is how it begins", "-----BEGIN RSA " + "PRIVATE KEY----- is how it begins"},
		{"URLs", "https://a.example:8080/@x http://[::1]:80/ git://u@h/x", "https://a.example:8080/@x http://[::1]:80/ git://u@h/x"},
		{"placeholders", "API_KEY=$API_KEY postgres://u:$PASS@h PASSWORD=<password>", "API_KEY=$API_KEY postgres://u:$PASS@h PASSWORD=<password>"},
		{"code", "const apiKey = getKey(); token := parse(s); CACHE_KEY=modules-v1-abcdef", "const apiKey = getKey(); token := parse(s); CACHE_KEY=modules-v1-abcdef"},
		{"hashes", "3f786850e387550fdaf836ed7e6dc881de23001b eyJ", "3f786850e387550fdaf836ed7e6dc881de23001b eyJ"},
	} {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if again := Clean(tt.want); again != tt.want {
			t.Errorf("%s: cleaning twice gives %q", tt.name, again)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec agent.Spec
		in   agent.Result
		want agent.Result
	}{
		{"clean", shell, agent.OK("hi"), agent.OK("hi")},
		{"nothing", shell, agent.OK(""), agent.OK("[no output]")},
		{"only structure", shell, agent.Result{Status: agent.StatusOK, Output: json.RawMessage(`{"a":1}`)}, agent.Result{Status: agent.StatusOK, Output: json.RawMessage(`{"a":1}`)}},
		{
			"structure is cleaned, and stays as it was otherwise", shell,
			agent.Result{Text: "x", Output: json.RawMessage(`{ "z":"\u001b[1mb\u001b[0m","a":["` + githubToken + `",1.50,"\"\\"] }`)},
			agent.Result{Text: "x", Output: json.RawMessage(`{ "z":"b","a":["[redacted:github-token]",1.50,"\"\\"] }`), Meta: redacted(`"github-token"`)},
		},
		{
			"a key with its line ends escaped", shell,
			agent.Result{Text: "x", Output: json.RawMessage(`{"a":"` + strings.ReplaceAll(privKey, "\n", `\n`) + `"}`)},
			agent.Result{Text: "x", Output: json.RawMessage(`{"a":"[redacted:private-key]"}`), Meta: redacted(`"private-key"`)},
		},
		{
			"failure", shell, agent.Failure(agent.ErrTool, "no \x1b[31m"+githubToken, strings.Repeat("é", 1200)),
			agent.Result{
				Status: agent.StatusError, Text: "no [redacted:github-token]\n" + strings.Repeat("é", 1200),
				Error: &agent.ToolError{Code: agent.ErrTool, Message: "no [redacted:github-token]", Suggestion: strings.Repeat("é", 985) + "... (truncated)"},
				Meta:  redacted(`"github-token"`),
			},
		},
		{
			"failure without words", shell,
			agent.Result{Status: agent.StatusError, Error: &agent.ToolError{Code: agent.ErrTool, Message: "no"}},
			agent.Result{Status: agent.StatusError, Text: "no", Error: &agent.ToolError{Code: agent.ErrTool, Message: "no"}},
		},
		{"binary", shell, agent.OK("\x89PNG\r\n\x1a\n\x00\x00"), agent.OK("[binary output, 10 bytes, PNG image: not shown]")},
		{"mostly no text", shell, agent.OK("\x01\x02\x03abc"), agent.OK("[binary output, 6 bytes: not shown]")},
		{"a file is shown as it is", read, agent.OK("1\t4111 1111 1111 1111\r\n2\t\x1b[1m\a\u202e\u009d0;x\u0090\u0085"), agent.OK("1\t4111 1111 1111 1111\n2\t␛[1m␇⟨U+202E⟩⟨U+009D⟩0;x⟨U+0090⟩⟨U+0085⟩")},
		{
			"meta and blocks", shell,
			agent.Result{Text: "x", Meta: map[string]json.RawMessage{"m": json.RawMessage(`"` + githubToken + `"`)}, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "\x1b[1mb"}}},
			agent.Result{Text: "x", Meta: map[string]json.RawMessage{"m": json.RawMessage(`"[redacted:github-token]"`), "redacted": json.RawMessage(`["github-token"]`)}, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "b"}}},
		},
		{
			"a member whose name says what it is, and a number", shell,
			agent.Result{Text: "x", Output: json.RawMessage(`{"password":"hunter22","n":4111111111111111,"m":12}`)},
			agent.Result{Text: "x", Output: json.RawMessage(`{"password":"[redacted:password]","n":"[redacted:card:1111]","m":12}`), Meta: redacted(`"card","password"`)},
		},
		{
			"what else there is stays", shell,
			agent.Result{ID: "i", Text: "x", Handle: "h", Files: []agent.FileState{{Path: "/a"}}},
			agent.Result{ID: "i", Text: "x", Handle: "h", Files: []agent.FileState{{Path: "/a"}}},
		},
	} {
		in := fmt.Sprintf("%+v", tt.in)
		got, err := New(Config{}).Check(t.Context(), tt.spec, agent.Call{}, tt.in)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v\nwant %+v", tt.name, got, err, tt.want)
		}
		if tt.in.Error == nil && fmt.Sprintf("%+v", tt.in) != in {
			t.Errorf("%s: the result that was handed in has changed", tt.name)
		}
	}
}

// redacted is what a result says of its masks.
func redacted(kinds string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"redacted": json.RawMessage("[" + kinds + "]")}
}

func TestCheckWithholds(t *testing.T) {
	broken := errors.New("disk on fire")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		in   agent.Result
		want string
	}{
		{"structure that is none", t.Context(), agent.Result{Text: "x", Output: json.RawMessage(`{"a`)}, "cleaning the structured output: it is no valid JSON"},
		{"stream that breaks at once", t.Context(), agent.Result{Stream: &stream{Reader: iotest.ErrReader(broken)}}, "reading the output: disk on fire"},
		{"stream that breaks later", t.Context(), agent.Result{Stream: &stream{Reader: io.MultiReader(strings.NewReader(strings.Repeat("x\n", 50_000)), iotest.ErrReader(broken))}}, "reading the output: disk on fire"},
		{"context over", over, agent.Result{Stream: &stream{Reader: strings.NewReader("x")}}, "reading the output: context canceled"},
	} {
		got, err := New(Config{PutBlob: blobs{}.put}).Check(tt.ctx, shell, agent.Call{}, tt.in)
		if err == nil || err.Error() != tt.want || !reflect.DeepEqual(got, agent.Result{}) {
			t.Errorf("%s: %+v, %v; want %s", tt.name, got, err, tt.want)
		}
		if s, ok := tt.in.Stream.(*stream); ok && !s.closed {
			t.Errorf("%s: the stream is open", tt.name)
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %06d\n", i+1)
	}
	return b.String()
}

func TestSpill(t *testing.T) {
	store := blobs{}
	text := lines(2000) + githubToken + "\n"
	kept := lines(2000) + "[redacted:github-token]\n"
	for name, in := range map[string]agent.Result{
		"text":   {Text: text},
		"stream": {Stream: &stream{Reader: iotest.HalfReader(strings.NewReader(text))}},
		"output": {Output: json.RawMessage(`[` + strings.Repeat(`"aaaaaaaa",`, 2000) + `"` + githubToken + `"]`)},
	} {
		got, err := New(Config{PutBlob: store.put}).Check(t.Context(), shell, agent.Call{}, in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Spill == nil || got.Stream != nil {
			t.Fatalf("%s: %+v", name, got)
		}
		blob := store[got.Spill.SHA256]
		if strings.Contains(blob, "ghp_") || name != "output" && blob != kept {
			t.Errorf("%s: stored %d bytes", name, len(blob))
		}
		if n := utf8.RuneCountInString(got.Text); n > 10_000 || n < 9_000 {
			t.Errorf("%s: %d characters", name, n)
		}
		if name == "output" {
			continue
		}
		want := lines(318) // 40 percent of 9,550 characters, in whole lines
		tail := "\n\n[... 14484 of 24024 characters (2001 lines) are left out here: more than the budget of 10000. The whole output is kept as " +
			got.Spill.Handle + ": page it with Read (file_path \"" + got.Spill.Handle + "\", offset, limit) or search it with Grep (path \"" + got.Spill.Handle + "\"). ...]\n\n"
		if !strings.HasPrefix(got.Text, want+tail) {
			t.Errorf("%s: text begins\n%s", name, got.Text[max(0, len(want)-30):min(len(got.Text), len(want)+len(tail)+30)])
		}
		if last := kept[len(kept)-5724:]; !strings.HasSuffix(got.Text, last) {
			t.Errorf("%s: text ends %q", name, got.Text[len(got.Text)-100:])
		}
		if s := *got.Spill; s.Bytes != int64(len(kept)) || s.Capped || s.Handle != "output:"+s.SHA256[:12] || s.Shown != len(got.Text)-len(tail) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestSpillProblems(t *testing.T) {
	long := strings.Repeat("두레 ", 5000)
	for _, tt := range []struct {
		name   string
		config Config
		spill  bool
		notice string
	}{
		{"no place", Config{}, false, "They could not be kept: there is no place for it. Run it again with less output to see them."},
		{"full", Config{PutBlob: func(context.Context, io.Reader) (string, int64, error) { return "", 0, errors.New("no space left") }}, false, "They could not be kept: no space left."},
		{"store that stops reading", Config{PutBlob: func(_ context.Context, r io.Reader) (string, int64, error) {
			_, _ = io.ReadFull(r, make([]byte, 100))
			return "", 0, errors.New("gone")
		}}, false, "They could not be kept: gone."},
		{"capped", Config{PutBlob: blobs{}.put, MaxSpill: 1000}, true, "Its first 1000 bytes are kept as output:"},
	} {
		got, err := New(tt.config).Check(t.Context(), agent.Spec{Name: "x__y"}, agent.Call{}, agent.OK(long))
		if err != nil || (got.Spill != nil) != tt.spill || !strings.Contains(got.Text, tt.notice) || !strings.Contains(got.Text, "of 15000 characters") {
			t.Errorf("%s: %v, %q", tt.name, err, got.Text[:min(len(got.Text), 8000)])
		}
		if !utf8.ValidString(got.Text) || strings.Contains(got.Text, "\uFFFD") {
			t.Errorf("%s: a character was cut", tt.name)
		}
		if got.Spill != nil && !got.Spill.Capped {
			t.Errorf("%s: %+v", tt.name, got.Spill)
		}
	}
}

func TestBudgets(t *testing.T) {
	user := func(tool string) int { return map[string]int{"u__v": 700, "w__x": 200_000}[tool] }
	for _, tt := range []struct {
		spec agent.Spec
		want int
	}{
		{agent.Spec{Name: "x__y"}, 6_000},
		{agent.Spec{Name: "x__y", Budget: 12_000}, 12_000},
		{agent.Spec{Name: "x__y", Budget: 4_000}, 4_000},
		{agent.Spec{Name: "x__y", Budget: 123}, 123},
		{agent.Spec{Name: "x__y", Budget: 1 << 20}, 50_000},
		{agent.Spec{Name: "u__v", Budget: 123}, 700},
		{agent.Spec{Name: "bash__exec"}, 10_000},
		{agent.Spec{Name: "file-system__multi-read", Group: "files"}, 20_000},
		{agent.Spec{Name: "x__y", Group: "git"}, 6_000},
		{agent.Spec{Name: "x__y", Group: "agents"}, 100_000},
		{agent.Spec{Name: "x__y", Group: "agents", Budget: 1 << 20}, 100_000},
		{agent.Spec{Name: "w__x"}, 50_000},
	} {
		g := New(Config{Budget: user})
		if got := g.budget(tt.spec); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.spec, got, tt.want)
		}
		for _, n := range []int{tt.want, tt.want + 1} {
			got, err := g.Check(t.Context(), tt.spec, agent.Call{}, agent.OK(strings.Repeat("é", n)))
			if err != nil || strings.Contains(got.Text, "left out") != (n > tt.want) {
				t.Errorf("%+v: %d characters: %v", tt.spec, n, err)
			}
			if c := utf8.RuneCountInString(got.Text); tt.want >= 1000 && c > tt.want {
				t.Errorf("%+v: %d characters became %d", tt.spec, n, c)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprintf("file number %d", i))
	}
	for name, in := range map[string]string{
		"long string": `{"n":12345678901234567890,"s":"` + strings.Repeat(`abc\n`, 20_000) + `"}`,
		"long list":   `{"n":12345678901234567890,"s":[` + strings.Join(many, ",") + `]}`,
		"deep":        `{"n":12345678901234567890,"s":[[[["` + strings.Repeat(`x`, 40_000) + `"]]]]}`,
	} {
		got, err := cleanOutput(json.RawMessage(in), Clean)
		if err != nil || len(got) > maxOutput || !json.Valid(got) || !bytes.Contains(got, []byte("left out]")) || !bytes.Contains(got, []byte(`"n":12345678901234567890`)) {
			t.Errorf("%s: %d bytes, %v: %.80s", name, len(got), err, got)
		}
	}
	wide := "[" + strings.Repeat("["+strings.Repeat(`{"a":[1]},`, 300)+"1],", 300) + "1]"
	if got, err := cleanOutput(json.RawMessage(wide), Clean); err != nil || len(got) > maxOutput || !json.Valid(got) {
		t.Errorf("wide: %d bytes, %v", len(got), err)
	}
	if got, err := cleanOutput(make([]byte, hugeJSON+1), Clean); err != nil || string(got) != `{"truncated":true,"bytes":16777217}` {
		t.Errorf("huge: %s, %v", got, err)
	}
}

func TestLimit(t *testing.T) {
	for n, want := range map[int]string{
		2000: strings.Repeat("é", 1100), 1100: strings.Repeat("é", 1100), 1000: strings.Repeat("é", 985) + truncated,
		16: "é" + truncated, 15: strings.Repeat("é", 15), 10: strings.Repeat("é", 10), 0: "", -1: "",
	} {
		if got := limit(strings.Repeat("é", 1100), n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// A stream of megabytes takes little memory, whatever is in it.
func TestMemory(t *testing.T) {
	g := New(Config{PutBlob: func(_ context.Context, r io.Reader) (string, int64, error) {
		n, err := io.Copy(io.Discard, r)
		return strings.Repeat("0", 64), n, err
	}})
	src := io.LimitReader(repeat(lines(1000)+githubToken+" \x1b[1m"), 20<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := g.Check(t.Context(), shell, agent.Call{}, agent.Result{Stream: &stream{Reader: src}}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

// A text full of what looks like the beginning of secrets takes no longer than
// another one by much.
func TestHostileTriggers(t *testing.T) {
	var units [][2]string
	for _, s := range append(known, ibans()...) {
		for _, sep := range []string{"", "-", " ", "\n", "a"} {
			units = append(units, [2]string{s.trigger, sep})
		}
	}
	// Every fourth of them is at least one of each trigger.
	for _, u := range prooftest.Sample(t, units, 4, nil) {
		text := strings.Repeat(u[0]+u[1], (64<<10)/len(u[0]+u[1]))
		start := time.Now()
		_ = Clean(text)
		if d := time.Since(start); d > 30*time.Second { // it takes milliseconds; a long look at each would take minutes
			t.Errorf("%q and %q: %s", u[0], u[1], d)
		}
	}
}

// repeat reads a text over and over.
type repeat string

func (s repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], s)
	}
	return n, nil
}

// Where a stream is cut into reads does not change what comes out of it, and
// nothing comes out that a terminal obeys or that is not UTF-8.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"plain text", "a\r\nb\rc\x1b[1mred\x1b[0m\x1b]0;t\a", githubToken, privKey, privKey[:150], jwtToken, "x://u:p@h", "é\xff\xc3",
		"API_KEY=abcdefgh12345678", "\u009b1m", "\u009d0;x", "Bearer abcDEF123456789ghijk", "\x1b]" + strings.Repeat("x", 5000) + "\a",
	} {
		f.Add(seed, uint16(3), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, s string, size, pad uint16) {
		for _, in := range []scope{{financial: true}, {exact: true}} {
			text := strings.Repeat("padding 1\n", int(pad)) + s
			whole, kinds := clean(text, in)
			parts := newFilter(&pieces{text, int(size)%997 + 1}, in)
			got, err := io.ReadAll(parts)
			if err != nil || string(got) != whole || !slices.Equal(parts.kinds(), kinds) {
				t.Fatalf("in pieces %q %v\nwhole %q %v", tail(string(got)), parts.kinds(), tail(whole), kinds)
			}
			if !utf8.ValidString(whole) || strings.ContainsFunc(whole, func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || isShapeless(r) && !isTag(r)
			}) {
				t.Fatalf("%q is not clean", tail(whole))
			}
			if in.exact && strings.ContainsAny(whole, "␛␡⟨") || in.exact && strings.ContainsFunc(whole, func(r rune) bool { return r >= 0x2400 && r < 0x2420 }) {
				continue // a sign is text like any other the second time
			}
			if again, more := clean(whole, in); again != whole || more != nil {
				t.Fatalf("%q\nbecomes %q, %v", tail(whole), tail(again), more)
			}
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-300):] }

// pieces reads a text size bytes at a time near its end, where it is of interest.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := p.size
	if len(p.text) > 8<<10 {
		n = 7001
	}
	n = copy(b, p.text[:min(n, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

func BenchmarkCheck(b *testing.B) {
	store := func(_ context.Context, r io.Reader) (string, int64, error) {
		n, err := io.Copy(io.Discard, r)
		return strings.Repeat("0", 64), n, err
	}
	g := New(Config{PutBlob: store})
	for _, bb := range []struct {
		name string
		text string
	}{{"small", "ok  \tdure/agent\t0.012s\nok  \tdure/internal/loop\t0.345s\n"}, {"1 KB", lines(85)}, {"8 KB", lines(680)}, {"5 MB", lines(430_000)}} {
		b.Run(bb.name, func(b *testing.B) {
			r := agent.OK(bb.text)
			r.Output = json.RawMessage(`{"stdout":"ok","stderr":"","interrupted":false,"exitCode":0}`)
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Check(b.Context(), shell, agent.Call{}, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A record keeps everything but its secrets.
func TestMaskJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"x \u001b[1m\u200b","n":1.50,"m":{"k":[null,true]}}`: `{"a":"x \u001b[1m\u200b","n":1.50,"m":{"k":[null,true]}}`,
		`{"command":"curl -H 'x: ` + githubToken + `'"}`:           `{"command":"curl -H 'x: [redacted:github-token]'"}`,
		`{"password":"hunter22-x"}`:                                `{"password":"[redacted:password]"}`,
	} {
		if got, err := MaskJSON(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", in, got, err, want)
		}
	}
}
