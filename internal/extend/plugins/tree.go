package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Limits bound a tree, and the archive that it comes in. Zero fields are the defaults.
type Limits struct {
	Files   int   // files and folders; 5,000
	File    int64 // bytes of one file; 32 MiB
	Tree    int64 // bytes of all files; 128 MiB
	Archive int64 // bytes of an archive; 64 MiB
	Ratio   int64 // of a tree to its archive, once the tree has 16 MiB; 100
}

const (
	maxPath   = 512 // bytes of a path in a tree
	maxDepth  = 32  // folders in each other
	fewBytes  = 16 << 20
	treeStart = "dure tree 1\n" // of what is hashed, so that another form is another hash
)

func (l Limits) withDefaults() Limits {
	def := func(n *int64, v int64) {
		if *n == 0 {
			*n = v
		}
	}
	files := int64(l.Files)
	def(&files, 5_000)
	l.Files = int(files)
	def(&l.File, 32<<20)
	def(&l.Tree, 128<<20)
	def(&l.Archive, 64<<20)
	def(&l.Ratio, 100)
	return l
}

// Errors of a tree. What is wrong with which file is in the text.
var (
	ErrUnsafe = errors.New("it is not safe to unpack")
	ErrLarge  = errors.New("it is too large")
)

// A grower writes a tree into a folder, file by file, within limits. What it refuses
// leaves the folder as it is by then: the caller throws it away.
type grower struct {
	root   *os.Root
	limits Limits
	packed int64 // bytes of the archive; 0 = there is none

	names map[string]string // every path by its folded form
	files map[string]bool   // paths that are files
	bytes int64
	links map[string]string // that a tar has, and where they lead; nil = they are refused
}

func newGrower(root *os.Root, limits Limits, packed int64) *grower {
	return &grower{root: root, limits: limits, packed: packed, names: map[string]string{}, files: map[string]bool{}}
}

// reserved are names that mean devices on Windows, with any ending.
var reserved = []string{"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}

// checkPath refuses paths that mean something else on some system, or that cannot be
// shown. It returns the path without a slash at its end.
func checkPath(name string) (string, error) {
	bad := func(why string) (string, error) { return "", fmt.Errorf("%w: %q %s", ErrUnsafe, clip(name), why) }
	name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	switch {
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case len(name) > maxPath:
		return bad("is too long")
	case strings.HasPrefix(name, "/"):
		return bad("is an absolute path")
	case strings.ContainsAny(name, "\\:*?\"<>|"):
		return bad("has a sign in it that not every system takes")
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == utf8.RuneError {
			return bad("has a character that cannot be seen")
		}
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return bad("lies too deep")
	}
	for _, part := range parts {
		base, _, _ := strings.Cut(strings.ToLower(part), ".")
		device := slices.Contains(reserved, base) || len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
		switch {
		case part == "" || part == "." || part == "..":
			return bad("leads out of its folder, or nowhere")
		case device:
			return bad("is a device on Windows")
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.HasPrefix(part, " "):
			return bad("begins or ends with what not every system keeps")
		}
	}
	return name, nil
}

// fold is a form in which two names are the same wherever a file system takes them for
// the same, by case or by the way characters are put together.
func fold(name string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
}

// claim takes a path, and refuses it when a file has it already, or something of
// another spelling.
func (g *grower) claim(name string, file bool) error {
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		at, whole := name[:i], i == len(name)
		if g.files[at] {
			return fmt.Errorf("%w: %q is there twice", ErrUnsafe, clip(at))
		}
		have, taken := g.names[fold(at)]
		switch {
		case taken && have != at:
			return fmt.Errorf("%w: %q and %q are one name on some systems", ErrUnsafe, clip(have), clip(at))
		case taken && whole && file:
			return fmt.Errorf("%w: %q is there twice", ErrUnsafe, clip(at))
		case !taken:
			g.names[fold(at)] = at
		}
		if len(g.names) > g.limits.Files {
			return fmt.Errorf("%w: it has more than %d files", ErrLarge, g.limits.Files)
		}
	}
	if file {
		g.files[name] = true
	}
	return nil
}

