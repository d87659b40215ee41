package text

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is wrong with a bundle is said in Korean: all that is told of bundles in the tests,
// and all that is written in the code.
func TestBundlesSpeakKorean(t *testing.T) {
	var said []string
	for _, file := range []string{"wrong.txt", "old.txt"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "extend", "bundle", "testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if s, ok := strings.CutPrefix(line, "  "); ok {
				said = append(said, strings.TrimPrefix(strings.TrimSpace(s), "> "))
			}
		}
	}
	written := regexp.MustCompile(`(?:at|warn|wrong)\(.*, ("[^"]*"), "([^"]+)"|(?:Message|Suggestion): +(?:fmt\.Sprintf\()?"([^"]+)"`)
	files, err := filepath.Glob(filepath.Join("..", "..", "extend", "bundle", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range written.FindAllStringSubmatch(string(data), -1) {
			for _, s := range []string{strings.Trim(m[1], `"`), m[2], m[3]} {
				s = strings.NewReplacer("%q", `"x"`, "%d", "7", "%s", "x").Replace(s)
				if strings.Contains(s, " ") && !strings.HasSuffix(s, ": ") {
					said = append(said, s)
				}
			}
		}
	}
	if slices.Sort(said); len(said) < 100 {
		t.Fatalf("%d sentences were found alone", len(said))
	}
	hangul := regexp.MustCompile(`\p{Hangul}`)
	ko := For("ko")
	for _, s := range slices.Compact(said) {
		if strings.HasPrefix(s, "dure ") {
			continue // a command
		}
		if got := ko.Phrase(s); !hangul.MatchString(got) {
			t.Errorf("%s\n  is in Korean: %s", s, got)
		}
	}
}

// What extensions fail at is said in Korean, with what they say themselves as it is.
func TestExtensionsSpeakKorean(t *testing.T) {
	ko := For("ko")
	for said, want := range map[string]string{
		"the extension log at step.post: oh (it is gone on without that)":                                 "확장 log(step.post): oh (이것 없이 계속합니다)",
		"the extension log at step.post: oh (it has failed 3 times in a row, and is not called any more)": "확장 log(step.post): oh (3번 잇달아 실패하여 더는 부르지 않습니다)",
	} {
		if got := ko.Phrase(said); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
}
