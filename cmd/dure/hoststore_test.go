package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dure/internal/models/script"
)

// stored are the entries that a host was sent for its store, by their files.
func (h *host) stored() map[string][]any {
	h.t.Helper()
	files := map[string][]any{}
	for _, l := range h.seen {
		if l.Type == "transcript_mirror" {
			file := l.fields["filePath"].(string)
			files[file] = append(files[file], l.fields["entries"].([]any)...)
		}
	}
	return files
}

// conversations are the entries of the files below the folder of all, by file.
func conversations(t *testing.T, config string) map[string][]any {
	t.Helper()
	files := map[string][]any{}
	err := filepath.WalkDir(config, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range strings.Lines(string(data)) {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				return err
			}
			files[path] = append(files[path], v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A host with a store of sessions is sent what is written of them: all of it, in order, what a
// turn has added before its result, and of agents as well, wherever they work. A session
// that is gone on with sends what is new.
func TestHostStore(t *testing.T) {
	t.Parallel()
	const session = "6f1c2a52-0a6e-4c39-9c57-0d7d3f5d3a11"
	in := func(isolation string) json.RawMessage {
		return json.RawMessage(`{"prompt":"find the paint","description":"find it"` + isolation + `}`)
	}
	h := newHost(t,
		script.Reply{When: "find the paint", Text: "It is in the shed."},
		script.Reply{When: "Go.", Calls: []script.Call{{ID: "t1", Tool: "Agent", Input: in("")}}},
		script.Reply{When: "apart", Calls: []script.Call{{ID: "t2", Tool: "Agent", Input: in(`,"isolation":"process"`)}}},
		script.Reply{When: "in the shed", Text: "They know."},
		script.Reply{When: "in the shed", Text: "They know."},
		script.Reply{When: "find the paint", Text: "It is in the shed."},
		script.Reply{When: "More.", Text: "No more."},
	)
	config := t.TempDir()
	h.env = append(h.env, "CLAUDE_CONFIG_DIR="+config)
	args := append([]string{"--session-mirror", "--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions"}, usualArgs...)
	h.start(append([]string{"--session-id=" + session}, args...)...)
	h.initialise("")
	for _, words := range []string{"Go.", "apart"} {
		h.say(user(words))
		if l := h.until("result"); l.fields["result"] != "They know." {
			t.Fatal(l.raw)
		}
		got, want := h.stored(), conversations(t, config)
		for file, list := range want {
			if !reflect.DeepEqual(got[file], list) {
				t.Errorf("%s, %s:\n%v\nwant\n%v", words, file, got[file], list)
			}
		}
	}
	h.end(0)
	before := conversations(t, config)
	if got := h.stored(); len(before) != 3 || !reflect.DeepEqual(got, before) {
		t.Errorf("%v\nwant\n%v", got, before)
	}

	h.start(append([]string{"--resume=" + session}, args...)...)
	h.initialise("")
	h.say(user("More."))
	h.until("result")
	h.end(0)
	for file, list := range conversations(t, config) {
		if got, want := h.stored()[file], list[len(before[file]):]; len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s, gone on with:\n%v\nwant\n%v", file, got, want)
		}
	}
	if len(h.stored()) != 1 {
		t.Errorf("%v", h.stored())
	}
}

// A host whose store could get nothing is told before anything begins.
func TestHostStoreOfNothing(t *testing.T) {
	h := newHost(t, script.Reply{Text: "DONE"})
	h.start(append([]string{"--session-mirror", `--settings={"transcripts":{"mirror":"off"}}`}, usualArgs...)...)
	if r := h.initialise(""); r["subtype"] != "error" || !strings.Contains(r["error"].(string), "transcripts.mirror is off") {
		t.Errorf("%v", r)
	}
	h.end(1)
}

// A host that wants calls to go elsewhere is told that they would not, before any is made.
func TestHostAliases(t *testing.T) {
	t.Parallel()
	h := newHost(t, script.Reply{Text: "DONE"})
	h.start(usualArgs...)
	if r := h.initialise(`,"toolAliases":{"Bash":"mcp__workspace__bash"}`); r["subtype"] != "error" || !strings.Contains(r["error"].(string), "disallowedTools") {
		t.Errorf("%v", r)
	}
	h.end(1)
	h.start(usualArgs...)
	if r := h.initialise(`,"toolAliases":{}`); r["subtype"] != "success" {
		t.Errorf("%v", r)
	}
	h.say(user("Go."))
	h.until("result").wants(t, "result", "DONE")
	h.end(0)
}
