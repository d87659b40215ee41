package frontmatter

import (
	"io/fs"
	"path"
	"strings"
)

// Embedded is a file with fields that comes with the program.
type Embedded struct {
	Name   string            // of the file, without .md, or of the folder of a SKILL.md
	Fields map[string]string // that are texts; of a field with members, FIELD.MEMBER
}

// ReadEmbedded reads the files that a pattern matches. What cannot be read has no fields.
func ReadEmbedded(files fs.FS, pattern string) (all []Embedded) {
	names, _ := fs.Glob(files, pattern) // the pattern is whole
	for _, name := range names {
		e := Embedded{Name: path.Base(strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "/SKILL")), Fields: map[string]string{}}
		data, _ := fs.ReadFile(files, name)
		d, _ := Parse(data)
		for _, f := range d.Fields {
			if s, err := f.Text(); err == nil {
				e.Fields[f.Key] = s
			} else if m, err := f.Map(); err == nil {
				for k, v := range m {
					e.Fields[f.Key+"."+k] = v
				}
			}
		}
		all = append(all, e)
	}
	return all
}
