package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/frontend/view"
)

// Bounds of a diff on the screen, in lines: of a change that was made, and of
// one that waits for approval.
const (
	diffLines    = 12
	approveLines = 40
)

// patch returns the changed lines of an edit, each with its sign; nil = there are none.
func patch(changes []view.FileChange) []string {
	var lines []string
	for _, f := range changes {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") {
					lines = append(lines, l)
				}
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
