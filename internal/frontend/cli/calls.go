package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// shownArg bounds what is looked at of a call's main argument, in bytes.
const shownArg = 4096

// toolNames are the short names of tools that are not made of the name itself.
var toolNames = map[string]string{
	"bash__exec": "Bash", "bash__script": "Script", "user__ask": "Question", "todo__write": "Todo",
	"agent__run": "Agent", "web__fetch": "WebFetch", "web__search": "WebSearch",
	"file-system__multi-edit": "Edit", "memory__append": "MemoryAppend", "memory__read": "MemoryRead",
	"task__note": "TaskNote", "session__recall": "Recall", "resource__list": "ListMcpResources",
	"resource__read": "ReadMcpResource",
}

// toolName returns the short name of a tool for people.
func toolName(canonical string) string {
	if rest, ok := strings.CutPrefix(canonical, "mcp__"); ok {
		return text.OneLine(strings.Replace(rest, "__", "/", 1))
	}
	if name := toolNames[canonical]; name != "" {
		return name
	}
	if group, export, ok := strings.Cut(canonical, "__"); ok && group == "file-system" && export != "" {
		return text.OneLine(strings.ToUpper(export[:1]) + export[1:])
	}
	return text.OneLine(canonical)
}

// agentArg is what work is handed to an agent, as one line.
func agentArg(kind, about, prompt json.RawMessage) string {
	var name, title string
	if json.Unmarshal(kind, &name) != nil {
		return ""
	}
	if json.Unmarshal(about, &title) != nil || title == "" {
		_ = json.Unmarshal(prompt, &title) // what is no text shows nothing
	}
	return text.OneLine(bounded(strings.TrimSuffix(name+": "+title, ": ")))
}

// mainArg returns what a call is about, as one line: its command, file, pattern
// or the like; paths below workdir are shown relative to it.
func mainArg(c agent.Call, workdir string) string {
	var in map[string]json.RawMessage
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	if kind, ok := in["subagent_type"]; ok {
		return agentArg(kind, in["description"], in["prompt"])
	}
	for _, key := range []string{"command", "file_path", "pattern", "path", "query", "url", "uri", "description", "prompt", "name", "note"} {
		var s string
		if raw, ok := in[key]; !ok || json.Unmarshal(raw, &s) != nil || s == "" {
			continue
		}
		if key == "file_path" || key == "path" {
			s = shortPath(s, workdir)
		}
		return text.OneLine(bounded(s))
	}
	if todos, ok := in["todos"]; ok {
		return todoArg(todos)
	}
	if asked, ok := in["questions"]; ok {
		return questionArg(asked, in["answers"])
	}
	if len(in) == 0 {
		return ""
	}
	return text.OneLine(bounded(string(c.Input)))
}

// todoArg returns the task at work, and how far the list is.
func todoArg(raw json.RawMessage) string {
	var todos []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	if json.Unmarshal(raw, &todos) != nil {
		return ""
	}
	done, now := 0, ""
	for _, t := range todos {
		switch t.Status {
		case "completed":
			done++
		case "in_progress":
			now = " " + t.Content
		}
	}
	return text.OneLine(bounded(fmt.Sprintf("%d/%d%s", done, len(todos), now)))
}

// questionArg returns what was asked, and what the user has answered.
func questionArg(asked, answered json.RawMessage) string {
	var list []question
	var answers map[string]string
	if json.Unmarshal(asked, &list) != nil {
		return ""
	}
	if len(answered) > 0 && json.Unmarshal(answered, &answers) != nil {
		return ""
	}
	var parts []string
	for _, q := range list {
		parts = append(parts, strings.TrimSpace(q.Question+" "+answers[q.Question]))
	}
	return text.OneLine(bounded(strings.Join(parts, "; ")))
}

// bounded cuts s so that measuring it is cheap.
func bounded(s string) string {
	if len(s) > shownArg {
		return strings.ToValidUTF8(s[:shownArg], "")
	}
	return s
}

