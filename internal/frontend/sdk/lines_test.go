package sdk

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/state/transcript"
)

// A line that is too long for hosts is shortened until it is not, and stays what it is.
func TestShorten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxOut)
	many := make([]any, 200_000)
	for i := range many {
		many[i] = "0123456789"
	}
	for name, v := range map[string]any{
		"a text":     map[string]any{"type": "user", "uuid": "u", "session_id": "s", "message": map[string]any{"content": long}},
		"an image":   map[string]any{"type": "user", "uuid": "u", "session_id": "s", "message": []any{transcript.MediaPart(agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Data: []byte(long)}})}},
		"many texts": map[string]any{"type": "user", "uuid": "u", "session_id": "s", "message": []any{long, long, long, long, long, long, long}},
		"many parts": map[string]any{"type": "user", "uuid": "u", "session_id": "s", "message": many},
	} {
		line := encode(v)
		var back map[string]any
		if err := json.Unmarshal(line, &back); err != nil || len(line) > maxOut+1 || !bytes.HasSuffix(line, []byte("\n")) {
			t.Errorf("%s: %d bytes, %v", name, len(line), err)
		}
		if back["type"] != "user" || back["uuid"] != "u" || back["session_id"] != "s" {
			t.Errorf("%s is not itself any more: %.200s", name, line)
		}
		if !strings.Contains(string(line), "left out") {
			t.Errorf("%s does not say what is left out: %.200s", name, line)
		}
	}
	if line := encode(map[string]string{"a": "<&>\u2028"}); string(line) != `{"a":"<&>\u2028"}`+"\n" {
		t.Errorf("%s", line)
	}
}

// Lines are read whole, or not at all: of one that is too long it is said.
func TestReadLine(t *testing.T) {
	t.Parallel()
	h := &Host{lines: make(chan line, 3), ctx: t.Context()}
	h.read(strings.NewReader(`{"type":"one"}` + "\n\n" + strings.Repeat("x", maxIn+3) + "\n" + `{"type":"two"}`))
	var got []string
	for l := range h.lines {
		got = append(got, l.Type+l.wrong)
	}
	if s := strings.Join(got, "|"); s != "one|it is longer than 32 MiB|two" {
		t.Error(s)
	}
}

// FuzzLines reads whatever comes as a message, and writes it as a line.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"type":"user","message":{"role":"user","content":"x"}}`,
		`{"type":"user","uuid":"u","priority":"now","shouldQuery":false,"message":{"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}}`,
		`{"type":"user","message":{"content":[{"type":"document","source":{"type":"url","url":"x"}},{"type":"document","source":{"type":"text","data":"x"}}]}}`,
		`{"type":"user","message":{"content":null}}`, `{"message":17}`, `[]`, `null`, "\x00", `{"type":"control_response","response":{"request_id":"dure_1","subtype":"success"}}`,
	} {
		f.Add([]byte(seed), uint(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, times uint) {
		m, err := parseMessage(data)
		if err == nil && strings.TrimSpace(m.Text) == "" && len(m.Blocks) == 0 {
			t.Errorf("%q says nothing, and is taken", data)
		}
		var e envelope
		_ = json.Unmarshal(data, &e) // what it cannot read is no line
		c := newCalls()
		id, ch, err := c.begin()
		if err != nil || id != "dure_1" {
			t.Fatal(id, err)
		}
		c.answer(e.Response)
		c.answer(e.Response) // twice: the second does not count
		c.close(errGone)
		if len(ch) != 1 {
			t.Errorf("a request has %d answers", len(ch))
		}
		wide := strings.Repeat(string(data), int(times%100_000)/(len(data)+1))
		line := encode(map[string]any{"type": "user", "uuid": "u", "message": []any{wide, map[string]any{string(data): wide}}})
		if len(line) > maxOut+1 || bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	})
}
