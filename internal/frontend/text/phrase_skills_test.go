package text

import (
	"regexp"
	"testing"
)

// What is wrong with the fields of a file, or with a skill, is said in Korean.
func TestSkillsSpeakKorean(t *testing.T) {
	said := sentences(t, "../../extend/skills", "fault", "off", "New")
	said = append(said, `it has no fields: the file does not begin with "---"`, "X is no field of the standard", "did you mean description?",
		`the name "A" has capital letters`, `the name "a" is not that of its folder, "b"`, "the description has 2000 characters; 1024 are the most",
		"line 4, column 17: user-invocable has to be true or false", "line 3: the value needs quotes; it was read as text",
		"line 4, column 16: did not find expected ',' or ']'", "close the list with ]", "the fields have 70000 bytes; 65536 are the most")
	if len(said) < 30 {
		t.Fatalf("%d sentences were found alone", len(said))
	}
	hangul := regexp.MustCompile(`\p{Hangul}`)
	english := regexp.MustCompile(`\b(the|is|has|does|not|of|to|and|it|that|be|file|write)\b`)
	ko := For("ko")
	for _, s := range said {
		switch s {
		case "the command has characters that no command has", "an argument has a NUL character": // a model reads them
			continue
		}
		if got := ko.Phrase(s); !hangul.MatchString(got) || english.MatchString(got) {
			t.Errorf("%s\n  is in Korean: %s", s, got)
		}
	}
}
