package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dure/internal/safety/sandbox/inner"
)

// maxNested bounds the inner repositories (submodules, worktrees) of a root whose
// settings are protected one by one.
const maxNested = 64

// A rule is what a command may do below a path, and how that is called when it
// does not suffice. Rules at deeper paths come first.
type rule struct {
	access Access
	why    string // of a Denial
	hold   bool   // it does not exist, and must not come to
	pin    bool   // writable, but a mount point, so that it cannot be renamed away
}

// Why a path was refused.
const (
	whyOutside   = "outside"
	whyProtected = "protected"
	whyHidden    = "hidden"
	whyPlan      = "plan" // the command was said to read only
)

// A profile is what one command may do with the file tree.
type profile struct {
	rules map[string]rule
	sweep []string // removed when the command has made them

	folders map[string]bool // what plain has found
}

// profileOf works out what a command may do, as the file tree is now.
func profileOf(c *Confinement, g Grant) (*profile, error) {
	p := &profile{
		rules:   map[string]rule{"/": {access: ReadOnly, why: whyOutside}},
		folders: map[string]bool{},
	}
	for _, path := range []string{"/tmp", "/run", "/dev", "/proc"} {
		p.rules[path] = rule{access: Private}
	}
	for _, path := range c.Writable {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("making a folder for commands: %w", err)
		}
		if real := resolve(path); real != "" {
			p.rules[real] = rule{access: Write}
		}
	}
	root := rule{access: Write}
	if g.ReadOnly {
		root = rule{access: ReadOnly, why: whyPlan}
	}
	var roots []string
	for _, path := range c.Roots {
		real := resolve(path)
		if real == "" {
			return nil, fmt.Errorf("confining a command: its root %s is not there", path)
		}
		if real == "/" {
			return nil, errors.New("confining a command: the root of the file system cannot be its workspace")
		}
		roots = append(roots, real)
	}
	for _, path := range c.Extra {
		if real := resolve(path); real != "" && real != "/" {
			roots = append(roots, real)
		}
	}
	for _, real := range roots {
		p.rules[real] = root
	}
	p.hide(c.Hide, roots)
	for _, path := range c.Read {
		p.show(path)
	}
	for _, real := range roots {
		p.protectRoot(c, real)
	}
	for _, path := range c.Protect {
		p.protect(filepath.Clean(path), true)
	}
	p.grant(g)
	return p, nil
}

// resolve returns what a path leads to, or "" when it leads nowhere.
func resolve(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}

// present reports whether there is something at a path. A hold is nothing.
func present(path string) bool {
	var st unix.Stat_t // asked for once: a hold may go at any time
	return unix.Lstat(path, &st) == nil && st.Mode != unix.S_IFDIR|holdMode
}

// at returns the rule that holds for a path, and where it stands.
func (p *profile) at(path string) (string, rule) {
	for {
		if r, ok := p.rules[path]; ok {
			return path, r
		}
		path = filepath.Dir(path)
	}
}

// hide hides paths. Where they could be moved, or the links that lead to them be
// changed, another command would find them elsewhere. Roots are not hidden.
func (p *profile) hide(paths, roots []string) {
	var ways []way
	for _, path := range paths {
		if resolve(path) != "" {
			ways = append(ways, wayTo(path))
		}
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Compare(a.end, b.end) }) // nothing is pinned below what is hidden
	for _, w := range ways {
		if !slices.Contains(roots, w.end) {
			p.rules[w.end] = rule{access: Masked, why: whyHidden}
			p.pin(w.end)
		}
	}
	for _, w := range ways {
		for _, link := range w.links {
			p.keep(link, rule{access: ReadOnly, why: whyProtected})
		}
	}
}

