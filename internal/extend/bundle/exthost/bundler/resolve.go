package bundler

import (
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/evanw/esbuild/pkg/api"
)

// namespace is that of all files of a bundle: in the library's own one it would look for
// them on the disk by itself.
const namespace = "bundle"

// ours is the module that the host gives to foreign code.
const ours = "dure"

const oursCode = `export const pending = (...args) => globalThis[Symbol.for("dure.pending")](...args);`

// A folder is what a bundle may read, and what was read of it.
type folder struct {
	root  *os.Root
	seen  map[string]File
	total int
}

func (f *folder) files() []File {
	var all []File
	for _, p := range slices.Sorted(maps.Keys(f.seen)) {
		all = append(all, f.seen[p])
	}
	return all
}

// errNoFile says that there is something, but no file.
var errNoFile = errors.New("it is no file")

// stat finds a file.
func (f *folder) stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%s lies outside of the bundle", name)
	}
	info, err := f.root.Stat(name)
	if err != nil {
		if _, known := f.seen[name]; !known && errors.Is(err, fs.ErrNotExist) {
			f.seen[name] = File{Path: name}
		}
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return info, nil
}

func (f *folder) read(name string) ([]byte, error) {
	info, err := f.stat(name) // a pipe would not end
	if err != nil {
		return nil, err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	if _, known := f.seen[name]; !known {
		f.total += len(data)
	}
	if f.total > maxTotal || len(f.seen) > maxFiles {
		return nil, fmt.Errorf("the bundle has more than %d files or %d bytes", maxFiles, maxTotal)
	}
	sum := sha256.Sum256(data)
	f.seen[name] = File{name, hex.EncodeToString(sum[:]), info.Size(), info.ModTime().UnixNano()}
	return data, nil
}

// reason says what is wrong with a path, without the folder that it lies in.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file in the bundle"
	}
	return err.Error()
}

var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".jsx": api.LoaderJSX,
	".json": api.LoaderJSON, ".txt": api.LoaderText, ".md": api.LoaderText,
}

// endings are tried behind the name of an import, in this order.
var endings = []string{"", ".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js", "/index.mjs"}

// written are the endings that TypeScript writes in imports for files that have another.
var written = map[string]string{".js": ".ts", ".mjs": ".mts", ".cjs": ".cts", ".jsx": ".tsx"}

func (f *folder) plugin(entry string) api.Plugin {
	return api.Plugin{Name: ours, Setup: func(b api.PluginBuild) {
		// The library calls these from several goroutines.
		turn := make(chan struct{}, 1)
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			turn <- struct{}{}
			defer func() { <-turn }()
			return f.resolve(a, entry), nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			turn <- struct{}{}
			defer func() { <-turn }()
			return f.load(a)
		})
	}}
}

func (f *folder) resolve(a api.OnResolveArgs, entry string) api.OnResolveResult {
	found := func(name string) api.OnResolveResult {
		return api.OnResolveResult{Path: name, Namespace: namespace}
	}
	outside := func(name string) api.OnResolveResult {
		return api.OnResolveResult{Path: "node:" + strings.TrimPrefix(name, "node:"), External: true}
	}
	var name string
	switch {
	case a.Kind == api.ResolveEntryPoint:
		return found(entry)
	case a.Path == ours:
		return api.OnResolveResult{Path: ours, Namespace: ours}
	case strings.HasPrefix(a.Path, "node:") || slices.Contains(builtins, a.Path):
		return outside(a.Path)
	case strings.HasPrefix(a.Path, "./"), strings.HasPrefix(a.Path, "../"), a.Path == ".", a.Path == "..":
		at, err := f.file(path.Join(path.Dir(a.Importer), a.Path))
		if err != nil {
			return refuse("importing %q: %s", a.Path, reason(err))
		}
		name = at
	case strings.HasPrefix(a.Path, "/"), strings.HasPrefix(a.Path, "#"), strings.Contains(a.Path, ":"):
		return refuse("importing %q: only files of the bundle, its packages and the modules of Node.js can be imported", a.Path)
	default:
		at, err := f.module(path.Dir(a.Importer), a.Path, a.Kind == api.ResolveJSRequireCall)
		if err != nil {
			return refuse("importing %q: %v", a.Path, err)
		}
		name = at
	}
	return found(name)
}

func refuse(format string, args ...any) api.OnResolveResult {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, args...)}}}
}

