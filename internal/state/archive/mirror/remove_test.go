package mirror

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
)

// mirrored puts a mirrored session, put away, with an agent into a folder, and returns where its file is.
func mirrored(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	yes := true
	write(t, config(dir), append(story(), agent.Event{Seq: 11, ID: "z", Body: agent.SettingsChanged{Archived: &yes}}))
	of := config(dir)
	of.Agent, of.Kind = "a1", "general-purpose"
	write(t, of, story())
	return dir, filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl")
}

// put writes a file, or appends to it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// below lists the files in a folder.
func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What others have said in a session of ours stays, with all that is beside it.
func TestRemoveLeavesWhatOthersSaid(t *testing.T) {
	const theirs = `{"type":"user","uuid":"u9","sessionId":"` + session + `","message":{"role":"user","content":"go on"}`
	for name, line := range map[string]string{
		"gone on with":         theirs + "}\n",
		"an answer":            strings.Replace(theirs, "user", "assistant", 1) + "}\n",
		"of another session":   theirs + `,"event":"11111111-d47b-7804-89dd-89b813501b55:4"}` + "\n",
		"an event of no text":  theirs + `,"event":{"a":1}}` + "\n",
		"behind one cut short": `{"parentUuid":null,"message":{"content":"` + theirs + "}\n",
		"two in one line":      `{"type":"user","event":"` + session + `:40"}` + theirs + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := mirrored(t)
			put(t, path, line)
			put(t, filepath.Join(strings.TrimSuffix(path, ".jsonl"), "tool-results", "r1.txt"), "much")
			before := below(t, dir)
			if err := Remove(dir, session); err != nil {
				t.Fatal(err)
			}
			if after := below(t, dir); !slices.Equal(after, before) || len(after) != 5 {
				t.Errorf("left: %v, of %v", after, before)
			}
		})
	}
}

// What we have written goes, whole: also where others have named the session, or a run was cut
// short. What others have put beside it does not, nor what a link leads to.
func TestRemove(t *testing.T) {
	for name, line := range map[string]string{
		"as it was written": "",
		"named by others":   `{"type":"custom-title","customTitle":"Theirs","sessionId":"` + session + `"}` + "\n",
		"cut short":         `{"parentUuid":"u1","message":{"content":"what`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := mirrored(t)
			put(t, path, line)
			if err := Remove(dir, session); err != nil {
				t.Fatal(err)
			}
			if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) > 0 {
				t.Errorf("left: %v, %v", list, err)
			}
		})
	}
	dir, path := mirrored(t)
	beside := strings.TrimSuffix(path, ".jsonl")
	put(t, filepath.Join(beside, "tool-results", "r1.txt"), "much")
	put(t, filepath.Join(beside, "subagents", "notes.txt"), "theirs")
	if err := Remove(dir, session); err != nil {
		t.Fatal(err)
	}
	in := "-tmp-proj-x-y/" + session
	if left := below(t, dir); !slices.Equal(left, []string{in + "/subagents/notes.txt", in + "/tool-results/r1.txt"}) {
		t.Errorf("left: %v", left)
	}
}

// A folder beside a session that is a link leads to what is not the session's.
func TestRemoveFollowsNoLink(t *testing.T) {
	dir, path := mirrored(t)
	other := t.TempDir()
	put(t, filepath.Join(other, "agent-a1.jsonl"), "precious")
	agents := filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
	if err := os.RemoveAll(agents); err != nil {
		t.Fatal(err)
	}
	prooftest.Link(t, os.Symlink(other, agents))
	if err := Remove(dir, session); err != nil {
		t.Fatal(err)
	}
	if left := below(t, other); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A long line of ours is read like any other. One that is longer than lines are read may be of
// others: the file stays, and that is said.
func TestRemoveOfLongLines(t *testing.T) {
	dir := t.TempDir()
	long := append([]agent.Event(nil), story()[1:]...)
	long[0].Body = agent.InputAdded{Input: "in_1", Text: strings.Repeat("long ", 400_000)}
	write(t, config(dir), long)
	if err := Remove(dir, session); err != nil {
		t.Fatal(err)
	}
	if left := below(t, dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	dir, path := mirrored(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()+maxLine+1); err != nil {
		t.Fatal(err)
	}
	before := below(t, dir)
	if err := Remove(dir, session); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line that was not read: %v", err)
	}
	if left := below(t, dir); !slices.Equal(left, before) {
		t.Errorf("left: %v", left)
	}
}
