package launch

import (
	_ "embed" // what the model is told
	"fmt"
	"strings"

	"dure/agent/query"
)

// AboutResults is what a model is told that sums up the results of a search.
//
//go:embed results.md
var AboutResults string

// The most of a result that a model is shown, in bytes.
const (
	maxShownTitle   = 300
	maxShownSnippet = 800
)

// Results writes what was found for a model. All of it is by others.
func Results(question, language string, hits []query.WebHit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Language of the answer: %s\nQuestion: %s\n\nResults:\n", language, oneLine(question, maxShownSnippet))
	for i, h := range hits {
		fmt.Fprintf(&b, "\n[%d] %s\n%s\n", i+1, oneLine(h.Title, maxShownTitle), oneLine(h.URL, maxURL))
		if h.Date != "" {
			fmt.Fprintf(&b, "Date: %s\n", oneLine(h.Date, maxShownTitle))
		}
		if h.Snippet != "" {
			fmt.Fprintf(&b, "%s\n", oneLine(h.Snippet, maxShownSnippet))
		}
	}
	return b.String()
}

// oneLine puts a text on one line and cuts it at a character.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
