// Package shelf puts skills on the disk where a person wants them: new ones from a
// template, and copies of others. It owns the bounds of what is copied and never follows
// a link. It is told what to do by whoever speaks with the person, and starts no
// goroutines.
package shelf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills"
)

// The bounds of a folder that is copied.
const (
	maxFiles = 500
	maxBytes = 20 << 20
)

// template is the text of a new skill.
func template(name string) string {
	return "---\nname: " + name + "\ndescription: What it does, and when it is of use. A model decides by this line.\n---\n" +
		"# " + name + "\n\n1. Say the steps in their order.\n2. Say what must not happen.\n3. Say when it is done, and what to show then.\n\n" +
		"Longer texts belong into references/, programs into scripts/, beside this file.\n"
}

// Create makes a skill from the template in a folder of skills, and returns its file.
func Create(dir, name string) (string, error) {
	if err := skills.CheckName(name); err != nil {
		return "", err
	}
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(at, skills.File)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(template(name))
	return file, errors.Join(err, f.Close())
}

// Copy copies a skill, which may be one of builtIn, into a folder of skills, under the last part of its name, and
// returns its file. rename returns the name of a tool as it is to be written there, and
// whether it is known. Links and what is no ordinary file are refused; nothing is there
// before all of it is.
func Copy(k skills.Skill, builtIn fs.FS, dir string, rename func(tool string) (string, bool)) (file string, unknown []string, err error) {
	name := k.Name[strings.LastIndexByte(k.Name, ':')+1:]
	if name != filepath.Base(name) || name == "." || name == ".." {
		return "", nil, fmt.Errorf("%q cannot be the name of a folder", name)
	}
	to := filepath.Join(dir, name)
	if _, err := os.Lstat(to); err == nil {
		return "", nil, fmt.Errorf("%s is there already: %w", to, fs.ErrExist)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	staged, err := os.MkdirTemp(dir, ".skill-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(staged)
	var from fs.FS
	if k.Dir == "" {
		if from, err = fs.Sub(builtIn, k.Name); err != nil {
			return "", nil, err
		}
	} else {
		root, err := os.OpenRoot(k.Dir)
		if err != nil {
			return "", nil, err
		}
		defer root.Close()
		from = root.FS()
	}
	c := copying{from: from, to: staged, rename: rename}
	if err := fs.WalkDir(from, ".", c.entry); err != nil {
		return "", nil, err
	}
	if err := os.Chmod(staged, 0o755); err != nil {
		return "", nil, err
	}
	if err := os.Rename(staged, to); err != nil {
		return "", nil, err
	}
	return filepath.Join(to, skills.File), c.unknown, nil
}

// copying is a folder on its way.
type copying struct {
	from    fs.FS
	to      string
	rename  func(string) (string, bool)
	files   int
	bytes   int64
	unknown []string
}

func (c *copying) entry(name string, e fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case name == ".":
		return nil
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("%s: it leads out of the skill", name)
	case e.IsDir():
		if e.Name() == ".git" {
			return fs.SkipDir
		}
		return os.Mkdir(filepath.Join(c.to, filepath.FromSlash(name)), 0o755)
	case !e.Type().IsRegular():
		return fmt.Errorf("%s: it is a link or no ordinary file", name)
	}
	if c.files++; c.files > maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	f, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes-c.bytes+1))
	if err != nil {
		return err
	}
	if c.bytes += int64(len(data)); c.bytes > maxBytes {
		return fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	if strings.EqualFold(path.Base(name), skills.File) && path.Dir(name) == "." {
		name, data = skills.File, c.tools(data)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 && name != skills.File {
		mode = 0o755
	}
	return os.WriteFile(filepath.Join(c.to, filepath.FromSlash(name)), data, mode)
}

// toolLine is a field that names tools, on one line.
var toolLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:dis)?allowed[-_]?tools:[ \t]*)([^\[{|>&*!"'#\s].*)$`)
})

// tools writes the names of tools in the fields of a file as they are known there: those
// that stand on one line, as words.
func (c *copying) tools(data []byte) []byte {
	if c.rename == nil {
		return data
	}
	d, err := frontmatter.Parse(data)
	if err != nil || !d.Has {
		return data
	}
	lines := strings.Split(string(data), "\n")
	for i := 1; i < min(d.BodyLine-2, len(lines)); i++ {
		m := toolLine().FindStringSubmatch(strings.TrimRight(lines[i], "\r"))
		if m == nil {
			continue
		}
		words := frontmatter.Words(m[2])
		for j, w := range words {
			name, rest, _ := strings.Cut(w, "(")
			if len(rest) > 0 {
				rest = "(" + rest
			}
			known, ok := c.rename(name)
			if !ok {
				c.unknown = append(c.unknown, name)
				continue
			}
			words[j] = known + rest
		}
		lines[i] = m[1] + strings.Join(words, " ")
	}
	return []byte(strings.Join(lines, "\n"))
}
