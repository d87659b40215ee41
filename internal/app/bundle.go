package app

import (
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

// loadBundle reads the bundle of a folder, or of one file, and returns the folder it lies in.
// root is to be closed when the bundle is not used any more.
func (a *App) loadBundle(path string, locking bool) (b *bundle.Bundle, list []bundle.Problem, root *os.Root, err error) {
	dir, file, err := a.bundlePlace(path)
	if err != nil {
		return nil, nil, nil, bundleProblem(path, err)
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, nil, nil, bundleProblem(path, err)
	}
	b, list = bundle.Load(a.bundleOptions(root, root.FS(), file, locking))
	return b, list, root, nil
}

// bundlePlace returns the folder of a bundle, and the one file that counts of it; "" = all.
func (a *App) bundlePlace(path string) (dir, file string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.opts.Workdir, path)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, "", err
	}
	dir, file = filepath.Split(path)
	return dir, file, nil
}

// bundleOptions is how a bundle with these files is loaded. Its variables are those of root.
func (a *App) bundleOptions(root *os.Root, files fs.FS, file string, locking bool) bundle.Options {
	known := toolNames()
	return bundle.Options{
		Sources: []bundle.Source{{FS: files, File: file}}, Getenv: a.bundleEnv(root), Locking: locking,
		Builtin:  func(name string) bool { _, ok := known(name); return ok },
		Kit:      toolkit.Exports,
		Compiled: a.compiledVersion,
	}
}

// bundleEnv returns the variables that values of a bundle may name.
func (a *App) bundleEnv(root *os.Root) func(string) (string, bool) {
	var own []map[string]string
	for _, name := range envFiles {
		const most = 1 << 20 // bytes
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() <= most {
			if data, err := root.ReadFile(name); err == nil {
				own = append(own, bundle.ReadEnv(data))
			}
		}
	}
	system := getenv(a.opts.Environ)
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

// Bundle returns what the bundle of a folder, or of one file, comes to, with all that is
// wrong with it. Nothing of it is started.
func (a *App) Bundle(path string) (query.BundleInfo, error) {
	b, list, root, err := a.loadBundle(path, false)
	if err != nil {
		return query.BundleInfo{}, err
	}
	defer root.Close()
	info := b.Report(list)
	info.Path = path
	return info, nil
}

// LockBundle writes down which packages a bundle is made with, unless something else is
// wrong with it.
func (a *App) LockBundle(path string) (query.BundleInfo, string, error) {
	b, list, root, err := a.loadBundle(path, true)
	if err != nil {
		return query.BundleInfo{}, "", err
	}
	defer root.Close()
	info := b.Report(list)
	info.Path = path
	if !info.OK {
		return info, "", nil
	}
	data, err := b.WriteLock()
	if err != nil {
		return info, "", fmt.Errorf("writing the lock of a bundle: %w", err)
	}
	const fresh = bundle.LockFile + ".new"
	if err := errors.Join(root.WriteFile(fresh, data, 0o644), root.Rename(fresh, bundle.LockFile)); err != nil {
		return info, "", bundleProblem(path, err)
	}
	return info, filepath.Join(root.Name(), bundle.LockFile), nil
}

func bundleProblem(name string, err error) error {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: fmt.Sprintf("bundle %s: %v", name, what), Fix: "a bundle is a folder with goondan.yaml, or that file; dure bundle validate says what is wrong with one",
		Args: map[string]string{"name": name, "error": what.Error()}, Err: err,
	}
}
