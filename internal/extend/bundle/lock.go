package bundle

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"dure/agent/query"
)

// LockFile is where a bundle keeps which packages it was made with.
const LockFile = "bundle.lock.json"

// PackageFolders are where packages lie, below the folder of the bundle that needs them; the
// first that has one counts.
var PackageFolders = []string{".dure/packages", ".goondan/packages", "node_modules"}

// Bounds of a package.
const (
	maxPackages     = 200
	maxPackageFiles = 10_000
	maxPackageBytes = 64 << 20
)

// A Lock is a package as it was when a bundle was locked.
type Lock struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Integrity    string            `json:"integrity"` // of all its files
	Dependencies map[string]string `json:"dependencies,omitempty"`

	Dir string `json:"-"` // in that of the bundle
}

type lockFile struct {
	Version  int    `json:"lockfileVersion"`
	Packages []Lock `json:"packages"`
}

// WriteLock returns what is to stand in the lock file of a bundle.
func (b *Bundle) WriteLock() ([]byte, error) {
	data, err := json.MarshalIndent(lockFile{1, b.Locks}, "", "  ")
	return append(data, '\n'), err
}

// packages loads the packages that the bundle needs, and those that they need.
func (l *loader) packages() {
	type need struct {
		dep  Dependency
		from *Resource
		path []string // packages that lead here
	}
	var needs []need
	queue := func(r *Resource, path []string) {
		if p, ok := r.Spec.(*Package); ok && p != nil {
			for _, d := range p.Dependencies {
				needs = append(needs, need{d, r, path})
			}
		}
	}
	var root *source
	for _, r := range slices.Clone(l.b.Resources) {
		if r.Kind == KindPackage && root == nil {
			root = r.src
			queue(r, nil)
		}
	}
	found := map[string]*Resource{}
	for len(needs) > 0 && len(found) < maxPackages {
		n := needs[0]
		needs = needs[1:]
		if slices.Contains(n.path, n.dep.Name) {
			l.at(query.BundleCircular, n.dep.n, n.dep.path, "ask who made the packages", "the packages need each other: %s", strings.Join(append(n.path, n.dep.Name), ", "))
			continue
		}
		one, loaded := found[n.dep.Name]
		if !loaded {
			one = l.pkg(root, n.dep)
			found[n.dep.Name] = one
			if one != nil {
				queue(one, append(slices.Clone(n.path), n.dep.Name))
			}
		}
		if one == nil {
			continue
		}
		version := one.Spec.(*Package).Version
		if want, err := parseRange(n.dep.Version); err == nil && !want.has(version) {
			l.at(query.BundleVersion, n.dep.n, n.dep.path, "install one that fits", "the package %s is there as %s, and %s is needed", n.dep.Name, version, n.dep.Version)
		}
	}
	slices.SortFunc(l.b.Locks, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	if root != nil && !l.opts.Locking {
		l.compare(root)
	}
}

// pkg loads a package; nil = it is not there, or cannot be read.
func (l *loader) pkg(root *source, d Dependency) *Resource {
	for _, folder := range PackageFolders {
		dir := path.Join(folder, d.Name)
		if info, err := fs.Stat(root.FS, dir); err != nil || !info.IsDir() {
			continue
		}
		sub, err := fs.Sub(root.FS, dir)
		if err != nil {
			continue
		}
		s := &source{Source: Source{Name: d.Name, FS: sub, Trust: root.Trust - 1}, pkg: d.Name, dir: dir}
		l.source(s)
		sum, err := digest(sub)
		if err != nil {
			l.at(query.BundleIntegrity, d.n, d.path, "install it anew", "the package %s cannot be read: %s", d.Name, reason(err))
			return nil
		}
		for _, r := range l.b.Resources {
			if r.src == s && r.Kind == KindPackage && r.Spec != nil {
				k := Lock{Name: d.Name, Version: r.Spec.(*Package).Version, Integrity: sum, Dir: dir}
				for _, need := range r.Spec.(*Package).Dependencies {
					if k.Dependencies == nil {
						k.Dependencies = map[string]string{}
					}
					k.Dependencies[need.Name] = need.Version
				}
				l.b.Locks = append(l.b.Locks, k)
				return r
			}
		}
		return nil
	}
	l.lacks[d.Name] = true
	l.at(query.BundleNotInstalled, d.n, d.path, "put it into "+path.Join(PackageFolders[0], d.Name), "the package %s is not installed", d.Name)
	return nil
}

// Same reports whether the files of a package, in this folder, are those that were locked.
func (k Lock) Same(fsys fs.FS) bool {
	sum, err := digest(fsys)
	return err == nil && sum == k.Integrity
}

// digest is a checksum of all the files of a folder with their names.
func digest(fsys fs.FS) (string, error) {
	sum := sha512.New()
	files, left := 0, int64(maxPackageBytes)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := d.Name(); base == ".bin" && path.Base(path.Dir(name)) == "node_modules" || base == ".git" {
				return fs.SkipDir // links to programs, which no module imports; and the history
			}
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no ordinary file", name)
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		one := sha512.New()
		n, err := io.Copy(one, io.LimitReader(f, left+1))
		if err != nil {
			return err
		}
		if left, files = left-n, files+1; left < 0 || files > maxPackageFiles {
			return errors.New("the package is too large")
		}
		fmt.Fprintf(sum, "%q %x\n", name, one.Sum(nil))
		return nil
	})
	return "sha512-" + hex.EncodeToString(sum.Sum(nil)), err
}

// compare tells how the packages differ from the lock.
func (l *loader) compare(root *source) {
	if len(l.b.Locks) == 0 {
		return
	}
	data, err := read(root.FS, LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		l.add(Problem{Code: query.BundleNoLock, File: LockFile, Message: "which packages the bundle was made with is not written down", Suggestion: "dure bundle lock"})
		return
	}
	var have lockFile
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		err = dec.Decode(&have)
	}
	if err != nil || have.Version != 1 {
		l.add(Problem{Code: query.BundleNoLock, File: LockFile, Message: "the lock of the packages cannot be read", Suggestion: "dure bundle lock"})
		return
	}
	for _, k := range l.b.Locks {
		i := slices.IndexFunc(have.Packages, func(o Lock) bool { return o.Name == k.Name })
		switch {
		case i < 0:
			l.add(Problem{Code: query.BundleNoLock, File: LockFile, Message: fmt.Sprintf("the package %s is not in the lock", k.Name), Suggestion: "dure bundle lock"})
		case have.Packages[i].Integrity != k.Integrity || have.Packages[i].Version != k.Version || !maps.Equal(have.Packages[i].Dependencies, k.Dependencies):
			l.add(Problem{Code: query.BundleIntegrity, File: LockFile, Message: fmt.Sprintf("the package %s is not what was locked", k.Name), Suggestion: "look at what has changed in it, then: dure bundle lock"})
		}
	}
}
