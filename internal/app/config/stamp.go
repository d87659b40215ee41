package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"dure/agent"
)

// A Stamp is how the files of the settings, and the policies beside them, looked
// at one time. Taken before [Load], it tells later whether loading again could say
// something else.
type Stamp struct{ files []mark }

type mark struct {
	layer Layer // of settings; "" = it is something else
	path  string
	info  fs.FileInfo // nil = it is not there, or cannot be looked at
	fault string      // why it cannot be looked at
	fresh bool        // it had just been written
}

// A FileChange is a file of settings that is another than it was.
type FileChange struct {
	Layer Layer
	Path  string
}

// Since returns the files of settings that differ from how they looked then. One that
// may have changed, and looks the same, is not among them.
func (s Stamp) Since(then Stamp) []FileChange {
	var all []FileChange
	for _, m := range s.files {
		was := mark{path: m.path}
		if i := slices.IndexFunc(then.files, func(o mark) bool { return o.path == m.path }); i >= 0 {
			was = then.files[i]
		}
		was.fresh = false
		if m.layer != "" && !same(m, was) {
			all = append(all, FileChange{m.layer, m.path})
		}
	}
	for _, m := range then.files { // those of the managed folder that are gone
		if m.layer != "" && !slices.ContainsFunc(s.files, func(o mark) bool { return o.path == m.path }) {
			all = append(all, FileChange{m.layer, m.path})
		}
	}
	return all
}

// fresh is how long a file may change again without another time or size, on the
// coarsest file systems.
const fresh = 2 * time.Second

// Changed looks at the files again, and returns how they look now and whether
// that differs: in being there, size, time of the last change, or which file it
// is. One that had been written within two seconds before the last look counts as
// changed once more. It reads no file. With the zero Stamp everything has changed.
func Changed(src Sources, since Stamp) (Stamp, bool) {
	now := look(src)
	return now, !slices.EqualFunc(now.files, since.files, same)
}

func same(now, then mark) bool {
	if now.path != then.path || now.fault != then.fault || then.fresh || (now.info == nil) != (then.info == nil) {
		return false
	}
	return now.info == nil || now.info.Size() == then.info.Size() &&
		now.info.ModTime().Equal(then.info.ModTime()) && now.info.Mode() == then.info.Mode() && os.SameFile(now.info, then.info)
}

func look(src Sources) Stamp {
	l, err := newLoader(src)
	if err != nil {
		return Stamp{}
	}
	f := l.files()
	paths := []string{f.user, f.project, f.local, f.inline, f.managed, f.managedDir}
	theirs := l.claudeFiles()
	paths = append(paths, theirs.user, theirs.project, theirs.local, theirs.top, theirs.managed, theirs.managedDir)
	layers := map[string]Layer{
		f.user: User, f.project: Project, f.local: Local, f.inline: Inline, f.managed: Managed,
		theirs.user: User, theirs.project: Project, theirs.local: Local, theirs.top: Local, theirs.managed: Managed,
	}
	user, managed := l.cfg.PolicyFiles(src.OS)
	paths = append(paths, user, managed)
	for _, dir := range []string{theirs.managedDir, f.managedDir} {
		more, err := l.managedFolder(dir)
		if err != nil {
			continue
		}
		paths = append(paths, more...)
		for _, path := range more {
			layers[path] = Managed
		}
	}
	stat := src.Stat
	if stat == nil {
		stat = os.Stat
	}
	now := time.Now()
	var s Stamp
	for _, path := range paths {
		if path == "" {
			continue
		}
		m := mark{layer: layers[path], path: filepath.Clean(path)}
		m.info, err = stat(path)
		if err != nil {
			m.info, m.fault = nil, cause(err)
		} else {
			age := now.Sub(m.info.ModTime())
			m.fresh = age >= 0 && age < fresh
		}
		s.files = append(s.files, m)
	}
	return s
}

// Closed is what holds while the settings cannot be read again: what they were,
// but every call is denied, with the fault as the reason, until somebody mends
// them. A program that starts with such settings does not start at all.
func (c Config) Closed(fault error) Config {
	reason := fault.Error()
	if p := agent.ProblemOf(fault); p != nil {
		reason = p.Message
	}
	line := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	c.Mode, c.Allow, c.Ask = agent.ModeDontAsk, nil, nil
	c.Deny = []Rule{{
		Text: "*", Verdict: agent.Deny, Reason: clip(strings.Map(line, "the settings cannot be read: "+reason), maxReason), Origin: Origin{Layer: BuiltIn},
	}}
	c.Notes = append(slices.Clip(c.Notes), agent.Note{Level: "warn", Code: "settings", Text: fmt.Sprintf("every call is denied until this is mended: %s", reason)})
	return c
}
