package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dure/internal/safety/workspace"
)

// expansion is the work on one file and on all that it includes.
type expansion struct {
	set   *Set
	scope Scope
	left  int // includes that may still follow
	room  int // bytes of included text that may still follow
	files []string

	// inline: the file is of the ecosystem that includes what a line names anywhere.
	// Each file once: prose comes back to what it speaks of.
	inline bool
	named  []string // files that lines have named so
}

// Reasons why a file is not read.
var (
	errOutside = errors.New("it is outside of the project")
	errSecret  = errors.New("it may hold credentials")
	errBinary  = errors.New("it is not text")
)

// expand returns a text with the files in the place of the lines that include them,
// and without its comments. Chain is the files that led to it, as they really are.
func (e *expansion) expand(text, path string, chain []string) string {
	var b strings.Builder
	for line := range lines(text) {
		name, ok := "", false
		if !line.code {
			name, ok = includeName(line.text)
		}
		if ok && e.include(&b, name, path, chain) {
			continue
		}
		b.WriteString(escape(line.text))
		b.WriteByte('\n')
		if e.inline && !ok && !line.code {
			e.includeNamed(&b, line.text, path, chain)
		}
	}
	return b.String()
}

// includeNamed writes the files that a line of prose names. What is not there is no file:
// people and packages are named so, too.
func (e *expansion) includeNamed(b *strings.Builder, l, from string, chain []string) {
	for _, name := range namesIn(l) {
		path, ok := e.locate(name, from)
		if !ok || slices.Contains(e.named, path) || !e.set.exists(path) {
			continue
		}
		e.named = append(e.named, path)
		e.include(b, name, from, chain)
	}
}

// exists reports whether there is anything at a path, and has it watched.
func (s *Set) exists(path string) bool {
	s.watch(path)
	_, err := s.cfg.Disk.Real(path)
	return err == nil
}

// inline reports whether a file is of those whose lines include what they name anywhere.
func inline(path string) bool {
	name := filepath.Base(path)
	return name == "CLAUDE.md" || name == "CLAUDE.local.md" || strings.Contains(filepath.ToSlash(path), "/.claude/")
}

// include writes the file that a line names, or a comment that says why it is not
// there. It returns false when the line is no include after all.
func (e *expansion) include(b *strings.Builder, name, from string, chain []string) bool {
	path, ok := e.locate(name, from)
	if !ok || e.left < 0 { // what is beyond the limit has been said once
		return false
	}
	text, err := e.read(path, from, chain)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, `./\~`) {
		return false // @Override and its like
	}
	if err != nil {
		fmt.Fprintf(b, "<!-- %s: %s -->\n", comment(name), comment(reason(err)))
		return true
	}
	fmt.Fprintf(b, "<included path=\"%s\">\n%s\n</included>\n", attribute(path), strings.TrimSpace(text))
	return true
}

// locate returns the path that a name stands for in a file.
func (e *expansion) locate(name, from string) (string, bool) {
	home := e.set.cfg.Home
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		if home == "" {
			return "", false
		}
		return filepath.Join(home, name[1:]), true
	case filepath.IsAbs(name):
		return filepath.Clean(name), true
	}
	return filepath.Join(filepath.Dir(from), filepath.FromSlash(name)), true
}

func (e *expansion) read(path, from string, chain []string) (string, error) {
	e.left--
	switch {
	case e.left < 0:
		return "", fmt.Errorf("more than %d includes", maxInclude)
	case len(chain) > e.set.cfg.Depth:
		return "", fmt.Errorf("more than %d files that include one another", e.set.cfg.Depth)
	}
	e.set.watch(path)
	text, real, err := e.set.text(path, e.scope)
	if errors.Is(err, errOutside) {
		e.set.warn(FindingOutside, from, fmt.Sprintf("%s includes %s, which is outside of the project", from, path),
			"Allow it if you know the file.", map[string]string{"include": path})
	}
	if err != nil {
		return "", err
	}
	if slices.Contains(chain, real) {
		return "", errors.New("it includes itself")
	}
	if e.room -= len(text); e.room < 0 {
		e.left = 0
		return "", fmt.Errorf("more than %d bytes of included text", MaxFile)
	}
	if !slices.Contains(e.files, real) {
		e.files = append(e.files, real)
	}
	return e.expand(text, path, append(slices.Clip(chain), real)), nil
}

// mayRead says why a file of a scope, or one that it includes, must not be read.
func (s *Set) mayRead(path, real string, scope Scope) error {
	for _, p := range []string{path, real} {
		if s.secretName(p) || s.cfg.Secret != nil && s.cfg.Secret(p) {
			return errSecret
		}
	}
	if !s.ours(scope) || s.cfg.Trusted && s.cfg.Outside {
		return nil
	}
	if _, inside := below(s.root, real); !inside {
		return errOutside
	}
	return nil
}

// secrets are names of files and folders that hold credentials.
var secrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials",
	".pgpass", ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "credentials.json", "keys.json", "environ", ".password-store",
}

// secretName reports whether a path names credentials. Where the project itself lies
// says nothing.
func (s *Set) secretName(path string) bool {
	for _, root := range []string{s.cfg.Root, s.root} {
		if rel, ok := below(root, path); ok {
			path = rel
			break
		}
	}
	for part := range strings.SplitSeq(strings.ToLower(filepath.ToSlash(path)), "/") {
		if slices.Contains(secrets, part) || part == ".env" || strings.HasPrefix(part, ".env.") {
			return true
		}
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".pem", ".key", ".p12", ".pfx", ".kdbx":
		return true
	}
	return false
}

func decode(data []byte) (string, error) {
	t, err := workspace.DecodeText(data)
	if err != nil || t.Damaged || strings.ContainsRune(t.Content, 0) {
		return "", errBinary
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(t.Content), nil
}

func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	return err.Error()
}
