package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"dure/internal/base/frontmatter"
)

// Read reads the plugin in a folder, and executes nothing of it. Nothing that a path or
// a link of it leads to outside of the folder is read. A plugin without a manifest has
// the name that is given.
func Read(dir, name string) (Plugin, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Plugin{}, fmt.Errorf("reading a plugin: %w", err)
	}
	defer root.Close()
	return ReadFS(root.FS(), name)
}

// ReadFS is [Read] for a tree of files.
func ReadFS(fsys fs.FS, name string) (Plugin, error) {
	m, err := readManifest(fsys)
	if err != nil {
		return Plugin{}, err
	}
	return read(fsys, name, m)
}

func read(fsys fs.FS, name string, m manifest) (Plugin, error) {
	p := Plugin{Manifest: Manifest{Name: name}}
	if err := m.describe(&p); err != nil {
		return Plugin{}, err
	}
	if p.Name == "" {
		p.Name = name
	}
	if err := checkName("the name of the plugin", p.Name); err != nil {
		return Plugin{}, err
	}
	r := &reader{fsys: fsys, m: &m, p: &p}
	for _, step := range []func() error{r.skills, r.commands, r.agents, r.hooks, r.servers, r.settings, r.programs} {
		if err := step(); err != nil {
			return Plugin{}, fmt.Errorf("reading the plugin %s: %w", p.Name, err)
		}
	}
	r.entry()
	r.unknown()
	if m.file == "" && len(p.Skills)+len(p.Commands)+len(p.Agents)+len(p.Hooks)+len(p.Servers)+len(p.Programs) == 0 {
		if _, err := fs.Stat(fsys, marketFile); err == nil {
			return Plugin{}, ErrMarket
		}
		return Plugin{}, ErrNone
	}
	p.Warnings = m.warn
	p.Can = r.capabilities()
	return p, nil
}

// reader reads the components of a plugin.
type reader struct {
	fsys fs.FS
	m    *manifest
	p    *Plugin
}

// readFile reads a regular file of at most so many bytes.
func readFile(fsys fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, err
}

func (r *reader) left(what, why string) {
	r.p.Left = append(r.p.Left, Left{What: clip(what), Why: why})
}

func (r *reader) isDir(name string) bool {
	info, err := fs.Stat(r.fsys, name)
	return err == nil && info.IsDir()
}

func (r *reader) isFile(name string) bool {
	info, err := fs.Stat(r.fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// named returns the paths that the manifest has under a key. One that leads elsewhere
// is an error, not something to leave out: it was meant to be followed.
func (r *reader) named(key string) ([]string, error) {
	raw, ok := r.m.keys[frontmatter.Plain(key)]
	if !ok || isNull(raw) {
		return nil, nil
	}
	list, err := textsOf(raw)
	if err != nil {
		r.left(key, "it "+err.Error())
		return nil, nil
	}
	for i, p := range list {
		if list[i], err = local(p); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.m.file, key, err)
		}
		if !r.isDir(list[i]) && !r.isFile(list[i]) {
			r.m.say("%s: there is no %s", key, clip(p))
		}
	}
	return list, nil
}

// skillFile is the file that makes a folder a skill, in either of its spellings; "" =
// there is none.
func (r *reader) skillFile(dir string) string {
	for _, name := range []string{"SKILL.md", "skill.md"} {
		if at := path.Join(dir, name); r.isFile(at) {
			return at
		}
	}
	return ""
}

// isMarkdown reports whether a name is one that commands and agents are found by.
func isMarkdown(name string) bool { return strings.EqualFold(path.Ext(name), ".md") }

// skills adds the folders that the manifest names to the usual one.
func (r *reader) skills() error {
	dirs, err := r.named("skills")
	if err != nil {
		return err
	}
	if r.isDir("skills") {
		dirs = append([]string{"skills"}, dirs...)
	} else if len(dirs) == 0 && r.skillFile(".") != "" {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		if r.skillFile(dir) != "" {
			r.p.Skills = append(r.p.Skills, dir)
			continue
		}
		entries, err := fs.ReadDir(r.fsys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.left(dir, "its files cannot be listed")
			continue
		}
		for _, e := range entries {
			if at := path.Join(dir, e.Name()); r.skillFile(at) != "" {
				r.p.Skills = append(r.p.Skills, at)
			}
		}
	}
	r.p.Skills, err = bounded("skills", r.p.Skills)
	return err
}

func (r *reader) commands() (err error) {
	r.p.Commands, err = r.markdown("commands")
	return err
}

func (r *reader) agents() (err error) {
	r.p.Agents, err = r.markdown("agents")
	return err
}

// markdown returns the Markdown files of a kind: those that the manifest names in the
// place of the usual folder.
func (r *reader) markdown(kind string) ([]string, error) {
	list, err := r.named(kind)
	if err != nil {
		return nil, err
	}
	if list == nil && r.isDir(kind) {
		list = []string{kind}
	}
	var files []string
	for _, at := range list {
		if r.isFile(at) {
			if isMarkdown(at) {
				files = append(files, at)
			} else {
				r.left(at, "it is no Markdown file")
			}
			continue
		}
		err := fs.WalkDir(r.fsys, at, func(name string, e fs.DirEntry, err error) error {
			if err == nil && isMarkdown(name) && r.isFile(name) {
				files = append(files, name)
			}
			if len(files) > maxNamed {
				return fs.SkipAll
			}
			return nil // what cannot be listed is not there
		})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", at, err)
		}
	}
	return bounded(kind, files)
}

