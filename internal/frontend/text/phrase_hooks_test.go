package text

import (
	"regexp"
	"strings"
	"testing"
)

// Whatever the package of hooks says is said in Korean: words of files stay as they are
// written there, sentences do not.
func TestHooksSpeakKorean(t *testing.T) {
	said := sentences(t, "../../extend/hooks", "New", "Errorf", "Sprintf", "fault", "fail", "warn")
	if len(said) < 50 {
		t.Fatalf("%d sentences were found alone", len(said))
	}
	hangul := regexp.MustCompile(`\p{Hangul}`)
	english := regexp.MustCompile(`\b(the|is|has|does|not|of|to|and|it|that|be|hook|write)\b`)
	ko := For("ko")
	for _, s := range said {
		if strings.HasPrefix(s, "reading ") || strings.HasPrefix(s, "writing the ") || strings.Contains(s, "\n") { // a gerund is said for all, and a model reads the others
			continue
		}
		s = strings.ReplaceAll(s, "%.0f", "7")
		if got := ko.Phrase(s); !hangul.MatchString(got) || english.MatchString(got) {
			t.Errorf("%s\n  is in Korean: %s", s, got)
		}
	}
}