func shortPath(path, workdir string) string {
	if workdir == "" || !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(workdir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}

// settledLine says how a pending call came out.
func settledLine(t text.Catalog, b agent.CallSettled) string {
	task := text.OneLine(b.Handle)
	if b.Lost {
		return t.Say(text.TaskLost, "task", task)
	}
	if kind, said := reported(b.Result.Output); kind != "" {
		task, _, _ = strings.Cut(strings.TrimPrefix(task, "child:"), "-")
		key, what := text.AgentSettled, beginning(text.OneLine(bounded(said)), noticed)
		if b.Result.Failed() {
			key, what = text.AgentFailed, summary(t, agent.CallFinished{Tool: b.Tool, Result: b.Result})
		}
		return t.Say(key, "agent", text.OneLine(bounded(kind)), "task", task[:min(len(task), agentID)], "what", what)
	}
	return t.Say(text.TaskSettled, "task", task, "what", summary(t, agent.CallFinished{Tool: b.Tool, Result: b.Result}))
}

// What is shown of an agent that has ended: characters of its report, and of its ID.
const (
	noticed = 100
	agentID = 8
)

// reported returns the type of the agent whose report a result is, and what it says; "" =
// it is none.
func reported(output json.RawMessage) (kind, said string) {
	var out struct {
		Type    string                  `json:"agentType"`
		Content []struct{ Text string } `json:"content"`
		From    string                  `json:"from"` // of a message that answers one
		Payload string                  `json:"payload"`
	}
	if len(output) == 0 || json.Unmarshal(output, &out) != nil {
		return "", ""
	}
	if len(out.Content) > 0 {
		return out.Type, out.Content[0].Text
	}
	return out.From, out.Payload
}

// CrewLine says how far a plan is that agents do.
func CrewLine(t text.Catalog, b agent.CrewProgressed) string {
	return t.Say(text.CrewProgress, "over", b.Over, "of", b.Of, "percent", b.Percent, "task", text.OneLine(b.Task), "agent", text.OneLine(bounded(b.Agent)), "status", text.OneLine(b.Status))
}

// summary says in a few words what came of a call.
func summary(t text.Catalog, f agent.CallFinished) string {
	r := f.Result
	if line := signInLine(t, r); line != "" {
		return line
	}
	if e := r.Error; r.Failed() && e != nil {
		switch e.Code {
		case agent.ErrDenied, agent.ErrBlockedByHook, agent.ErrApprovalTimeout:
			return whyDenied(t, e.Message)
		case agent.ErrTool, "":
		default:
			return t.Phrase(text.OneLine(bounded(e.Message)))
		}
	}
	if code, ok := exitCode(r.Output); ok && code != 0 {
		return t.Say(text.ExitCode, "n", code)
	}
	switch {
	case r.Failed() && r.Error != nil:
		return text.OneLine(bounded(r.Error.Message))
	case r.Failed():
		return t.Say(text.Failed)
	case r.Status == agent.StatusPending:
		return t.Say(text.Background)
	}
	body := strings.TrimRight(r.Unfenced(), "\n")
	if body == "" {
		return t.Say(text.NoOutput)
	}
	if n := strings.Count(body, "\n") + 1; n > 1 {
		return t.Say(text.Lines, "n", n)
	}
	return text.OneLine(bounded(body))
}

// whyDenied says why a call was denied, as far as anybody has said so.
func whyDenied(t text.Catalog, message string) string {
	why := message
	if _, rest, ok := strings.Cut(message, "\" denied"); ok && strings.HasPrefix(message, "Tool \"") {
		why = strings.TrimPrefix(rest, ": ")
	}
	if why = strings.TrimSpace(why); why == "" || why == "." {
		return t.Say(text.Denied)
	}
	return t.Say(text.Denied) + ": " + t.Phrase(text.OneLine(bounded(why)))
}

func exitCode(output json.RawMessage) (int, bool) {
	var out struct {
		ExitCode *int `json:"exitCode"`
	}
	if len(output) == 0 || json.Unmarshal(output, &out) != nil || out.ExitCode == nil {
		return 0, false
	}
	return *out.ExitCode, true
}

// took formats a duration for people.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// tokens formats a number of tokens for people.
func tokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func cost(t text.Catalog, m *agent.Money) string {
	if m == nil {
		return t.Say(text.CostUnknown)
	}
	return m.String()
}
