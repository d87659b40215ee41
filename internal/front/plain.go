package front

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// plain reads fields of which each is a name and a text, or a number, without anything that
// means more to YAML, as most are: hundreds of files are read when a session begins, and this takes
// a tenth of the time. nil = they are more than that, and YAML says what.
func plain(head string) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	line := 0
	for l := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		line++
		name, value, ok := strings.Cut(l, ": ")
		tag := "!!str"
		switch {
		case !ok || !isPlainName(name):
			return nil
		case isNumber(value):
			tag = "!!int"
		case !isPlainText(value):
			return nil
		}
		root.Content = append(root.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: line, Column: 1},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: line, Column: len(name) + 3})
	}
	return root
}

// isPlainName reports whether a name is of letters with hyphens or low lines in it.
func isPlainName(s string) bool {
	if s == "" || !letter(s[0]) || len(s) > 100 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && c != '-' && c != '_' {
			return false
		}
	}
	return !isWord(s)
}

// isPlainText reports whether a text begins with a letter and has nothing in it that may
// mean something.
func isPlainText(s string) bool {
	if s == "" || !letter(s[0]) || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case letter(c), c >= '0' && c <= '9', strings.IndexByte(" ,.;()/'\"$*+=<>!?@_-", c) >= 0:
		default:
			return false
		}
	}
	return !isWord(s)
}

// isNumber reports whether a text is a small number as everybody writes it.
func isNumber(s string) bool {
	return s != "" && len(s) < 10 && s[0] >= '1' && s[0] <= '9' && strings.Trim(s, "0123456789") == ""
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isWord reports whether YAML may take a text for something else.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return true
	}
	return false
}