// bounded sorts a list, drops what stands in it twice, and refuses one that is too long.
func bounded(kind string, list []string) ([]string, error) {
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > maxNamed {
		return nil, fmt.Errorf("it has more than %d %s", maxNamed, kind)
	}
	return list, nil
}

// objects returns the objects that stand under a key of the manifest, itself or in files
// that it names, and the one of the usual file; what wraps it in the file is taken off.
func (r *reader) objects(key, usual, wrap string) (files []string, raw []json.RawMessage, err error) {
	var names []string
	if r.isFile(usual) {
		names = []string{usual}
	}
	if v := r.m.keys[frontmatter.Plain(key)]; !isNull(v) {
		entries := []json.RawMessage{v}
		if v[0] == '[' {
			entries = nil
			if err := json.Unmarshal(v, &entries); err != nil || len(entries) > maxNamed {
				return nil, nil, fmt.Errorf("%s: %s has to be a path, an object or a list of them", r.m.file, key)
			}
		}
		for _, e := range entries {
			var at string
			if json.Unmarshal(e, &at) != nil {
				if files, raw, err = unwrap(files, raw, "", e, wrap); err != nil {
					return nil, nil, fmt.Errorf("%s: %s: %w", r.m.file, key, err)
				}
				continue
			}
			if at, err = local(at); err != nil {
				return nil, nil, fmt.Errorf("%s: %s: %w", r.m.file, key, err)
			}
			if !slices.Contains(names, at) {
				names = append(names, at)
			}
		}
	}
	for _, name := range names {
		data, err := readFile(r.fsys, name, maxManifest)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if files, raw, err = unwrap(files, raw, name, data, wrap); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return files, raw, nil
}

func unwrap(files []string, raw []json.RawMessage, file string, data json.RawMessage, wrap string) ([]string, []json.RawMessage, error) {
	keys, err := decodeObject(data)
	if err != nil {
		return nil, nil, err
	}
	if inner, ok := keys[frontmatter.Plain(wrap)]; ok {
		data = inner
	}
	return append(files, file), append(raw, data), nil
}

func (r *reader) hooks() error {
	files, raw, err := r.objects("hooks", "hooks/hooks.json", "hooks")
	for i := range raw {
		r.p.Hooks = append(r.p.Hooks, Hooks{files[i], raw[i]})
	}
	return err
}

// servers takes the first of two servers of one name.
func (r *reader) servers() error {
	_, raw, err := r.objects("mcpServers", ".mcp.json", "mcpServers")
	if err != nil {
		return err
	}
	for _, one := range raw {
		var list map[string]json.RawMessage
		if err := json.Unmarshal(one, &list); err != nil || len(list) > maxNamed {
			return fmt.Errorf("mcpServers has to be an object of at most %d servers", maxNamed)
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if _, twice := r.p.Servers[name]; twice || len(name) > maxName {
				r.left("server "+name, "another one has its name, or the name is too long")
				continue
			}
			if r.p.Servers == nil {
				r.p.Servers = map[string]json.RawMessage{}
			}
			r.p.Servers[name] = list[name]
		}
	}
	return nil
}

// settings takes the keys that a plugin may set.
func (r *reader) settings() error {
	data, err := readFile(r.fsys, "settings.json", maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading settings.json: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("reading settings.json: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch key {
		case "agent":
			if r.p.Settings == nil {
				r.p.Settings = map[string]json.RawMessage{}
			}
			r.p.Settings[key] = all[key]
		case "$schema":
		default:
			r.left("settings.json: "+key, "of the settings a plugin may set agent alone here")
		}
	}
	return nil
}

func (r *reader) programs() error {
	entries, err := fs.ReadDir(r.fsys, "bin")
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	for _, e := range entries {
		if at := path.Join("bin", e.Name()); r.isFile(at) {
			r.p.Programs = append(r.p.Programs, at)
		}
	}
	r.p.Programs, err = bounded("programs", r.p.Programs)
	return err
}

// entry takes what a manifest.json is about.
func (r *reader) entry() {
	kind := strings.ToLower(r.m.text("type"))
	if r.m.file != ownManifest {
		return
	}
	entry := r.m.text("entry")
	at, err := local(cmp.Or(entry, "."))
	switch {
	case kind != "skill" && kind != "":
		r.left("type "+kind, "only plugins of the type Skill work here")
	case err != nil:
		r.left("entry", err.Error())
	case strings.EqualFold(path.Base(at), "SKILL.md") && r.skillFile(path.Dir(at)) != "":
		r.p.Skills = append(r.p.Skills, path.Dir(at))
	case r.skillFile(at) != "":
		r.p.Skills = append(r.p.Skills, at)
	case r.isFile(at) && isMarkdown(at):
		r.p.Commands = append(r.p.Commands, at)
	case entry != "":
		r.left("entry", "there is no skill at "+clip(entry))
	}
	r.p.Skills, _ = bounded("skills", r.p.Skills)
	r.p.Commands, _ = bounded("commands", r.p.Commands)
}
