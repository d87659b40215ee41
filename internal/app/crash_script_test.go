//go:build unix

package app_test

import (
	"fmt"
	"maps"

	"dure/agent"
	"dure/internal/models/script"
)

// crashFiles is how many files the script changes.
const crashFiles = 4

// crashScript is the story of a long run: what the model answers at each step,
// and what the files are then.
type crashScript struct {
	replies []script.Reply
	files   []map[string]string // before each step, and after the last
	lines   map[string]string   // line of the ledger, by the call that writes it
	at      map[string]int      // step, by the call that writes a line
}

// storyteller makes a crashScript.
type storyteller struct {
	crashScript
	step    int
	version [crashFiles]int
	files   map[string]string
	reply   script.Reply
}

// newCrashScript tells of n steps: commands that must not be repeated, changes
// of files that can be checked, readings that may be repeated, lists that may be
// written again, and answers that mix them.
func newCrashScript(n int) *crashScript {
	t := &storyteller{files: map[string]string{}}
	t.lines, t.at = map[string]string{}, map[string]int{}
	for i := range crashFiles {
		t.files[crashFile(i)] = t.content(i)
	}
	kinds := []func(){
		t.command, t.create, t.look, t.edit, t.command, t.list, t.mixed, t.overwrite, t.background, t.survey,
	}
	for t.step = range n {
		t.crashScript.files = append(t.crashScript.files, maps.Clone(t.files))
		t.reply = script.Reply{Text: fmt.Sprintf("Step %d.", t.step)}
		kinds[t.step%len(kinds)]()
		t.replies = append(t.replies, t.reply)
	}
	t.crashScript.files = append(t.crashScript.files, t.files)
	return &t.crashScript
}

func crashFile(i int) string { return fmt.Sprintf("f%d.txt", i) }

// content is a file at its current version.
func (t *storyteller) content(i int) string {
	return fmt.Sprintf("file %d\nversion %d\nthe end\n", i, t.version[i])
}

func (t *storyteller) call(tool string, in fields) string {
	id := fmt.Sprintf("c%d_%d", t.step, len(t.reply.Calls))
	t.reply.Calls = append(t.reply.Calls, script.Call{ID: id, Tool: tool, Input: input(in)})
	return id
}

// shell runs a command that writes its line into the ledger.
func (t *storyteller) shell(format string) {
	line := fmt.Sprintf("L%d.%d", t.step, len(t.reply.Calls))
	id := t.call("Bash", fields{"command": fmt.Sprintf(format, line)})
	t.lines[id], t.at[id] = line, t.step
}

func (t *storyteller) command() { t.shell("echo %s >> ledger") }

// background leaves something behind that has to die with the command.
func (t *storyteller) background() { t.shell("sleep 60 >/dev/null 2>&1 & echo %s >> ledger") }

func (t *storyteller) create() {
	name := fmt.Sprintf("new%d.txt", t.step)
	content := fmt.Sprintf("made at step %d\n", t.step)
	t.call("Write", fields{"file_path": name, "content": content})
	t.files[name] = content
}

// look reads and searches each file: calls that run beside each other.
func (t *storyteller) look() {
	for i := range crashFiles {
		t.call("Read", fields{"file_path": crashFile(i)})
		t.call("Read", fields{"file_path": crashFile(i), "offset": 2, "limit": 1})
		t.call("Grep", fields{"pattern": "version [0-9]+", "path": crashFile(i), "output_mode": "content"})
	}
	t.call("Grep", fields{"pattern": "nowhere to be found"})
}

func (t *storyteller) edit() { t.change("Edit", t.step%crashFiles) }

// change raises the version of a file.
func (t *storyteller) change(tool string, i int) {
	was := fmt.Sprintf("version %d", t.version[i])
	t.version[i]++
	one := fields{"old_string": was, "new_string": fmt.Sprintf("version %d", t.version[i])}
	if tool == "MultiEdit" {
		one = fields{"edits": []fields{one}}
	}
	one["file_path"] = crashFile(i)
	t.call(tool, one)
	t.files[crashFile(i)] = t.content(i)
}

func (t *storyteller) overwrite() {
	i := t.step % crashFiles
	t.version[i]++
	t.call("Write", fields{"file_path": crashFile(i), "content": t.content(i)})
	t.files[crashFile(i)] = t.content(i)
}

func (t *storyteller) list() {
	t.call("TodoWrite", fields{"todos": []fields{{"content": fmt.Sprintf("get past step %d", t.step), "status": "in_progress"}}})
}

func (t *storyteller) mixed() {
	t.call("Read", fields{"file_path": crashFile(0)})
	t.shell("echo %s >> ledger")
	t.change("Edit", (t.step+1)%crashFiles)
	t.call("Read", fields{"file_path": crashFile((t.step + 1) % crashFiles)})
	t.list()
}

func (t *storyteller) survey() {
	t.call("Glob", fields{"pattern": "*.txt"})
	t.call("LS", fields{})
	t.change("MultiEdit", (t.step+2)%crashFiles)
}

// tell returns what the model says at a step of a story that ends at limit.
func (c *crashScript) tell(step, limit int) script.Reply {
	if step >= limit {
		return script.Reply{Text: crashEnd(limit), Stop: agent.StopEnd}
	}
	return c.replies[step]
}

// crashEnd is what the model says last.
func crashEnd(n int) string { return fmt.Sprintf("All %d steps are done.", n) }