// show makes a path that is hidden, or below one that is, readable.
func (p *profile) show(path string) {
	real := resolve(path)
	if real == "" {
		return
	}
	for at := range p.rules {
		if p.rules[at].access == Masked && within(at, real) {
			delete(p.rules, at)
		}
	}
	if _, r := p.at(real); r.access == Masked || r.access == Private && within(real, "/tmp") {
		p.rules[real] = rule{access: ReadOnly, why: whyOutside}
	}
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// protectRoot protects what the names of a confinement stand for in a root.
func (p *profile) protectRoot(c *Confinement, root string) {
	for _, name := range c.ProtectNames {
		p.protect(filepath.Join(root, filepath.FromSlash(name)), true)
	}
	for _, name := range c.PresentNames {
		p.protect(filepath.Join(root, filepath.FromSlash(name)), false)
	}
	swept := sweptNames
	if inRepository(root) {
		swept = append(slices.Clip(swept), bareName)
	} else {
		p.protect(filepath.Join(root, bareName), true)
	}
	for _, name := range swept {
		path := filepath.Join(root, name)
		p.sweepUp(path)
	}
	if present(filepath.Join(root, "objects")) && present(filepath.Join(root, "refs")) { // it is a repository itself
		p.protectRepository(root)
	}
	p.protectRepository(filepath.Join(root, ".git"))
	p.openWorktree(root)
}

// sweepUp protects a path, or has it removed if the command makes it.
func (p *profile) sweepUp(path string) {
	if present(path) {
		p.protect(path, false)
	} else if _, r := p.at(path); r.access == Write {
		p.sweep = append(p.sweep, path)
	}
}

// protectRepository protects the settings of a repository, and of what lies in
// it: submodules, and the ways from and to worktrees.
func (p *profile) protectRepository(dir string) {
	if dir = resolve(dir); dir == "" || !isFolder(dir) {
		return
	}
	p.protectSettings(dir)
	p.sweepUp(filepath.Join(dir, "config.worktree"))
	count := 0
	_ = filepath.WalkDir(filepath.Join(dir, "modules"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || count >= maxNested {
			return fs.SkipAll
		}
		if !d.IsDir() || path == filepath.Join(dir, "modules") || !present(filepath.Join(path, "HEAD")) {
			return nil
		}
		count++
		p.protectSettings(path)
		return fs.SkipDir
	})
	trees, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "worktrees", "*"))
	for _, tree := range trees[:min(len(trees), maxNested)] {
		// Without commondir it is no worktree. Git writes that last when it makes one, and
		// another process may be doing so: what it writes then is not the command's.
		if !present(filepath.Join(tree, "commondir")) {
			continue
		}
		for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
			p.sweepUp(filepath.Join(tree, name))
		}
	}
}

// protectSettings protects what of a repository names programs.
func (p *profile) protectSettings(dir string) {
	p.protect(filepath.Join(dir, "config"), true)
	p.protect(filepath.Join(dir, "hooks"), true)
	p.sweepUp(filepath.Join(dir, "commondir"))
}

