package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/models/script"
)

// mirrored is a line of what is written where the packages look.
type mirrored struct {
	Type, UUID string
	Parent     *string `json:"parentUuid"`
}

// mirrors reads what is there of the only session.
func (h *host) mirrors(projects string) (lines []mirrored) {
	h.t.Helper()
	paths, err := filepath.Glob(filepath.Join(projects, "projects", "*", "*.jsonl"))
	if err != nil || len(paths) != 1 {
		h.t.Fatal(paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil || !strings.HasSuffix(string(data), "\n") {
		h.t.Fatalf("%v: %q", err, data)
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == "" {
			continue // a line that was cut short got its end
		}
		var l mirrored
		if json.Unmarshal([]byte(line), &l) == nil { // what was cut short says nothing
			lines = append(lines, l)
		}
	}
	return lines
}

// Wherever the program is killed, the mirror is whole once the session was opened again: it
// has each message that its host was ever told of, once, and each follows one that is there.
func TestMirrorOfAKilledProgram(t *testing.T) {
	for _, at := range []string{"system/init", "assistant", "user"} {
		t.Run(strings.ReplaceAll(at, "/", "-"), func(t *testing.T) {
			t.Parallel()
			call := bashes("echo hello", "")
			call.Text = "I look."
			h := newHost(t, call, script.Reply{Text: "It said hello."}, script.Reply{Text: "Gone on."}, script.Reply{Text: "And on."})
			projects := t.TempDir()
			h.env = append(h.env, "CLAUDE_CONFIG_DIR="+projects)
			args := append([]string{"--dangerously-skip-permissions"}, usualArgs...)
			h.start(args...)
			h.initialise("")
			h.say(user("look"))
			id, _ := h.until(at).fields["session_id"].(string)
			if err := h.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for {
				if _, ok := h.next(); !ok {
					break
				}
			}
			_ = h.cmd.Wait() // it was killed
			told := h.seen
			h.start(append([]string{"--resume=" + id}, args...)...)
			h.initialise("")
			h.say(user("go on"))
			h.until("result")
			h.end(0)
			there := map[string]int{}
			for _, l := range h.mirrors(projects) {
				if l.UUID == "" {
					continue
				}
				if l.Parent != nil && there[*l.Parent] == 0 {
					t.Errorf("%s %s follows %s, which is not there", l.Type, l.UUID, *l.Parent)
				}
				there[l.UUID]++
			}
			messages := 0
			for _, l := range append(told, h.seen...) {
				if l.Type != "assistant" && l.Type != "user" {
					continue
				}
				messages++
				if n := there[l.fields["uuid"].(string)]; n != 1 {
					t.Errorf("%s is there %d times: %.300s", l.Type, n, l.raw)
				}
			}
			if messages == 0 || len(there) < messages+1 {
				t.Errorf("%d messages, %d lines", messages, len(there))
			}
		})
	}
}
