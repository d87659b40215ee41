package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
)

// Bounds of a diff on the screen, in lines: of a change that was made, and of
// one that waits for approval.
const (
	diffLines    = 12
	approveLines = 40
)

// hunk is one piece of the structured patch in an edit's output.
type hunk struct {
	OldStart int      `json:"oldStart"`
	NewStart int      `json:"newStart"`
	Lines    []string `json:"lines"`
}

// patch returns the changed lines of an edit's result, each with its sign; nil
// when the result shows no change.
func patch(r agent.Result) []string {
	var out struct {
		StructuredPatch []hunk `json:"structuredPatch"`
	}
	if len(r.Output) == 0 || json.Unmarshal(r.Output, &out) != nil {
		return nil
	}
	var lines []string
	for _, h := range out.StructuredPatch {
		for _, l := range h.Lines {
			if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// changed returns the changed lines of a difference in unified form, each with its
// sign.
func changed(diff string) []string {
	var lines []string
	head := true // the names of the files
	for l := range strings.Lines(diff) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, "@@"):
			head = false
		case !head && (strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-")):
			lines = append(lines, l)
		}
	}
	return lines
}

// counted says how many lines a change adds and removes.
func counted(lines []string) string {
	added := 0
	for _, l := range lines {
		if l[0] == '+' {
			added++
		}
	}
	return fmt.Sprintf("+%d -%d", added, len(lines)-added)
}

// proposed returns the change that a call asks for, as [patch] does.
func proposed(c agent.Call) []string {
	type edit struct {
		Old string `json:"old_string"`
		New string `json:"new_string"`
	}
	var in struct {
		edit
		Content string `json:"content"`
		Edits   []edit `json:"edits"`
	}
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	lines := append(signed("-", in.Old), signed("+", in.New)...)
	lines = append(lines, signed("+", in.Content)...)
	for _, e := range in.Edits {
		lines = append(append(lines, signed("-", e.Old)...), signed("+", e.New)...)
	}
	return lines
}

func signed(sign, s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = sign + lines[i]
	}
	return lines
}
