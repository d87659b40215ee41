package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dure/internal/safety/sandbox"
)

// maxManaged bounds the files of the managed folder. More are an error: what an
// administrator says is taken whole or not at all.
const maxManaged = 100

// disableBypass is the key that keeps everybody from mode bypassPermissions.
const disableBypass = "permissions.disableBypassPermissionsMode"

// managed applies what the administrator says: the file, then those of the
// folder by name; before them what .claude has for him, and before that what a program that
// drives this one restricts. What is left to nobody else is taken away first.
func (l *loader) managed(files settingsFiles, others claudePlaces) error {
	more, err := l.managedFolder(files.managedDir)
	if err != nil {
		return err
	}
	var all []layer
	var rules, box bool
	for _, path := range append([]string{files.managed}, more...) {
		ly, err := l.readFile(Managed, path)
		if err != nil {
			return err
		}
		if ly.data == nil {
			continue
		}
		all = append(all, ly)
		rules = rules || ly.switchedOn("allowManagedPermissionRulesOnly") || ly.switchedOn("permissions.managedOnly")
		box = box || ly.switchedOn("sandbox.managedOnly")
	}
	d, err := restricting(l.src.Driver)
	if err != nil {
		ly := layer{kind: Managed, path: driverName}
		return ly.problem(0, err.Error(), "Leave it out, or what is wrong with it.")
	}
	rules, box = rules || d.rules, box || d.box
	theirs, err := l.managedFolder(others.managedDir)
	if err != nil {
		return err
	}
	theirs = append([]string{others.managed}, theirs...)
	for _, path := range theirs {
		rules = rules || l.locksRules(path)
	}
	if rules {
		l.lockRules()
	}
	if box {
		l.lockSandbox()
	}
	if err := l.driven(d); err != nil {
		return err
	}
	for _, path := range theirs {
		if err := l.claude(Managed, path); err != nil {
			return err
		}
	}
	for _, ly := range all {
		if err := l.applyFile(ly); err != nil {
			return err
		}
	}
	return nil
}

// locksRules reports whether a file of theirs leaves rules to nobody else. One that
// cannot be read is reported when it is applied.
func (l *loader) locksRules(path string) bool {
	data, err := l.src.ReadFile(path)
	var s struct {
		Only any `json:"allowManagedPermissionRulesOnly"`
	}
	return err == nil && len(data) <= maxFile && json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &s) == nil && s.Only == true
}

// switchedOn reports whether a file has a switch on.
func (ly *layer) switchedOn(path string) bool {
	at := ly.said
	for word := range strings.SplitSeq(path, ".") {
		if at == nil {
			return false
		}
		i := slices.IndexFunc(at.kids, func(k *written) bool { return k.word == word })
		if i < 0 {
			return false
		}
		at = at.kids[i]
	}
	return string(at.raw) == "true"
}

// managedFolder returns the files of the managed folder in the order of their
// names; hidden ones do not count.
func (l *loader) managedFolder(dir string) ([]string, error) {
	ly := layer{kind: Managed, path: dir}
	names, err := l.src.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, ly.problem(0, "reading it: "+cause(err), "Make it readable, or move it away.")
	}
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if len(paths) > maxManaged {
		return nil, ly.problem(0, fmt.Sprintf("it has more than %d files", maxManaged), "Put them together.")
	}
	slices.Sort(paths)
	return paths, nil
}

// lockRules drops the allow rules of all other layers, and with them what they
// match past.
func (l *loader) lockRules() {
	l.cfg.ManagedOnly = true
	for _, r := range l.cfg.Allow {
		l.leave(Inert{"permissions.allow", r.Origin, Locked, clip(r.Text, maxText)})
	}
	l.cfg.Allow = nil
	l.lockList("permissions.safeVars", &l.cfg.SafeVars)
}

// lockSandbox drops what the other layers loosen of the confinement.
func (l *loader) lockSandbox() {
	box := &l.cfg.Sandbox
	box.ManagedOnly = true
	l.lockList("sandbox.write", &box.Write)
	l.lockList("sandbox.allowRead", &box.AllowRead)
	l.lockList("sandbox.env", &box.Env)
	l.lockList("sandbox.network.allow", &box.AllowHosts)
	for _, f := range []struct {
		key   string
		loose *bool
	}{{"sandbox.mode", &box.Off}, {"sandbox.network.allowPrivate", &box.AllowPrivate}} {
		if *f.loose {
			l.leave(Inert{Key: f.key, Origin: l.cfg.Origins[f.key], Why: Locked})
			*f.loose = false
		}
	}
	if box.Limits != (sandbox.Limits{}) {
		l.leave(Inert{Key: "sandbox.limits", Why: Locked})
		box.Limits = sandbox.Limits{}
	}
}

func (l *loader) lockList(key string, list *[]string) {
	for _, what := range *list {
		l.leave(Inert{key, l.cfg.Origins[key], Locked, clip(what, maxText)})
	}
	*list = nil
}
