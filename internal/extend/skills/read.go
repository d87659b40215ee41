package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/internal/base/frontmatter"
)

// File is the name of the file that makes a folder a skill; some write it small.
const (
	File      = "SKILL.md"
	fileSmall = "skill.md"
)

// errKind is what is no file that could be read.
var errKind = errors.New("it is no ordinary file")

// errOut is a file that is reached by a link out of what brings it.
var errOut = errors.New("its file is a link that leads out of the project")

// head reads the beginning of a file, and says what file it was. Within a root it follows
// links as far as they stay there, whatever becomes of them meanwhile: a file that was
// looked at once may be a link to a key by now.
func head(root, path string, most int64) (data []byte, info fs.FileInfo, err error) {
	f, err := open(root, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return begin(f, most)
}

// begin reads the beginning of an open file, which may be of any kind.
func begin(f *os.File, most int64) (data []byte, info fs.FileInfo, err error) {
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errKind
	}
	if info.Size() == 0 { // some file systems do not know it
		data, err = io.ReadAll(io.LimitReader(f, most))
		return data, info, err
	}
	data = make([]byte, min(info.Size(), most))
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it has become shorter
	}
	return data[:n], info, err
}

// open opens an ordinary file. What else there is may keep who opens it waiting.
func open(root, path string) (*os.File, error) {
	stat, opens, name := os.Stat, os.OpenFile, path
	if root != "" {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		if !within(root, real) {
			return nil, errOut
		}
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if name, err = filepath.Rel(root, real); err != nil {
			return nil, err
		}
		stat, opens = r.Stat, r.OpenFile
	}
	info, err := stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errKind
	}
	return opens(name, os.O_RDONLY|nonblock, 0)
}

// parse reads a skill of a folder from the beginning of its file.
func parse(data []byte, size int64, folder string) (s Skill, body string) {
	s.size = size
	whole := size <= int64(len(data))
	if !whole {
		data = data[:max(0, strings.LastIndexByte(string(data), '\n')+1)]
	}
	d, err := frontmatter.Parse(data)
	s.Faults = append(s.Faults, d.Warnings...)
	if fault := frontmatter.FaultOf(err); fault != nil {
		s.Faults = append(s.Faults, *fault)
		s.Off = fault.Error()
	}
	if size > MaxBody {
		s.off(fmt.Sprintf("the file has %d bytes; %d are the most", size, MaxBody), "move what is long into files beside it")
	}
	if err == nil {
		s.take(d)
	}
	if s.Description == "" && s.Off == "" {
		s.Description = paragraph(d.Body)
	}
	if s.Description == "" && s.When == "" && s.Off == "" {
		s.off("nothing says what it is for", "write a description into its fields")
	}
	s.Valid = s.standard(data, d, err, folder)
	return s, d.Body
}

func (s *Skill) off(why, fix string) {
	s.Faults = append(s.Faults, frontmatter.Fault{Message: why, Fix: fix})
	if s.Off == "" {
		s.Off = why
	}
}

// paragraph is the first one of a text that is no heading.
func paragraph(body string) string {
	for part := range strings.SplitSeq(body, "\n\n") {
		var lines []string
		for line := range strings.Lines(part) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "```") {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			return cut(strings.Join(lines, " "), 1024)
		}
	}
	return ""
}

