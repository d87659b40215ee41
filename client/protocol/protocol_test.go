package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Message
		code Code
	}{
		{`{"type":"Interrupt","id":"1","session":"s","payload":{}}`, Message{TypeInterrupt, "1", "s", json.RawMessage("{}")}, ""},
		{`{"type":"New","id":"1","later":true}`, Message{"New", "1", "", nil}, ""},
		{"", Message{}, CodeMalformed},
		{"garbage", Message{}, CodeMalformed},
		{`["type"]`, Message{}, CodeMalformed},
		{`null`, Message{}, CodeMalformed},
		{`{"type":"Interrupt","id":"1"`, Message{}, CodeMalformed},
		{`{"type":7,"id":"1"}`, Message{"", "1", "", nil}, CodeMalformed},
		{`{"id":"1"}`, Message{"", "1", "", nil}, CodeMalformed},
		{`{"type":"Interrupt","id":1}`, Message{TypeInterrupt, "", "", nil}, CodeMalformed},
		{`{"type":"Interrupt","id":"` + strings.Repeat("x", MaxID+1) + `"}`, Message{TypeInterrupt, "", "", nil}, CodeMalformed},
	} {
		got, err := Decode([]byte(tt.line))
		if code := CodeOf(err); (err != nil || tt.code != "") && code != tt.code {
			t.Errorf("%.60s: %v, want %q", tt.line, err, tt.code)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%.60s: %+v, want %+v", tt.line, got, tt.want)
		}
	}
}

func TestPayload(t *testing.T) {
	if p, err := Payload[SetModelPayload](Message{Type: TypeSetModel}); err != nil || p.Model != "" {
		t.Errorf("nothing gives %+v, %v", p, err)
	}
	if p, err := Payload[SetModelPayload](Message{Payload: json.RawMessage(`{"model":"m","later":1}`)}); err != nil || p.Model != "m" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{`[]`, `"x"`, `{"model":1}`, `7`} {
		if _, err := Payload[SetModelPayload](Message{Payload: json.RawMessage(bad)}); CodeOf(err) != CodePayload {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestEncode(t *testing.T) {
	data, err := Encode(TypeAssistantToken, "", "s", TokenData{Kind: "text", Text: "<a>\n"})
	if want := `{"type":"AssistantToken","session":"s","payload":{"kind":"text","text":"<a>\n","step":0,"index":0}}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	if _, err := Encode(TypeAssistantToken, "", "", TokenData{Text: strings.Repeat("x", MaxMessage)}); !errors.Is(err, ErrTooLong) {
		t.Errorf("what is too long: %v", err)
	}
}

// read returns the lines of a text as a reader gives them, "!" for one that is too long.
func read(t *testing.T, r io.Reader, most int) (lines []string) {
	t.Helper()
	for in := NewReader(r, most); ; {
		line, err := in.Next()
		switch {
		case errors.Is(err, ErrTooLong):
			lines = append(lines, "!")
		case errors.Is(err, io.EOF):
			return lines
		case err != nil:
			t.Fatal(err)
		default:
			lines = append(lines, string(line))
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", readRoom+10)
	for _, tt := range []struct {
		text string
		most int
		want []string
	}{
		{"a\nb\r\n\n  \nc", 0, []string{"a", "b", "c"}},
		{"", 0, nil},
		{"\n\n", 0, nil},
		{"abcdef\nabc\n", 3, []string{"!", "abc"}},
		{"abcdef", 3, []string{"!"}},
		{long + "\na\n", readRoom, []string{"!", "a"}},
		{long + "\na\n", 0, []string{long, "a"}},
		{"a\n" + long, 10, []string{"a", "!"}},
	} {
		for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.HalfReader(strings.NewReader(tt.text)), iotest.DataErrReader(strings.NewReader(tt.text))} {
			if got := read(t, r, tt.most); !slices.Equal(got, tt.want) {
				t.Errorf("%.20q, most %d: %.40q", tt.text, tt.most, got)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := NewReader(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0).Next(); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
}

// Whatever comes, a line is decoded to a message that says the same, or refused with a code.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"type":"Initialize","id":"1","payload":{"version":1,"open":{}}}`, `{"type":"UserMessage","id":"2","session":"s","payload":{"text":"hi"}}`,
		"garbage\n{\"type\":\"x\"}", `{"type":"Interrupt","id":"\ud800"}`, "\x00\xff", `{"a":{"a":{"a":[[[[1]]]]}}}`, strings.Repeat("[", 200), `{"type":"A","TYPE":"B","id":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 64
		for in := NewReader(bytes.NewReader(data), most); ; {
			line, err := in.Next()
			if errors.Is(err, ErrTooLong) {
				continue
			}
			if err != nil {
				return
			}
			if len(line) == 0 || len(line) > most+2 || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("no line: %q", line)
			}
			m, err := Decode(line)
			if err != nil {
				if CodeOf(err) == CodeInternal {
					t.Fatalf("%q: %v", line, err)
				}
				continue
			}
			for name := range Requests() {
				if m.Type == name {
					_, _ = Payload[InitializePayload](m) // it must not panic
					_, _ = Payload[UserMessagePayload](m)
				}
			}
			again, err := Encode(m.Type, m.ID, m.Session, m.Payload)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if b, err := Decode(again); err != nil || b.Type != m.Type || b.ID != m.ID || b.Session != m.Session {
				t.Fatalf("%q became %q: %v", line, again, err)
			}
		}
	})
}