// gits reports whether a path leads to a folder of git, or the file that stands for one in
// a worktree or a submodule. What it would have git do is nobody's plugin: it is left out.
func gits(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

func (g *grower) folder(name string) error {
	name, err := checkPath(name)
	if err == nil && gits(name) {
		return nil
	}
	if err == nil {
		err = g.claim(name, false)
	}
	if err == nil {
		err = g.root.MkdirAll(name, 0o700)
	}
	return err
}

// file writes a file. Of its mode only that it can be run is kept.
func (g *grower) file(name string, mode fs.FileMode, from io.Reader) error {
	name, err := checkPath(name)
	if err != nil || gits(name) {
		return err
	}
	if err := g.claim(name, true); err != nil {
		return err
	}
	if dir := path.Dir(name); dir != "." {
		if err := g.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	perm := fs.FileMode(0o600)
	if mode&0o111 != 0 {
		perm = 0o700
	}
	f, err := g.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, g.room()+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return g.count(name, n)
}

// room is how many bytes the next file may have.
func (g *grower) room() int64 { return min(g.limits.File, g.most()-g.bytes) }

// most is how many bytes the tree may have: no more than its archive explains.
func (g *grower) most() int64 {
	if g.packed == 0 {
		return g.limits.Tree
	}
	return min(g.limits.Tree, max(fewBytes, g.packed*g.limits.Ratio))
}

func (g *grower) count(name string, n int64) error {
	switch room := g.room(); {
	case n <= room:
		g.bytes += n
		return nil
	case room == g.limits.File:
		return fmt.Errorf("%w: %q has more than %d MiB", ErrLarge, clip(name), g.limits.File>>20)
	case g.most() < g.limits.Tree:
		return fmt.Errorf("%w: it unpacks to more than %d times its size", ErrUnsafe, g.limits.Ratio)
	}
	return fmt.Errorf("%w: it has more than %d MiB", ErrLarge, g.limits.Tree>>20)
}

// graft copies a folder. Links are followed as long as they stay in it and lead to
// files; the folder of git is left out.
func (g *grower) graft(from *os.Root) error {
	fsys := from.FS()
	return fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copying %s: %w", clip(name), bare(err))
		}
		if name == "." {
			return nil
		}
		if gits(name) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			return g.folder(name)
		}
		info, err := from.Stat(name)
		if err != nil {
			return fmt.Errorf("%w: %q is a link that leads out of the folder, or nowhere", ErrUnsafe, clip(name))
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %q is neither a file nor a folder, nor a link to a file", ErrUnsafe, clip(name))
		}
		f, err := from.Open(name)
		if err != nil {
			return fmt.Errorf("copying %s: %w", clip(name), bare(err))
		}
		defer f.Close()
		return g.file(name, info.Mode(), f)
	})
}

// bare is err without the path that its reader is told anyway.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// hashTree names a tree by all that it holds: paths, contents, and what can be run.
// Empty folders do not count. Something that is neither file nor folder is an error.
func hashTree(dir string, limits Limits) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("hashing a tree: %w", err)
	}
	defer root.Close()
	sum := sha256.New()
	io.WriteString(sum, treeStart) //nolint:errcheck // into memory
	var files int
	var size int64
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > limits.Files+1 {
			return ErrLarge
		}
		if e.IsDir() {
			return nil
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%q is no file", clip(name))
		}
		n, err := hashFile(sum, root, name, limits.File)
		size += n
		if err == nil && size > limits.Tree {
			err = ErrLarge
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hashing a tree: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func hashFile(sum io.Writer, root *os.Root, name string, most int64) (int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	one := sha256.New()
	n, err := io.Copy(one, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = ErrLarge
	}
	kind := "file"
	if runnable(info) {
		kind = "program"
	}
	fmt.Fprintf(sum, "%s %d %x %q\n", kind, n, one.Sum(nil), name)
	return n, err
}