// take takes over the fields that mean something here. A field that cannot be read is
// left out with a warning; where it would have kept something from happening, the skill
// is not used.
func (s *Skill) take(d frontmatter.Doc) {
	words := func(text string) []string { return strings.Fields(strings.ReplaceAll(text, ",", " ")) }
	for _, t := range []struct {
		to   *string
		name string
	}{
		{&s.Title, "name"},
		{&s.Description, "description"},
		{&s.When, "when_to_use"},
		{&s.Hint, "argument-hint"},
		{&s.Model, "model"},
		{&s.Effort, "effort"},
		{&s.Agent, "agent"},
		{&s.Shell, "shell"},
		{&s.Version, "version"},
	} {
		get(s, d, t.name, false, func(f frontmatter.Field) (err error) {
			*t.to, err = f.Text()
			*t.to = cut(strings.TrimSpace(*t.to), maxField)
			return err
		})
	}
	for _, l := range []struct {
		to      *[]string
		name    string
		split   func(string) []string
		forbids bool
	}{
		{&s.Arguments, "arguments", words, false},
		{&s.Allowed, "allowed-tools", frontmatter.Words, false},
		{&s.Without, "disallowed-tools", frontmatter.Words, true},
		{&s.Paths, "paths", globs, false},
	} {
		get(s, d, l.name, l.forbids, func(f frontmatter.Field) (err error) {
			*l.to, err = f.List(l.split)
			*l.to = (*l.to)[:min(len(*l.to), maxNames)]
			return err
		})
	}
	get(s, d, "disable-model-invocation", true, func(f frontmatter.Field) (err error) { s.NoModel, err = f.Bool(); return err })
	get(s, d, "user-invocable", true, func(f frontmatter.Field) error {
		yes, err := f.Bool()
		s.NoUser = !yes && err == nil
		return err
	})
	get(s, d, "context", true, func(f frontmatter.Field) error {
		text, err := f.Text()
		s.Fork = strings.EqualFold(strings.TrimSpace(text), "fork")
		if err == nil && !s.Fork && text != "" && !strings.EqualFold(text, "default") && !strings.EqualFold(text, "inline") {
			return f.Fault("write fork, or leave it out", "has to be fork or default")
		}
		return err
	})
	if _, said := d.Get("background"); !said {
		s.Background = s.Fork
	}
	get(s, d, "background", false, func(f frontmatter.Field) (err error) { s.Background, err = f.Bool(); return err })
	get(s, d, "hooks", true, func(f frontmatter.Field) (err error) {
		s.Hooks, err = f.JSON()
		return err
	})
	if s.Model == "inherit" {
		s.Model = ""
	}
	if string(s.Hooks) == "null" {
		s.Hooks = nil
	}
	for _, name := range s.Arguments {
		if strings.EqualFold(name, "arguments") || !argumentName(name) {
			s.Faults = append(s.Faults, frontmatter.Fault{Key: "arguments", Message: fmt.Sprintf("%q cannot be the name of an argument", name), Fix: "use letters, digits, - and _, and begin with a letter"})
		}
	}
}

func argumentName(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

func get(s *Skill, d frontmatter.Doc, name string, forbids bool, read func(frontmatter.Field) error) {
	f, ok := d.Get(name)
	if !ok {
		return
	}
	err := read(f)
	if err == nil {
		return
	}
	fault := frontmatter.FaultOf(err)
	if fault == nil {
		fault = f.Fault("", "cannot be read: %s", err.Error())
	}
	s.Faults = append(s.Faults, *fault)
	if forbids && s.Off == "" {
		s.Off = fault.Error()
	}
}

// globs splits a text with globs at commas, but for those in braces.
func globs(text string) (list []string) {
	depth, from := 0, 0
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth <= 0 {
				add(text[from:i])
				from = i + 1
			}
		}
	}
	add(text[from:])
	return list
}

// Read reads one skill: a folder, or the SKILL.md in it. Its name is that of its folder.
func Read(path string) (Skill, error) {
	if base := filepath.Base(path); base == File || base == fileSmall {
		path = filepath.Dir(path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Skill{}, err
	}
	file, err := inFolder(path)
	if err != nil {
		return Skill{}, err
	}
	data, info, err := head("", file, maxHead)
	if err != nil {
		return Skill{}, fmt.Errorf("reading %s: %w", file, err)
	}
	s, _ := parse(data, info.Size(), filepath.Base(path))
	s.Name, s.Dir, s.File, s.Strict = filepath.Base(path), path, file, strict(path)
	return s, nil
}

// inFolder returns the file that makes a folder a skill.
func inFolder(dir string) (string, error) {
	var first error
	for _, name := range []string{File, fileSmall} {
		path := filepath.Join(dir, name)
		_, err := os.Lstat(path)
		if err == nil {
			return path, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// text returns the text behind the fields, as it is now, and whether commands in it may
// run: it is what was trusted.
func (s Skill) text(builtIn fs.FS) (text string, armed bool, err error) {
	var data []byte
	var size int64
	if s.Dir == "" {
		data, err = fs.ReadFile(builtIn, s.Name+"/"+File)
		size = int64(len(data))
	} else {
		var info fs.FileInfo
		if data, info, err = head(s.root, s.File, MaxBody+1); err == nil {
			size = info.Size()
		}
	}
	switch {
	case err != nil:
		return "", false, fmt.Errorf("reading skill %s: %w", s.Name, err)
	case size > MaxBody || int64(len(data)) > MaxBody:
		return "", false, fmt.Errorf("reading skill %s: it has more than %d bytes", s.Name, MaxBody)
	}
	d, err := frontmatter.Parse(data)
	if err != nil {
		return "", false, fmt.Errorf("reading skill %s: %w", s.Name, err)
	}
	return d.Body, s.Place.Has(s.File, data), nil
}

// strict reports whether a path is that of a folder of .claude.
func strict(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if part == ".claude" || part == ".claude-plugin" {
			return true
		}
	}
	return false
}
