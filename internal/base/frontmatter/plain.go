package frontmatter

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// plain reads fields of which each is a name and a text, a number or a yes, or a group of
// such fields, without anything that means more to YAML, as most are: hundreds of files are
// read when a session begins, and this takes a tenth of the time. nil = they are more than
// that, and YAML says what.
func plain(head string) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	var group *yaml.Node // that a line with more indentation belongs to
	line := 0
	for l := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		line++
		if inner, ok := strings.CutPrefix(l, indent); ok {
			if group == nil || !addPlain(group, inner, line, len(indent)) {
				return nil
			}
			continue
		}
		if group != nil && group.Content == nil {
			return nil
		}
		group = nil
		if name, ok := strings.CutSuffix(l, ":"); ok && isPlainName(name) {
			group = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line + 1, Column: 1 + len(indent)}
			root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: line, Column: 1}, group)
		} else if !addPlain(root, l, line, 0) {
			return nil
		}
	}
	if group != nil && group.Content == nil {
		return nil
	}
	return root
}

// indent is what a field of a group begins with.
const indent = "  "

// addPlain adds the field of a line that begins behind some columns. It reports whether it
// is a plain one.
func addPlain(into *yaml.Node, l string, line, behind int) bool {
	name, value, ok := strings.Cut(l, ": ")
	tag := "!!str"
	switch {
	case !ok || !isPlainName(name):
		return false
	case isNumber(value):
		tag = "!!int"
	case value == "true" || value == "false":
		tag = "!!bool"
	case !isPlainText(value):
		return false
	}
	into.Content = append(into.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: line, Column: behind + 1},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line, Column: behind + len(name) + 3})
	return true
}

// isPlainName reports whether a name is of letters with hyphens or low lines in it.
func isPlainName(s string) bool {
	if s == "" || !latin(rune(s[0])) || len(s) > 100 {
		return false
	}
	for _, c := range s {
		if !latin(c) && c != '-' && c != '_' {
			return false
		}
	}
	return !isWord(s)
}

// isPlainText reports whether a text begins with a letter and has nothing in it that may
// mean something.
func isPlainText(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	if !letter(first) || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	for _, c := range s {
		if !letter(c) && (c < '0' || c > '9') && !strings.ContainsRune(" ,.;()/'\"$*+=<>!?@_-", c) {
			return false
		}
	}
	return !isWord(s)
}

// isNumber reports whether a text is a small number as everybody writes it.
func isNumber(s string) bool {
	return s != "" && len(s) < 10 && s[0] >= '1' && s[0] <= '9' && strings.Trim(s, "0123456789") == ""
}

// letter reports whether c is a letter as English or Korean has them.
func letter(c rune) bool { return latin(c) || c >= '가' && c <= '힣' }

func latin(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isWord reports whether YAML may take a text for something else.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return true
	}
	return false
}