func (f *folder) load(a api.OnLoadArgs) (api.OnLoadResult, error) {
	switch a.Namespace {
	case ours:
		code := oursCode
		return api.OnLoadResult{Contents: &code, Loader: api.LoaderJS}, nil
	case namespace:
		loader, ok := loaders[strings.ToLower(path.Ext(a.Path))]
		if !ok {
			return api.OnLoadResult{}, fmt.Errorf("%s is of no kind that can be bundled", a.Path)
		}
		data, err := f.read(a.Path)
		if err != nil {
			return api.OnLoadResult{}, fmt.Errorf("%s: %s", a.Path, reason(err))
		}
		code := string(data)
		return api.OnLoadResult{Contents: &code, Loader: loader}, nil
	}
	return api.OnLoadResult{}, fmt.Errorf("%s lies outside of the bundle", a.Path)
}

// file finds the file that an import means.
func (f *folder) file(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", errors.New("it lies outside of the bundle")
	}
	names := make([]string, 0, len(endings)+1)
	for _, e := range endings {
		names = append(names, path.Clean(name+e))
	}
	if ext, ok := written[path.Ext(name)]; ok {
		names = append(names, strings.TrimSuffix(name, path.Ext(name))+ext)
	}
	for _, n := range names {
		_, err := f.stat(n)
		switch {
		case err == nil:
			return n, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoFile) && !errors.Is(err, errNotFolder):
			return "", err
		}
	}
	return "", fs.ErrNotExist
}

// module finds what an import of a package means, in the folders node_modules from where
// it is imported up to the root.
func (f *folder) module(from, name string, require bool) (string, error) {
	parts := strings.SplitN(name, "/", 3)
	n := 1
	if strings.HasPrefix(name, "@") {
		n = 2
	}
	if len(parts) < n || slices.Contains(parts, "..") {
		return "", errors.New("it is no name of a package")
	}
	pkg := strings.Join(parts[:n], "/")
	rest := strings.TrimPrefix(strings.TrimPrefix(name, pkg), "/")
	for dir := from; ; dir = path.Dir(dir) {
		home := path.Join(dir, "node_modules", pkg)
		if info, err := f.root.Stat(home); err == nil && info.IsDir() {
			at, err := f.export(home, rest, require)
			if err != nil {
				return "", errors.New(reason(err))
			}
			return at, nil
		}
		if dir == "." {
			return "", fmt.Errorf("the package %s is not in node_modules of the bundle: install it there", pkg)
		}
	}
}

// export finds what a package gives away under a name; "" = by its own name.
func (f *folder) export(home, rest string, require bool) (string, error) {
	var about struct {
		Main    string          `json:"main"`
		Module  string          `json:"module"`
		Exports json.RawMessage `json:"exports"`
	}
	if data, err := f.read(path.Join(home, "package.json")); err == nil {
		if err := json.Unmarshal(data, &about); err != nil {
			return "", fmt.Errorf("its package.json: %w", err)
		}
	}
	if len(about.Exports) > 0 {
		to := chosen(about.Exports, "./"+rest, require, 0)
		if rest == "" {
			to = chosen(about.Exports, ".", require, 0)
		}
		if !strings.HasPrefix(to, "./") {
			return "", fmt.Errorf("its package.json exports nothing that is called %q", "./"+rest)
		}
		return f.file(path.Join(home, to))
	}
	if rest != "" {
		return f.file(path.Join(home, rest))
	}
	main := about.Main
	if about.Module != "" && !require {
		main = about.Module
	}
	if main == "" {
		main = "index"
	}
	return f.file(path.Join(home, main))
}

// chosen reads the exports of a package: a path, paths by name, or paths by condition.
func chosen(exports json.RawMessage, name string, require bool, depth int) string {
	var to string
	if json.Unmarshal(exports, &to) == nil {
		if name == "." {
			return to
		}
		return ""
	}
	var list []json.RawMessage
	if json.Unmarshal(exports, &list) == nil {
		for _, e := range list {
			if to := chosen(e, name, require, depth+1); to != "" {
				return to
			}
		}
		return ""
	}
	var by map[string]json.RawMessage
	if depth > 8 || json.Unmarshal(exports, &by) != nil {
		return ""
	}
	if e, ok := by[name]; ok {
		return chosen(e, ".", require, depth+1)
	}
	way := "import"
	if require {
		way = "require"
	}
	for _, condition := range []string{"node", way, "default"} {
		if e, ok := by[condition]; ok {
			if to := chosen(e, name, require, depth+1); to != "" {
				return to
			}
		}
	}
	return ""
}

// builtins are the modules of Node.js that can be imported without "node:".
var builtins = strings.Fields(`assert assert/strict async_hooks buffer child_process cluster console constants crypto
	dgram diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector module net os path
	path/posix path/win32 perf_hooks process punycode querystring readline readline/promises stream stream/consumers
	stream/promises stream/web string_decoder sys timers timers/promises tls trace_events tty url util util/types v8 vm
	wasi worker_threads zlib`)
