// Package bundle reads the resource files in which agents, their tools and what connects them
// are described: documents of YAML, each with a kind, a name and a spec.
//
// It owns the format: which files belong to a bundle, what the kinds mean, how references,
// selectors and values are resolved, which of two resources of one name counts, and the lock
// of the packages that a bundle needs. A run tells all mistakes at once, each with its place.
// It starts nothing and asks nobody: what it reads is hostile, and nothing of it takes effect
// here. It starts no goroutines; a [Bundle] is not changed once it is loaded, and safe for
// concurrent use.
package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/base/near"
)

// Bounds of a bundle.
const (
	maxFiles   = 1000   // with resources, in one source
	maxEntries = 20_000 // files and folders that are looked at for them
	maxFolders = 32     // in each other
)

// A Source is a folder with resource files.
type Source struct {
	Name  string // what to call it where it is told; "" = the bundle itself
	FS    fs.FS  // confined to the folder, as that of an os.Root is
	File  string // the one file that counts; "" = all that have names of resource files
	Trust int    // what has less of it replaces nothing of what has more
}

// Options say what a bundle is loaded from.
type Options struct {
	Sources []Source // later ones replace what earlier ones of the same trust have

	// Getenv returns a variable; nil = whether variables are set is not looked at.
	Getenv func(string) (string, bool)
	// Builtin reports whether a tool that the program has may be named by bundles; nil = none.
	Builtin func(name string) bool

	// Kit returns what a kit of tools of the program has, by the names of its exports;
	// none = there is no such kit.
	Kit func(name string) []string

	// Compiled reports whether an extension is compiled into the program, and its version;
	// nil = none is.
	Compiled func(name string) (version string, ok bool)
	// Locking leaves out the comparison with the lock, which is to be written anew.
	Locking bool
}

// A Bundle is what was loaded.
type Bundle struct {
	Resources []*Resource // that count, by kind and name
	Locks     []Lock      // packages that are needed, by name
	byID      map[string]*Resource
	agents    map[string]*Effective
	getenv    func(string) (string, bool)
}

// source is a folder while it is loaded.
type source struct {
	Source
	pkg   string // of its resources
	dir   string // of a package, in the folder of the bundle; "" = that itself
	files []string
}

// loader loads one bundle.
type loader struct {
	problems
	opts  Options
	b     *Bundle
	bad   map[string]bool // resources that are there and cannot be read
	lacks map[string]bool // packages that are needed and are not there
	all   []*Resource     // that count or not
}

// Load reads a bundle. What is wrong with it is returned in the order of files and lines; it
// can be started when none of that is an [Error].
func Load(opts Options) (*Bundle, []Problem) {
	l := &loader{opts: opts, bad: map[string]bool{}, lacks: map[string]bool{}}
	l.b = &Bundle{byID: map[string]*Resource{}, agents: map[string]*Effective{}, getenv: opts.Getenv}
	for _, s := range opts.Sources {
		l.source(&source{Source: s})
	}
	l.packages()
	if len(l.all) == 0 && len(l.list) == 0 {
		l.add(Problem{Code: query.BundleParse, Message: "there are no resources here", Suggestion: "write them into goondan.yaml"})
	}
	slices.SortFunc(l.b.Resources, func(x, y *Resource) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)), cmp.Compare(x.Name, y.Name))
	})
	l.resolve()
	return l.b, l.sorted()
}

// Failed reports whether a bundle cannot be started.
func Failed(list []Problem) bool {
	return slices.ContainsFunc(list, func(p Problem) bool { return p.Severity == query.BundleError })
}

// Find returns a resource.
func (b *Bundle) Find(r Ref) (*Resource, bool) {
	one, ok := b.byID[r.ID()]
	return one, ok
}

// Of returns the resources of a kind.
func (b *Bundle) Of(kind string) []*Resource {
	var all []*Resource
	for _, r := range b.Resources {
		if r.Kind == kind {
			all = append(all, r)
		}
	}
	return all
}

var fileNames = []string{
	"goondan", "dure", "model", "models", "agent", "agents", "tool", "tools", "extension", "extensions", "connector", "connectors",
	"connection", "connections", "swarm", "swarms", "oauthapp", "oauthapps", "resources",
}

// isFile reports whether a file of this name has resources.
func isFile(name string) bool {
	ext := path.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && slices.Contains(fileNames, strings.ToLower(strings.TrimSuffix(name, ext)))
}

// source reads the files of a source.
func (l *loader) source(s *source) {
	if s.File != "" {
		s.files = []string{s.File}
	} else {
		s.files = l.scan(s)
	}
	seen := map[string]*Resource{}
	manifest := false
	for _, file := range s.files {
		data, err := read(s.FS, file)
		if err != nil {
			l.add(Problem{Code: query.BundleParse, File: file, Message: "the file cannot be read: " + reason(err), Suggestion: "look at its name and its permissions"})
			continue
		}
		for _, n := range parse(file, data, &l.problems) {
			r := l.document(s, n)
			if r == nil {
				continue
			}
			if r.Kind == KindPackage {
				switch {
				case manifest:
					l.at(query.BundlePackageTwice, n, "kind", "remove one of them", "a bundle is one Package, and this is a second one")
					continue
				case n.at.Doc != 0:
					l.at(query.BundlePackagePlace, n, "kind", "move it to the top of the file", "a Package is the first document of its file")
				}
				manifest = true
			}
			if before := seen[r.ID()]; before != nil {
				l.at(query.BundleDuplicate, n, "metadata.name", "rename one of them", "%s is in %s:%d already", r.ID(), before.Place.File, before.Place.Line)
				continue
			}
			seen[r.ID()] = r
			l.take(r)
		}
	}
	if s.pkg != "" && !manifest {
		l.add(Problem{Code: query.BundleNoManifest, Message: fmt.Sprintf("the package %s has no document of the kind Package", s.pkg), Suggestion: "ask who made it"})
	}
}

