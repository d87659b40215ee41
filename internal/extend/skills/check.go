package skills

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/unicode/norm"

	"dure/internal/base/frontmatter"
	"dure/internal/base/near"
)

// The bounds of the open standard, in the units of UTF-16 in which its checkers count.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// standardFields are those that the open standard knows.
var standardFields = []string{"name", "description", "license", "allowed-tools", "metadata", "compatibility"}

// reserved are beginnings of names that are not given away.
const reserved = "anthropic-skills"

// standard reports whether a file is as the open standard for skills wants it, and adds
// a fault for each rule that it breaks. Much of what breaks one is of use all the same.
func (s *Skill) standard(data []byte, d frontmatter.Doc, err error, folder string) bool {
	before := len(s.Faults)
	lenient := len(d.Warnings) > 0
	switch {
	case strings.HasPrefix(string(data), "\ufeff"):
		s.fault(frontmatter.Field{}, `the file does not begin with "---"`, "save it without a byte order mark")
	case err != nil:
		return false
	case !d.Has:
		s.fault(frontmatter.Field{}, `it has no fields: the file does not begin with "---"`, "write name and description between two lines of ---")
	case closedByDots(data, d):
		s.fault(frontmatter.Field{}, `the fields end with "..." and not with "---"`, `end them with "---"`)
	}
	for _, f := range d.Fields {
		if !slices.Contains(standardFields, f.Key) {
			s.fault(f, fmt.Sprintf("%s is no field of the standard", f.Key), meant(d, f.Key))
		}
		if strange(f.Value) {
			s.fault(f, f.Key+" has a tag that not everybody knows", "write it plainly")
		}
	}
	if d.Has {
		s.named(d, folder)
		s.described(d)
		s.compatible(d)
	}
	return !lenient && len(s.Faults) == before
}

// fault notes what is wrong with a field; without a key it is about the file.
func (s *Skill) fault(f frontmatter.Field, message, fix string) {
	s.Faults = append(s.Faults, frontmatter.Fault{Line: f.Line, Column: f.At, Key: f.Key, Message: message, Fix: fix})
}

// meant says what to do about a field that the standard does not have: what it was
// probably meant to be, where that is missing.
func meant(d frontmatter.Doc, key string) string {
	missing := slices.DeleteFunc(slices.Clone(standardFields), func(name string) bool { _, there := exact(d, name); return there })
	if like := near.Nearest(key, missing); like != "" {
		return "did you mean " + like + "?"
	}
	return "other programs may not know it"
}

// closedByDots reports whether the fields end as YAML allows and the standard does not.
func closedByDots(data []byte, d frontmatter.Doc) bool {
	lines := strings.Split(string(data), "\n")
	at := d.BodyLine - 2
	return at > 0 && at < len(lines) && strings.TrimSpace(lines[at]) == "..."
}

// exact returns a field by the very name that the standard has for it.
func exact(d frontmatter.Doc, name string) (frontmatter.Field, bool) {
	for _, f := range d.Fields {
		if f.Key == name {
			return f, true
		}
	}
	return frontmatter.Field{}, false
}

func (s *Skill) named(d frontmatter.Doc, folder string) {
	f, ok := exact(d, "name")
	if !ok {
		s.fault(frontmatter.Field{Key: "name"}, "there is no name", "write: name: "+folder)
		return
	}
	if f.Value.Kind != yaml.ScalarNode || f.Empty() {
		return // checkers pass over it, and the folder names the skill
	}
	name := norm.NFKC.String(strings.TrimSpace(f.Value.Value))
	switch {
	case name == "":
		s.fault(f, "the name is empty", "write: name: "+folder)
		return
	case units(name) > maxName:
		s.fault(f, fmt.Sprintf("the name has %d characters; %d are the most", units(name), maxName), "shorten it, and the name of the folder")
	}
	if name != strings.ToLower(name) {
		s.fault(f, fmt.Sprintf("the name %q has capital letters", name), "write it in small letters")
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		s.fault(f, fmt.Sprintf("the name %q begins or ends with a hyphen", name), "remove it")
	}
	if strings.Contains(name, "--") {
		s.fault(f, fmt.Sprintf("the name %q has two hyphens in a row", name), "remove one")
	}
	if at := strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }); at >= 0 {
		s.fault(f, fmt.Sprintf("the name %q has characters that are none of letters, digits and hyphens", name), "use a to z, 0 to 9 and -")
	}
	if name != norm.NFKC.String(folder) {
		s.fault(f, fmt.Sprintf("the name %q is not that of its folder, %q", name, folder), "rename one of them")
	}
	if strings.HasPrefix(name, reserved) {
		s.Faults = append([]frontmatter.Fault{{Line: f.Line, Column: f.At, Key: "name", Message: "names that begin with " + reserved + " are reserved", Fix: "choose another one"}}, s.Faults...)
	}
}