// inRepository reports whether a folder is the work tree of a repository, or lies in
// one.
func inRepository(dir string) bool {
	for {
		if present(filepath.Join(dir, ".git")) {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// openWorktree makes the repository of a worktree writable, as its commits are
// stored there. A repository could name any folder as its own: the one that it
// names has to name this root in turn, from outside of it.
func (p *profile) openWorktree(root string) {
	const most = 4096 // bytes of either name
	link := filepath.Join(root, ".git")
	text, err := readBounded(link, most)
	if err != nil {
		return
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !ok || !filepath.IsAbs(dir) || filepath.Base(filepath.Dir(dir)) != "worktrees" {
		return
	}
	back, err := readBounded(filepath.Join(dir, "gitdir"), most)
	if err != nil || within(resolve(dir), root) || resolve(strings.TrimSpace(string(back))) != link {
		return
	}
	repository := resolve(filepath.Dir(filepath.Dir(dir)))
	if repository == "" {
		return
	}
	if _, r := p.at(repository); r.access == ReadOnly && r.why == whyOutside || r.access == Private && within(repository, "/tmp") {
		_, r := p.at(root)
		p.rules[repository] = r
		p.protectRepository(repository)
	}
}

// protect makes a path read-only where it would be writable, with the links that
// it leads through. What is missing is held at its first missing part, if hold says
// so; what stands on the way and is no folder is made read-only instead.
func (p *profile) protect(path string, hold bool) {
	w := way{end: path, there: present(path)}
	if !p.plain(filepath.Dir(path)) || w.there && isLink(path) {
		w = wayTo(path)
	}
	if !w.there && !hold {
		return
	}
	for _, link := range w.links {
		p.keep(link, rule{access: ReadOnly, why: whyProtected})
	}
	p.keep(w.end, rule{access: ReadOnly, why: whyProtected, hold: !w.there})
}

// keep sets a rule for what would be writable otherwise.
func (p *profile) keep(path string, r rule) {
	_, over := p.at(filepath.Dir(path))
	if old := p.rules[path].access; over.access == Write && old != ReadOnly && old != Masked {
		p.rules[path] = r
		p.pin(path)
	}
}

// pin keeps the folders on the way to a path, from what is writable, from being
// moved.
func (p *profile) pin(path string) {
	top, over := p.at(filepath.Dir(path))
	for dir := filepath.Dir(path); over.access == Write && dir != top; dir = filepath.Dir(dir) {
		p.rules[dir] = rule{access: Write, pin: true}
	}
}

// plain reports whether a path is a folder that no link leads to.
func (p *profile) plain(path string) bool {
	is, known := p.folders[path]
	if !known {
		is = present(path) && isFolder(path) && resolve(path) == path
		p.folders[path] = is
	}
	return is
}

// grant opens what was allowed for one command; of /tmp, that is what others have
// put there. What does not exist yet is opened by the folder that it comes to
// stand in, unless that holds everything.
func (p *profile) grant(g Grant) {
	for _, path := range g.Reads {
		p.show(path)
	}
	for _, path := range g.Writes {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) {
			continue
		}
		if real := resolve(filepath.Dir(path)); real != "" {
			path = filepath.Join(real, filepath.Base(path))
		}
		if real := resolve(path); real != "" {
			path = real
		}
		for at, r := range p.rules {
			if r.access == ReadOnly && r.why != whyOutside && within(at, path) && opens(path, at) {
				delete(p.rules, at)
			}
		}
		p.sweep = slices.DeleteFunc(p.sweep, func(s string) bool { return opens(path, s) })
		at, r := p.at(path)
		switch {
		case r.access == Write || r.access == Private && (!within(path, "/tmp") || path == "/tmp" || !present(path)):
			continue // what is new in /tmp is a matter of commands
		case r.hold && at != path: // a part of the way was held
			delete(p.rules, at)
			if _, r := p.at(path); r.access == Write {
				continue
			}
		}
		if present(path) || p.widen(&path) {
			p.rules[path] = rule{access: Write}
		}
	}
}

// widen replaces a path that is missing by the folder that it comes to stand in,
// and reports whether that may be opened for its sake: not the top of the file
// system, and not a home folder, which hides something.
func (p *profile) widen(path *string) bool {
	for *path != "/" && !present(*path) {
		*path = filepath.Dir(*path)
	}
	for at, r := range p.rules {
		if r.access == Masked && within(at, *path) {
			return false
		}
	}
	return *path != "/" && filepath.Dir(*path) != "/"
}

// holds returns what must not come into being.
func (p *profile) holds() []string {
	var all []string
	for path, r := range p.rules {
		if r.hold {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// view returns what Explain shows. Without namespaces, nothing in the workspace
// is protected or hidden, and /tmp is like any other folder.
func (p *profile) view(namespaces bool) []Mount {
	var all []Mount
	for path, r := range p.rules {
		_, over := p.at(filepath.Dir(path))
		lost := r.why == whyProtected || r.access == Private || r.access == Masked && over.access == Write
		if !r.pin && (namespaces || !lost) {
			all = append(all, Mount{Path: path, Access: r.access})
		}
	}
	slices.SortFunc(all, func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// places are the folders of a box that mounts show.
type places struct {
	temp  string // for /tmp
	none  string // an empty folder
	blank string // an empty file
}

// kept are folders below /run that systems without /usr keep their programs in.
var kept = []string{"/run/current-system", "/run/booted-system", "/run/opengl-driver"}

// mounts returns the steps that make the file tree of a profile: what lies deeper
// comes later.
func (p *profile) mounts(at places, net Net) []inner.Mount {
	rules := maps.Clone(p.rules)
	open := kept
	if net == NetOpen { // names are looked up inside
		open = append(slices.Clone(kept), "/run/systemd/resolve", resolve("/etc/resolv.conf"))
	}
	for _, path := range open {
		if within(path, "/run") && present(path) {
			rules[path] = rule{access: ReadOnly}
		}
	}
	var all []inner.Mount
	paths := slices.Sorted(maps.Keys(rules))
	for i, path := range paths {
		m := inner.Mount{Path: path, Source: path, Make: p.inPrivate(path)}
		if path == "/" || within(path, "/proc/") || within(path, "/dev/") {
			continue
		}
		deeper := i+1 < len(paths) && within(paths[i+1], path)
		switch r := rules[path]; {
		case path == "/tmp" && r.access == Private:
			m.Kind, m.Source = inner.Bind, at.temp
		case path == "/run":
			m.Kind = inner.Fresh
		case path == "/proc":
			m.Kind = inner.Proc
		case path == "/dev":
			m.Kind = inner.Dev
		case r.access == Write:
			m.Kind = inner.Bind
		case r.hold:
			m.Kind, m.Source = inner.BindRO, at.none
		case r.access == ReadOnly:
			m.Kind = inner.BindRO
		case m.Make:
			continue // nothing of it is there
		case isFolder(path) && deeper:
			m.Kind = inner.Tmpfs
		case isFolder(path):
			m.Kind, m.Source = inner.BindRO, at.none
		default:
			m.Kind, m.Source = inner.BindRO, at.blank
		}
		all = append(all, m)
	}
	return all
}

// inPrivate reports whether a path lies in a folder that mounts have emptied, so
// that its mount point has to be made and is nobody's.
func (p *profile) inPrivate(path string) bool {
	_, r := p.at(filepath.Dir(path))
	return r.access == Private || r.access == Masked
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// writable returns what can be written, for Landlock: behind mounts that say it
// again, and without them.
func (p *profile) writable(at places, namespaces bool) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(p.rules)) {
		switch r := p.rules[path]; {
		case r.access == Write, r.access == Private && namespaces:
			all = append(all, path)
		}
	}
	if !namespaces {
		all = append(all, at.temp, "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom")
	}
	return all
}

// maxReadable bounds the list of what can be read where only a list can hide
// something: all that stands beside what is hidden, and beside its parents.
const maxReadable = 8192

// readable returns that list; nil = nothing is hidden. What is too long to list
// is left out: it cannot be read then.
func (p *profile) readable() []string {
	var hidden []string
	for path, r := range p.rules {
		if r.access == Masked {
			hidden = append(hidden, path)
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	all := []string{}
	var open func(dir string)
	open = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case len(all) >= maxReadable || slices.Contains(hidden, path):
			case slices.ContainsFunc(hidden, func(h string) bool { return within(h, path) }):
				open(path)
			case e.Type()&os.ModeSymlink == 0: // a link is what it leads to
				all = append(all, path)
			}
		}
	}
	open("/")
	for path, r := range p.rules {
		if r.access == Write || r.access == ReadOnly && path != "/" {
			all = append(all, path)
		}
	}
	return all
}

// permitted reports whether the user himself could do what a command could not.
func permitted(path string, write bool) bool {
	if !write {
		return unix.Access(path, unix.R_OK) == nil
	}
	if present(path) {
		return unix.Access(path, unix.W_OK) == nil
	}
	return unix.Access(filepath.Dir(path), unix.W_OK) == nil
}
