package prompt

import (
	"embed"
	"fmt"
	"strings"
	"time"
)

//go:embed sections
var texts embed.FS

// definition says how a section comes about.
type definition struct {
	id       string
	title    string // heads the text; "" = nothing does
	priority int
	required bool
	ours     bool // what dure says of itself and of how to work: a text of the user's own replaces it
	write    func(c Context, tags map[string]bool) string
}

// definitions are the fifteen sections in the order in which the model reads them:
// what is the same for all sessions of a kind, what is the user's, and last what each
// session has of its own.
var definitions = []definition{
	{id: "identity", priority: 100, required: true, ours: true, write: file("identity")},
	{id: "capabilities", title: "How to work", priority: 80, ours: true, write: file("capabilities")},
	{id: "tools", title: "Tools", priority: 75, write: func(c Context, tags map[string]bool) string {
		if len(c.Tools) == 0 {
			return ""
		}
		return file("tools")(c, tags)
	}},
	{id: "constraints", title: "Limits", priority: 100, required: true, write: file("constraints")},
	{id: "formatting", title: "Answers", priority: 60, ours: true, write: file("formatting")},
	{id: "language", title: "Language", priority: 70, write: file("language")},
	{id: "finance-context", title: "Finance", priority: 65, write: financeContext},
	{id: "compliance", title: "Compliance", priority: 95, required: true, write: finance("compliance")},
	{id: "risk-disclaimer", title: "Risk", priority: 95, required: true, write: finance("risk-disclaimer")},
	{id: "memory", title: "Texts in the conversation", priority: 50, write: func(c Context, tags map[string]bool) string {
		if !c.Memory {
			return ""
		}
		return file("memory")(c, tags)
	}},
	{id: "examples", title: "Examples", priority: 10, ours: true, write: file("examples")},
	{id: "custom", priority: 90, required: true, write: custom},
	{id: "user-context", title: "User", priority: 40, write: userContext},
	{id: "channel-context", title: "Channel", priority: 30, write: channelContext},
	{id: "current-state", title: "Environment", priority: 100, required: true, write: currentState},
}

// name is what people call a section.
func (d definition) name() string {
	if d.title != "" {
		return d.title
	}
	return strings.ToUpper(d.id[:1]) + d.id[1:]
}

// file returns what writes a text of ours. A line that begins with ?a b&c: stands
// there if the tag a is set, or both b and c.
func file(name string) func(Context, map[string]bool) string {
	return func(_ Context, tags map[string]bool) string {
		data, err := texts.ReadFile("sections/" + name + ".md")
		if err != nil {
			panic(err) // it is part of the program
		}
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			if condition, ok := strings.CutPrefix(line, "?"); ok {
				condition, line, _ = strings.Cut(condition, ": ")
				if !holds(condition, tags) {
					continue
				}
			}
			b.WriteString(line)
		}
		return strings.TrimSpace(b.String())
	}
}

func holds(condition string, tags map[string]bool) bool {
	for alternative := range strings.FieldsSeq(condition) {
		all := true
		for tag := range strings.SplitSeq(alternative, "&") {
			all = all && tags[tag]
		}
		if all {
			return true
		}
	}
	return false
}

// finance returns what writes a text that only work about money has.
func finance(name string) func(Context, map[string]bool) string {
	return func(c Context, tags map[string]bool) string {
		if !c.finance() {
			return ""
		}
		return file(name)(c, tags)
	}
}

func financeContext(c Context, tags map[string]bool) string {
	text := finance("finance-context")(c, tags)
	if markets := c.investment().Markets; text != "" && len(markets) > 0 {
		text += "\n- Markets that the user prefers: " + strings.Join(markets, ", ") + "."
	}
	return text
}

func custom(c Context, _ map[string]bool) string {
	return strings.TrimSpace(c.Custom)
}

func userContext(c Context, _ map[string]bool) string {
	var b strings.Builder
	if c.User != "" {
		fmt.Fprintf(&b, "The user is called %s.\n", c.User)
	}
	b.WriteString(c.About)
	return strings.TrimSpace(b.String())
}

// channels say how answers are read.
var channels = map[string]string{
	"terminal": "Answers are read in a terminal: plain Markdown, narrow tables, no HTML.",
}

func channelContext(c Context, _ map[string]bool) string {
	text := channels[c.Channel]
	if text == "" && c.Channel != "" {
		text = "Answers are read on " + c.Channel + "."
	}
	if c.Chat == "group" {
		text += "\nSeveral people read along: do not repeat what one of them has said in private."
	}
	return strings.TrimSpace(text)
}

func currentState(c Context, _ map[string]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Working directory: %s\n", c.Workdir)
	for _, e := range c.Extra {
		fmt.Fprintf(&b, "Also available: %s\n", e)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(&b, "Git repository: %s\nPlatform: %s\nShell: %s\nDate: %s", yes[c.Git], c.OS, c.Shell, c.Opened.Format(time.DateOnly))
	if c.Model.ID != "" {
		b.WriteString("\nModel: " + c.Model.ID)
	}
	return b.String()
}