// RightName is the name that a new skill can have in the place of one that it cannot have;
// "" = none is near.
func RightName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(norm.NFKC.String(name)), func(r rune) bool { return !nameRune(r) || r == '-' })
	right := strings.TrimPrefix(strings.Join(words, "-"), reserved)
	for units(right) > maxName {
		_, last := utf8.DecodeLastRuneInString(right)
		right = right[:len(right)-last]
	}
	if right = strings.Trim(right, "-"); CheckName(right) != nil {
		return ""
	}
	return right
}

// nameRune reports whether a name may have a character, capital letters apart: Latin,
// Cyrillic and Chinese ones, as checkers of the standard have it.
func nameRune(r rune) bool {
	switch {
	case r == '-', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return true
	case r >= 0xc0 && r <= 0x24f, r >= 0x300 && r <= 0x36f, r >= 0x400 && r <= 0x4ff:
		return true
	}
	return r >= 0x3400 && r <= 0x4dbf || r >= 0x4e00 && r <= 0x9fff
}

func (s *Skill) described(d frontmatter.Doc) {
	f, ok := exact(d, "description")
	switch {
	case !ok:
		s.fault(frontmatter.Field{Key: "description"}, "there is no description", "say in one or two sentences what it does and when it is of use")
	case f.Value.Kind != yaml.ScalarNode || f.Empty():
	case strings.TrimSpace(f.Value.Value) == "":
		s.fault(f, "the description is empty", "say in one or two sentences what it does and when it is of use")
	case units(f.Value.Value) > maxDescription:
		s.fault(f, fmt.Sprintf("the description has %d characters; %d are the most", units(f.Value.Value), maxDescription), "move the rest into the text")
	}
}

func (s *Skill) compatible(d frontmatter.Doc) {
	f, ok := exact(d, "compatibility")
	switch {
	case !ok:
	case f.Value.Kind != yaml.ScalarNode || f.Value.Tag != "!!str":
		s.fault(f, "compatibility is no text", "put it into quotes")
	case units(f.Value.Value) > maxCompatibility:
		s.fault(f, fmt.Sprintf("compatibility has %d characters; %d are the most", units(f.Value.Value), maxCompatibility), "shorten it")
	}
}

// strange reports whether a value has a tag of somebody's own.
func strange(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") || slices.ContainsFunc(n.Content, strange)
}

// units counts the characters of a text as UTF-16 does.
func units(s string) (n int) {
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// CheckName says why a name cannot be that of a new skill; nil = it can.
func CheckName(name string) error {
	var s Skill
	d, err := frontmatter.Parse([]byte("---\nname: \"" + name + "\"\ndescription: x\n---\n"))
	if err != nil || name != filepath.Base(name) || name == "." || name == ".." || name != norm.NFKC.String(name) {
		return errors.New("a name has small letters, digits and single hyphens")
	}
	s.named(d, name)
	if len(s.Faults) > 0 {
		return errors.New(s.Faults[0].Message)
	}
	if len(d.Fields) == 0 || d.Fields[0].Value.Value != name {
		return errors.New("a name has small letters, digits and single hyphens")
	}
	return nil
}
