package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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
	t.Parallel()
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

// What a host is told is called there as in what is written, that of agents too of which it is
// shown a part only: hosts know messages by that.
func TestMirrorCallsMessagesAsItsHostKnowsThem(t *testing.T) {
	t.Parallel()
	h := newHost(t,
		script.Reply{When: "CHILDTASK", Thinking: "Hm.", Text: "Looking.", Calls: []script.Call{{ID: "toolu_9", Tool: "Bash", Input: json.RawMessage(`{"command":"echo inside"}`)}}},
		script.Reply{When: "inside", Text: "FOUND"},
		script.Reply{Thinking: "Hm.", Text: "I ask.", Calls: []script.Call{{ID: "toolu_1", Tool: "Agent", Input: json.RawMessage(`{"description":"Look","prompt":"CHILDTASK","subagent_type":"general-purpose"}`)}}},
		script.Reply{Text: "Done."})
	projects := t.TempDir()
	h.env = append(h.env, "CLAUDE_CONFIG_DIR="+projects)
	h.start(append(slices.Clone(usualArgs), "--allowedTools=Bash,Agent", "--include-partial-messages")...)
	h.initialise("")
	h.say(user("Go."))
	h.until("result")
	h.end(0)
	written, answers := map[string]any{}, map[any]bool{} // the names of answers by those of messages, and in themselves
	err := filepath.WalkDir(projects, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range strings.Lines(string(data)) {
			var l struct {
				UUID    string
				Message map[string]any
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				return err
			}
			written[l.UUID] = l.Message["id"]
			answers[l.Message["id"]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, l := range h.seen {
		kind := l.Type
		switch {
		case kind == "stream_event" && l.at("event.type") == "message_start":
			if id := l.at("event.message.id"); !answers[id] {
				t.Errorf("no answer is called %v", id)
			}
		case kind == "assistant" || kind == "user":
			if l.at("parent_tool_use_id") != nil {
				kind += " of an agent"
			}
			if id, ok := written[l.fields["uuid"].(string)]; !ok || id != l.at("message.id") {
				t.Errorf("%v, %v of %v is not written: %.300s", ok, id, l.at("message.id"), l.raw)
			}
		default:
			continue
		}
		seen[kind]++
	}
	for kind, n := range map[string]int{"assistant": 4, "user": 1, "assistant of an agent": 1, "user of an agent": 1, "stream_event": 2} {
		if seen[kind] != n {
			t.Errorf("%d of %s, want %d", seen[kind], kind, n)
		}
	}
}

// The tag that a host gives a session while it runs stays, whatever color that gets, and
// wherever the program is killed: the file says it last, and the session takes it over.
func TestMirrorKeepsTheTagOfAHost(t *testing.T) {
	t.Parallel()
	h := newHost(t, script.Reply{Text: "One."}, script.Reply{Text: "Two."})
	projects := t.TempDir()
	h.env = append(h.env, "CLAUDE_CONFIG_DIR="+projects)
	h.start(usualArgs...)
	h.initialise("")
	h.say(user("go"))
	id, _ := h.until("result").fields["session_id"].(string)
	color := func(name string) {
		h.say(`{"type":"control_request","request_id":"` + name + `","request":{"subtype":"set_color","color":"` + name + `"}}`)
		if r := h.answer(name); r["subtype"] != "success" {
			t.Fatalf("%v", r)
		}
	}
	color("red") // before the host gives a tag, and after
	paths, err := filepath.Glob(filepath.Join(projects, "projects", "*", id+".jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	f, err := os.OpenFile(paths[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"type":"tag","tag":"mine","sessionId":"` + id + `"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	color("blue")
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := h.next(); !ok {
			break
		}
	}
	_ = h.cmd.Wait() // it was killed
	h.start(append([]string{"--resume=" + id}, usualArgs...)...)
	h.initialise("")
	h.say(user("go on"))
	h.until("result")
	color("green")
	h.end(0)
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for line := range strings.Lines(string(data)) {
		var l struct {
			Type, Tag, Event string
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == "tag" {
			by := "host"
			if l.Event != "" {
				by = "session"
			}
			tags = append(tags, by+" "+l.Tag)
		}
	}
	if got := strings.Join(tags, ", "); got != "host mine, session mine" {
		t.Errorf("%s", got)
	}
}