// reason is what the system says, without the path that is named anyway.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

func read(fsys fs.FS, file string) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// scan finds the files of a source, sorted.
func (l *loader) scan(s *source) []string {
	var files []string
	left := maxEntries
	err := fs.WalkDir(s.FS, ".", func(name string, d fs.DirEntry, err error) error {
		switch left--; {
		case err != nil:
			l.add(Problem{Code: query.BundleParse, File: name, Message: "the file cannot be read: " + reason(err), Suggestion: "look at its name and its permissions"})
			return nil
		case left < 0 || len(files) == maxFiles:
			l.add(Problem{Code: query.BundleParse, Message: "the folder has too many files", Suggestion: "name the folder of the bundle"})
			return fs.SkipAll
		case d.IsDir():
			base := d.Name()
			if name != "." && (base == "dist" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.Count(name, "/") > maxFolders) {
				return fs.SkipDir
			}
		case isFile(d.Name()):
			if !d.Type().IsRegular() {
				l.add(Problem{Code: query.BundleParse, Severity: query.BundleWarning, File: name, Message: "it is no ordinary file, and is not read", Suggestion: "put the file itself there"})
				return nil
			}
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		l.add(Problem{Code: query.BundleParse, Message: "the folder cannot be read: " + reason(err), Suggestion: "look at its name and its permissions"})
	}
	slices.Sort(files)
	return files
}

// document reads what every resource has, and what it is. nil = it is none.
func (l *loader) document(s *source, n *node) *Resource {
	f := fieldsOf(&l.problems, n, "the document")
	if f.n == nil {
		return nil
	}
	f.path = ""
	api, kind := f.text("apiVersion"), f.needText("kind")
	f.get("spec")
	meta := f.in("metadata")
	r := &Resource{Kind: kind, Package: s.pkg, Source: s.Name, Place: n.at, n: n, trust: s.Trust, src: s}
	r.Name, r.Labels = meta.needText("name"), meta.words("labels")
	meta.words("annotations")
	meta.done()
	f.done()
	switch {
	case api == "":
		f.missing("apiVersion", "write: apiVersion: "+API)
	case api != API && api != OldAPI:
		fix := "write: apiVersion: " + API
		l.at(query.BundleAPIVersion, n.get("apiVersion"), "apiVersion", fix, "the version %q of the format is not known", api)
	}
	if fix, old := gone[kind]; old {
		l.warn(query.BundleMigrate, n.get("kind"), "kind", fix, "the kind %s is not read any more", kind)
		return nil
	}
	if kind != "" && !slices.Contains(kinds, kind) {
		fix := "write one of: " + strings.Join(kinds, ", ")
		if like := kindLike(kind); like != "" {
			fix = "did you mean " + like + "?"
		}
		l.at(query.BundleKind, n.get("kind"), "kind", fix, "there is no kind %q", kind)
		return nil
	}
	if r.Name != "" {
		if message, fix := nameFault(kind, r.Name); message != "" {
			l.at(query.BundleName, meta.n.get("name"), "metadata.name", fix, "%s", message)
			l.bad[r.ID()] = true
			r.Name = ""
		}
	}
	before := len(l.list)
	r.Spec = readSpec(&l.problems, r)
	if kind == "" || r.Name == "" {
		return nil
	}
	if failed(l.list[before:]) {
		l.bad[r.ID()] = true
	}
	return r
}

func failed(list []Problem) bool { return Failed(list) }

// take makes a resource count, unless one of the same name has more trust.
func (l *loader) take(r *Resource) {
	l.all = append(l.all, r)
	id := r.ID()
	before := l.b.byID[id]
	if before == nil {
		l.b.byID[id] = r
		l.b.Resources = append(l.b.Resources, r)
		return
	}
	if before.trust > r.trust {
		l.warn(query.BundleOverride, r.n, "metadata.name", "rename it", "%s of %s does not count: that of %s is trusted more", id, named(r), named(before))
		return
	}
	l.warn(query.BundleOverride, r.n, "metadata.name", "", "%s of %s takes the place of that of %s", id, named(r), named(before))
	l.b.byID[id] = r
	l.b.Resources[slices.Index(l.b.Resources, before)] = r
}

func named(r *Resource) string { return cmp.Or(r.Source, "the bundle") }

// refer finds what a reference names, and tells when there is none.
func (l *loader) refer(r Ref, from *Resource) *Resource {
	if !r.Given() {
		return nil
	}
	if r.Package == "" {
		r.Package = from.Package
	}
	if one := l.b.byID[r.ID()]; one != nil {
		return one
	}
	if l.bad[r.ID()] || l.lacks[r.Package] {
		return nil // told already
	}
	var names []string
	for _, one := range l.b.Resources {
		if one.Kind == r.Kind && one.Package == r.Package {
			names = append(names, one.Name)
		}
	}
	fix := "write it, or name another one"
	if like := near.Nearest(r.Name, names); like != "" {
		fix = "did you mean " + r.Kind + "/" + like + "?"
	} else if r.Package != "" && !l.depends(r.Package) {
		fix = "add the package to the dependencies of the Package"
	}
	l.at(query.BundleRefMissing, r.n, r.Path, fix, "there is no %s", r.ID())
	return nil
}

func (l *loader) depends(pkg string) bool {
	return slices.ContainsFunc(l.b.Locks, func(k Lock) bool { return k.Name == pkg })
}
