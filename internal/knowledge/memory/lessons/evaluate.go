package lessons

import (
	"encoding/json"
	"strings"
)

// maxAnswer is how many bytes of a model's answer are looked at.
const maxAnswer = 64 << 10

// words name the types, in the order in which they are looked for: what is more
// particular comes first.
var words = []struct {
	t     Type
	words []string
}{
	{"debug", []string{"debug", "bug", "crash", "stack trace", "fix", "error", "broken", "디버그", "버그", "오류", "에러", "고쳐", "고장", "안 돼", "안돼"}},
	{"test", []string{"test", "coverage", "테스트", "시험"}},
	{"git", []string{"git", "commit", "merge", "rebase", "branch", "pull request", "커밋", "병합", "브랜치"}},
	{"file_refactor", []string{"refactor", "rename", "clean up", "restructure", "simplify", "리팩", "정리", "이름 변경", "구조 변경"}},
	{"document", []string{"document", "readme", "docs", "report", "changelog", "문서", "보고서", "설명서"}},
	{"search", []string{"search", "find", "where is", "look for", "grep", "검색", "찾아", "어디"}},
	{"analysis", []string{"analyze", "analyse", "analysis", "review", "explain", "compare", "why", "분석", "검토", "설명", "비교"}},
	{"code_generation", []string{"implement", "write", "create", "add", "build", "generate", "구현", "작성", "만들", "추가", "생성"}},
}

// Classify returns the type of task that a request is, by its words in English and
// Korean. It looks at the first 4,096 bytes.
func Classify(text string) Type {
	text = strings.ToLower(text[:min(len(text), 4096)])
	for _, w := range words {
		for _, word := range w.words {
			if holds(text, word) {
				return w.t
			}
		}
	}
	return "general"
}

// holds reports whether a text has a word. English ones begin where a word does, and
// end within three letters of it (tests, fixed, adding); short ones end with it.
func holds(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(word)
		if word[0] >= 0x80 {
			return true
		}
		rest := 0
		for end+rest < len(text) && letter(text[end+rest]) {
			rest++
		}
		if (start == 0 || !letter(text[start-1])) && (rest <= 1 || len(word) > 3 && rest <= 3) {
			return true
		}
		at = end
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' }

// ParseEvaluation reads the evaluation in a model's answer: the first JSON object in
// it that has one. Type, time, session and ID are those of fallback, which is
// returned, and false, when there is none.
func ParseEvaluation(answer string, fallback Entry) (Entry, bool) {
	answer = answer[:min(len(answer), maxAnswer)]
	for at, tries := 0, 0; tries < 100; tries++ {
		i := strings.IndexByte(answer[at:], '{')
		if i < 0 {
			break
		}
		at += i
		var e struct {
			Entry
			Score *float64 `json:"completionScore"`
		}
		if json.NewDecoder(strings.NewReader(answer[at:])).Decode(&e) == nil && e.Score != nil && (e.Summary != "" || len(e.Lessons) > 0) {
			e.Type, e.Created, e.Session, e.ID = fallback.Type, fallback.Created, fallback.Session, fallback.ID
			e.Entry.Score = *e.Score
			return clean(e.Entry), true
		}
		at++
	}
	return clean(fallback), false
}
