package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// entriesOf are the entries of messages, one a line.
func entriesOf(t *testing.T, messages [][]byte, file string) string {
	t.Helper()
	var b strings.Builder
	for _, data := range messages {
		var m mirrorLine
		if err := json.Unmarshal(data, &m); err != nil || m.Type != "transcript_mirror" || m.File != file || len(m.Entries) == 0 || data[len(data)-1] != '\n' {
			t.Fatalf("%.200s, %v", data, err)
		}
		for _, e := range m.Entries {
			b.Write(append(e, '\n'))
		}
	}
	return b.String()
}

// Whatever is written comes in messages that hosts read, whole and in order; only what is too
// long by itself does not, where the host does not read any length.
func TestMirrorLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join("projects", "-a<b>", "s.jsonl")
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, `{"type":"user","uuid":"%d","text":"%s"}`+"\n", i, strings.Repeat("<&>한", 1+i*1500))
	}
	all := mirrorLines(file, []byte(lines.String()), false)
	if got := entriesOf(t, all, file); got != lines.String() {
		t.Error("what comes is not what was written")
	}
	least := lines.Len()/maxOut + 1
	if len(all) < least || len(all) > 2*least {
		t.Errorf("%d messages for %d bytes", len(all), lines.Len())
	}
	for _, data := range all {
		if len(data) > maxOut {
			t.Errorf("a message has %d bytes", len(data))
		}
	}
	long := `{"type":"user","uuid":"1","text":"` + strings.Repeat("x", 3*maxOut) + `"}` + "\n"
	short := `{"type":"user","uuid":"2"}` + "\n"
	whole := mirrorLines(file, []byte(short+long+short), true)
	if got := entriesOf(t, whole, file); got != short+long+short || len(whole) != 3 {
		t.Errorf("%d messages, %d bytes", len(whole), len(got))
	}
	cut := mirrorLines(file, []byte(short+long+short), false)
	got := entriesOf(t, cut, file)
	if len(cut) != 3 || len(cut[1]) > maxOut || !strings.Contains(got, `"uuid":"1"`) || !strings.Contains(got, "left out") {
		t.Errorf("%d messages: %.300s", len(cut), got)
	}
	if none := mirrorLines(file, nil, false); len(none) > 0 {
		t.Errorf("%q", none)
	}
}

// What is for the store of a host comes even when it is told to end, and why there is no more.
func TestMirroredWhileItEnds(t *testing.T) {
	var out bytes.Buffer
	h := New(Config{})
	h.out = newOutbox(t.Context(), &out)
	h.out.mute()
	dir := filepath.Join("projects", "-work", "id", "subagents")
	h.Mirrored(filepath.Join(dir, "agent-a.jsonl"), []byte("{\"type\":\"user\"}\n"), nil)
	h.Mirrored(filepath.Join(dir, "agent-a.jsonl"), nil, errors.New("the disk is full"))
	h.Mirrored(filepath.Join("projects", "-work", "id.jsonl"), nil, errors.New("the disk is full"))
	if err := h.out.close(time.Minute); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"entries":[{"type":"user"}]`) {
		t.Fatal(out.String())
	}
	for i, want := range []storeKey{{"-work", "id", "subagents/agent-a"}, {"-work", "id", ""}} {
		var m mirrorWrong
		if err := json.Unmarshal([]byte(lines[i+1]), &m); err != nil || m.Subtype != "mirror_error" || m.Key != want || m.Session != "id" || m.Error != "the disk is full" {
			t.Errorf("%s, %v", lines[i+1], err)
		}
	}
	h.Mirrored("s.jsonl", []byte("{\"type\":\"user\"}\n"), nil) // nobody writes any more: it does not wait
}
