package swarms

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/toolkit"
)

// envFiles have variables of a bundle; the first one that names a variable counts, and what
// the program was started with only where none does.
var envFiles = []string{".env.local", ".env"}

// load reads the bundle of a folder, or of one file, and returns the folder it lies in.
// root is to be closed when the bundle is not used any more.
func (ext *Extension) load(path string, locking bool) (b *bundle.Bundle, info query.BundleInfo, root *os.Root, err error) {
	dir, file, err := ext.place(path)
	if err == nil {
		root, err = os.OpenRoot(dir)
	}
	if err != nil {
		return nil, info, nil, problem(path, err)
	}
	b, list := bundle.Load(ext.options(root, root.FS(), file, locking))
	info = b.Report(list)
	info.Path = path
	return b, info, root, nil
}

// place returns the folder of a bundle, and the one file that counts of it; "" = all.
func (ext *Extension) place(path string) (dir, file string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(ext.cfg.Workdir, path)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, "", err
	}
	dir, file = filepath.Split(path)
	return dir, file, nil
}

// options is how a bundle with these files is loaded. Its variables are those of root.
func (ext *Extension) options(root *os.Root, files fs.FS, file string, locking bool) bundle.Options {
	return bundle.Options{
		Sources: []bundle.Source{{FS: files, File: file}}, Getenv: ext.env(root), Locking: locking,
		Builtin:  ext.cfg.Builtin,
		Kit:      toolkit.Exports,
		Compiled: func(name string) (string, bool) { x, ok := ext.compiled(name); return x.Version, ok },
	}
}

// env returns the variables that values of a bundle may name.
func (ext *Extension) env(root *os.Root) func(string) (string, bool) {
	var own []map[string]string
	for _, name := range envFiles {
		const most = 1 << 20 // bytes
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() <= most {
			if data, err := root.ReadFile(name); err == nil {
				own = append(own, bundle.ReadEnv(data))
			}
		}
	}
	system := ext.cfg.Getenv
	return func(name string) (string, bool) {
		for _, vars := range own {
			if v, ok := vars[name]; ok {
				return v, true
			}
		}
		v := system(name)
		return v, v != ""
	}
}

// check returns what the bundle of a folder, or of one file, comes to, with all that is wrong
// with it. Nothing of it is started.
func (ext *Extension) check(_ context.Context, q query.CheckBundle) (query.BundleInfo, error) {
	_, info, root, err := ext.load(q.Path, false)
	if err == nil {
		_ = root.Close() // it was only read
	}
	return info, err
}

// lock writes down which packages a bundle is made with, unless something else is wrong with
// it.
func (ext *Extension) lock(_ context.Context, q query.LockBundle) (did query.BundleLocked, err error) {
	b, info, root, err := ext.load(q.Path, true)
	if err != nil {
		return did, err
	}
	defer root.Close()
	if did.Info = info; !info.OK {
		return did, nil
	}
	data, err := b.WriteLock()
	if err != nil {
		return did, fmt.Errorf("writing the lock of a bundle: %w", err)
	}
	const fresh = bundle.LockFile + ".new"
	if err := errors.Join(root.WriteFile(fresh, data, 0o644), root.Rename(fresh, bundle.LockFile)); err != nil {
		return did, problem(q.Path, err)
	}
	did.Lock = filepath.Join(root.Name(), bundle.LockFile)
	return did, nil
}

func problem(name string, err error) error {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: fmt.Sprintf("bundle %s: %v", name, what), Fix: "a bundle is a folder with goondan.yaml, or that file; dure bundle validate says what is wrong with one",
		Args: map[string]string{"name": name, "error": what.Error()}, Err: err,
	}
}
