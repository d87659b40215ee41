// Package bundler makes one file of a module of JavaScript or TypeScript and all that it
// imports. The library that does it has no bounds of its own and ends the process with
// some inputs, so it runs in another one: a program that links this package and is
// started as [Arg] reads a [Job], answers with an [Output] and ends. It reads files below
// the root of the job alone, whatever links and imports say. It starts no goroutine of its
// own, and changes nothing.
package bundler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// Arg is the first argument that makes a program one that bundles.
const Arg = "exthost-bundle"

// The bounds of a bundle.
const (
	maxJob    = 64 << 10
	maxFile   = 4 << 20  // bytes of one file
	maxTotal  = 32 << 20 // of all
	maxFiles  = 2000
	maxErrors = 20
	maxStack  = 128 << 20
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(run(os.Stdin, os.Stdout))
	}
}

// A Job says what to bundle.
type Job struct {
	Root   string // absolute
	Entry  string // below it, with slashes
	Memory int64  // bytes of data; 0 = no bound
}

// An Output is what came of it.
type Output struct {
	Code   string  `json:",omitempty"`
	Hash   string  `json:",omitempty"` // of the names and contents of all files
	Files  []File  `json:",omitempty"` // that were read, sorted
	Faults []Fault `json:",omitempty"` // none = there is code
}

// A File is one that a bundle is made of. What was looked for and is missing has no hash.
type File struct {
	Path, Hash string
	Size, Time int64 // when it was last written, in nanoseconds
}

// A Fault is why there is no bundle.
type Fault struct {
	File         string // below the root; "" = the bundle as a whole
	Line, Column int    // from 1; 0 = the file as a whole
	Text         string
}

func (f Fault) Error() string {
	switch {
	case f.File == "":
		return f.Text
	case f.Line == 0:
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
}

func run(in io.Reader, out io.Writer) int {
	var j Job
	data, err := io.ReadAll(io.LimitReader(in, maxJob))
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err == nil {
		err = confine(j.Memory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading what to bundle:", err)
		return 1
	}
	debug.SetMaxStack(maxStack)
	if err := json.NewEncoder(out).Encode(Bundle(j)); err != nil {
		return 1
	}
	return 0
}

// Bundle bundles in this process. What it is given may end that.
func Bundle(j Job) Output {
	root, err := os.OpenRoot(j.Root)
	if err != nil {
		return Output{Faults: []Fault{{Text: "opening the folder of the bundle: " + err.Error()}}}
	}
	defer root.Close()
	f := &folder{root: root, seen: map[string]File{}}
	entry := path.Clean(filepath.ToSlash(j.Entry))
	if _, err := f.stat(entry); err != nil {
		return Output{Faults: []Fault{{File: j.Entry, Text: reason(err)}}}
	}
	here := (&url.URL{Scheme: "file", Path: path.Join("/", filepath.ToSlash(j.Root), entry)}).String()
	quoted, _ := json.Marshal(here)
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, AbsWorkingDir: abs(), Outfile: path.Join(filepath.ToSlash(abs()), "out.mjs"),
		Bundle: true, Write: false, Platform: api.PlatformNode, Format: api.FormatESModule,
		Engines: []api.Engine{{Name: api.EngineNode, Version: "20"}}, Charset: api.CharsetUTF8,
		TsconfigRaw: "{}", LogLevel: api.LogLevelSilent, LegalComments: api.LegalCommentsNone,
		Banner: map[string]string{"js": "import { createRequire as __dureCreateRequire } from 'node:module';" +
			"const __dureURL = " + string(quoted) + "; const require = __dureCreateRequire(__dureURL);"},
		Define:  map[string]string{"import.meta.url": "__dureURL"},
		Plugins: []api.Plugin{f.plugin(entry)},
	})
	out := Output{Files: f.files()}
	for _, m := range r.Errors[:min(len(r.Errors), maxErrors)] {
		out.Faults = append(out.Faults, fault(m))
	}
	if len(out.Faults) == 0 && len(r.OutputFiles) != 1 {
		out.Faults = []Fault{{File: entry, Text: "it is no module that can be bundled"}}
	}
	if len(out.Faults) > 0 {
		return out
	}
	out.Code = string(r.OutputFiles[0].Contents) + "\n//# sourceURL=" + strings.ReplaceAll(entry, " ", "%20") + "\n"
	out.Hash = hashOf(out.Files)
	return out
}

// abs is a folder that nothing is read from.
func abs() string {
	if dir, err := filepath.Abs(string(filepath.Separator)); err == nil {
		return dir
	}
	return "/"
}

func fault(m api.Message) Fault {
	f := Fault{Text: m.Text}
	if l := m.Location; l != nil {
		f.File, f.Line, f.Column = strings.TrimPrefix(l.File, namespace+":"), l.Line, l.Column+1
	}
	return f
}

// hashOf names what files hold, together.
func hashOf(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %s\n", f.Path, f.Hash)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Same reports whether files below a root still hold what they held, and none of those
// that were missing has come. Files that were last written before sure, and have the size
// and the time that they had, are not read again.
func Same(root *os.Root, files []File, sure time.Time) bool {
	f := &folder{root: root, seen: map[string]File{}}
	return !slices.ContainsFunc(files, func(was File) bool {
		info, err := f.stat(was.Path)
		if was.Hash == "" || err != nil {
			return was.Hash != "" || err == nil
		}
		if info.Size() == was.Size && info.ModTime().UnixNano() == was.Time && was.Time < sure.UnixNano() {
			return false
		}
		_, _ = f.read(was.Path)
		return f.seen[was.Path].Hash != was.Hash
	})
}
