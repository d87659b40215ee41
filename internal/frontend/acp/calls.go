package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// The bounds of what is shown of a call, in bytes.
const (
	maxTitle  = 200
	maxRaw    = 64 << 10  // of its input and its output as they are
	maxShown  = 64 << 10  // of what it has printed: the end of it while it runs, else the beginning
	maxDiff   = 512 << 10 // of a file that is written
	maxPlaces = 50        // files
)

// The states of a call.
const (
	callPending   = "pending"
	callRuns      = "in_progress"
	callCompleted = "completed"
	callFailed    = "failed"
)

// announce tells of a call, or with its input says what it is. r is its row, or that of the
// question about it.
func (v *follower) announce(r *view.Row, c agent.Call) {
	was := r.Mark
	if was >= described || was == announced && len(c.Input) == 0 {
		return
	}
	if r.Mark = announced; len(c.Input) > 0 {
		r.Mark = described
	}
	u := toolCall{
		Update: "tool_call", ID: c.ID, Title: v.titleOf(c), Kind: kindOf(c.Tool), Status: callPending,
		Input: raw(c.Input), Locations: v.places(c, agent.Effects{}), Content: v.planned(c),
	}
	if was == announced {
		u.Update = "tool_call_update"
	}
	v.tell(u)
}

// called takes in what happens to calls, and plans. The first of the rows is that of the call.
func (v *follower) called(ctx context.Context, e agent.Event, rows []*view.Row) {
	if len(rows) == 0 {
		return
	}
	r := rows[0]
	known := r.Call != nil && r.Mark > 0
	switch b := e.Body.(type) {
	case agent.CallDecided:
		v.announce(r, r.Call.Call)
		v.decided(r, b)
	case agent.ApprovalAsked:
		if own := v.Call(b.Proposal.Call.ID); own != nil && b.Child == "" {
			r = own
		}
		v.announce(r, b.Proposal.Call)
		if !v.past {
			v.put(ctx, b)
		}
	case agent.ApprovalResolved:
		if cancel := v.asking[b.ID]; cancel != nil {
			cancel()
			delete(v.asking, b.ID)
		}
	case agent.CallStarted:
		if known {
			v.tell(toolCall{Update: "tool_call_update", ID: b.ID, Status: callRuns})
			v.x.begun(b.ID)
		}
	case agent.CallOutput:
		if known {
			v.tell(toolCall{Update: "tool_call_update", ID: b.ID, Content: []callContent{printed(r.Call.Output)}})
		}
	case agent.CallFinished:
		switch {
		case !known: // no model has made it
		case b.Result.Status == agent.StatusPending:
			v.tell(toolCall{Update: "tool_call_update", ID: b.Result.ID, Status: callRuns, Content: v.result(r.Call), Output: output(b.Result)})
		default:
			v.outcome(r.Call)
		}
	case agent.CallSettled:
		if known {
			v.outcome(r.Call)
		}
	case agent.PlanProposed:
		v.plan(b.Body)
	case agent.PlanChanged:
		v.plan(b.Body)
	}
}

// decided tells where a call as it will run is at work.
func (v *follower) decided(r *view.Row, b agent.CallDecided) {
	if r.Mark == decided || b.Decision.Verdict != agent.Allow {
		return
	}
	r.Mark = decided
	if at := v.places(b.Proposal.Call, b.Proposal.Effects); len(at) > 0 {
		v.tell(toolCall{Update: "tool_call_update", ID: b.Proposal.Call.ID, Locations: at})
	}
}

// outcome tells what came of a call.
func (v *follower) outcome(c *view.Call) {
	status := callCompleted
	if c.Result.Failed() {
		status = callFailed
	}
	content := v.result(c)
	if on := v.x.endedOn(c.ID); on != "" { // it shows what was printed
		content = []callContent{{Type: "terminal", Terminal: on}}
		if c.Result.Error != nil {
			b := textBlock(c.Result.Error.Message)
			content = append(content, callContent{Type: "content", Content: &b})
		}
	}
	v.tell(toolCall{Update: "tool_call_update", ID: c.ID, Status: status, Content: content, Output: output(*c.Result)})
	if c.Tool == todoTool && !c.Result.Failed() {
		v.todos(c.Input)
	}
}

// The tools that are shown in a way of their own.
const (
	todoTool = "todo__write"
	planTool = "plan__exit"
	askTool  = "user__ask"
)

// kindOf is what kind of work a tool does.
func kindOf(tool string) string {
	group, what, _ := strings.Cut(tool, "__")
	switch group {
	case "file-system":
		switch what {
		case "glob", "grep":
			return "search"
		case "delete":
			return "delete"
		case "move":
			return "move"
		case "read", "multi-read", "list":
			return "read"
		}
		return "edit"
	case "bash", "process", "task", "code":
		if what == "note" {
			return "think"
		}
		return "execute"
	case "web":
		return "fetch"
	case "todo", "agent", "memory":
		return "think"
	case "resource", "session":
		return "read"
	case "plan":
		return "switch_mode"
	case "tool", "lsp":
		return "search"
	}
	return "other"
}

// titleOf says in a line what a call does.
func (v *follower) titleOf(c agent.Call) string {
	arg := v.mainOf(c)
	if arg != "" && c.Tool == "bash__exec" {
		return text.Cut(arg, maxTitle)
	}
	return text.Cut(strings.TrimSpace(text.OneLine(nameOf(c.Tool))+" "+arg), maxTitle)
}

// nameOf is what people call a tool.
func nameOf(tool string) string {
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		return strings.Replace(rest, "__", "/", 1)
	}
	group, what, ok := strings.Cut(tool, "__")
	switch {
	case !ok:
		return tool
	case group == "file-system" && what != "":
		return strings.ToUpper(what[:1]) + what[1:]
	case group == "":
		return tool
	}
	return strings.ToUpper(group[:1]) + group[1:] + " " + what
}

// mainOf is what a call is about.
func (v *follower) mainOf(c agent.Call) string {
	for _, key := range []string{"command", "file_path", "pattern", "path", "query", "url", "uri", "description", "name"} {
		s := field(c.Input, key)
		if s == "" {
			continue
		}
		if key == "file_path" || key == "path" {
			if rel, err := filepath.Rel(v.x.dir, s); err == nil && filepath.IsLocal(rel) {
				s = rel
			}
		}
		return text.OneLine(cut(s, maxTitle*4))
	}
	return ""
}

// field is a field of a JSON object that is a text, or "".
func field(raw json.RawMessage, name string) string {
	var in map[string]json.RawMessage
	var s string
	if json.Unmarshal(raw, &in) != nil || json.Unmarshal(in[name], &s) != nil {
		return ""
	}
	return s
}

// cut returns the beginning of a text, with a sign where it ends before its time.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// raw is JSON as it is, unless there is too much of it.
func raw(data json.RawMessage) json.RawMessage {
	if len(data) == 0 || len(data) > maxRaw || !json.Valid(data) {
		return nil
	}
	return data
}

// output is what came of a call, as it is.
func output(r agent.Result) json.RawMessage {
	if out := raw(r.Output); out != nil {
		return out
	}
	if r.Text == "" {
		return nil
	}
	data, _ := json.Marshal(cut(r.Unfenced(), maxRaw/2)) // a text always encodes
	return data
}

// places are the files that a call is about.
func (v *follower) places(c agent.Call, e agent.Effects) (list []location) {
	seen := map[string]bool{}
	add := func(path string, line int) {
		if path == "" || len(list) >= maxPlaces {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(v.x.dir, path)
		}
		if path = filepath.Clean(path); !seen[path] {
			seen[path] = true
			list = append(list, location{Path: path, Line: line})
		}
	}
	switch kindOf(c.Tool) {
	case "read", "edit", "delete", "move", "search":
		line := 0
		var in struct {
			Offset int `json:"offset"`
		}
		if json.Unmarshal(c.Input, &in) == nil && in.Offset > 0 {
			line = in.Offset
		}
		add(field(c.Input, "file_path"), line)
		if kindOf(c.Tool) != "search" {
			add(field(c.Input, "path"), line)
		}
		for _, path := range e.Writes {
			add(path, 0)
		}
	}
	return list
}

// planned is the change that a call would make, as far as its input tells.
func (v *follower) planned(c agent.Call) []callContent {
	var in struct {
		Path    string  `json:"file_path"`
		Content *string `json:"content"`
		Old     *string `json:"old_string"`
		New     *string `json:"new_string"`
	}
	if kindOf(c.Tool) != "edit" || json.Unmarshal(c.Input, &in) != nil || in.Path == "" {
		return nil
	}
	path := in.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.x.dir, path)
	}
	switch {
	case in.Old != nil && in.New != nil:
		return []callContent{diff(path, in.Old, *in.New)}
	case in.Content != nil:
		return []callContent{diff(path, nil, *in.Content)}
	}
	return nil
}

func diff(path string, was *string, now string) callContent {
	now = cut(now, maxDiff)
	if was != nil {
		old := cut(*was, maxDiff)
		was = &old
	}
	return callContent{Type: "diff", Path: filepath.Clean(path), Old: was, New: &now}
}

// printed is text of a program, as it was printed.
func printed(s string) callContent {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	b := textBlock(fence + "console\n" + strings.TrimSuffix(s, "\n") + "\n" + fence)
	return callContent{Type: "content", Content: &b}
}

// result is what came of a call as a person sees it.
func (v *follower) result(c *view.Call) (list []callContent) {
	r := c.Result
	if kindOf(c.Tool) == "edit" && !r.Failed() {
		if list = v.changes(view.Changes(r.Output)); len(list) > 0 {
			return list
		}
	}
	said := r.Unfenced()
	if e := r.Error; said == "" && e != nil {
		said = strings.TrimSpace(e.Message + "\n" + e.Suggestion)
	}
	switch {
	case strings.TrimSpace(said) == "":
	case kindOf(c.Tool) == "execute":
		list = append(list, printed(cut(said, maxShown)))
	default:
		b := textBlock(cut(said, maxShown))
		list = append(list, callContent{Type: "content", Content: &b})
	}
	for _, part := range r.Blocks {
		if b, ok := shownBlock(part); ok {
			list = append(list, callContent{Type: "content", Content: &b})
		}
	}
	return list
}

// changes are the changes that a call has made to files.
func (v *follower) changes(files []view.FileChange) (list []callContent) {
	for _, f := range files {
		if f.Path == "" || len(list) >= maxPlaces {
			continue
		}
		path := f.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(v.x.dir, path)
		}
		for _, h := range f.Hunks {
			was, now := sides(h.Lines)
			list = append(list, diff(path, was, now))
		}
	}
	return list
}

// sides are what lines of a diff were and are. was is nil when there was nothing.
func sides(lines []string) (was *string, now string) {
	var a, b strings.Builder
	old := false
	for _, l := range lines {
		if l == "" {
			continue
		}
		switch l[0] {
		case '-':
			old = true
			a.WriteString(l[1:] + "\n")
		case '+':
			b.WriteString(l[1:] + "\n")
		case ' ':
			old = true
			a.WriteString(l[1:] + "\n")
			b.WriteString(l[1:] + "\n")
		}
	}
	if old {
		s := a.String()
		was = &s
	}
	return was, b.String()
}

// shownBlock is a picture or a document as content.
func shownBlock(p agent.Block) (block, bool) {
	m := p.Media
	switch {
	case p.Type == agent.TextBlock && p.Text != "":
		return textBlock(p.Text), true
	case m == nil:
		return block{}, false
	case p.Type == agent.ImageBlock && len(m.Data) > 0 && len(m.Data) <= maxLine/2:
		return block{Type: "image", Data: base64.StdEncoding.EncodeToString(m.Data), MIME: m.Type}, true
	case p.Type == agent.DocumentBlock && strings.HasPrefix(m.Type, "text/") && len(m.Data) > 0:
		s := cut(string(m.Data), maxShown)
		return block{Type: "resource", Resource: &resource{URI: address(m), MIME: m.Type, Text: &s}}, true
	case m.URL != "" || m.Name != "":
		return block{Type: "resource_link", URI: address(m), Name: cmp.Or(m.Name, m.URL), MIME: m.Type}, true
	}
	return block{}, false
}

// address is where something comes from.
func address(m *agent.Media) string {
	at := cmp.Or(m.URL, m.Name)
	if u, err := url.Parse(at); err == nil && u.Scheme != "" {
		return at
	}
	return "attachment:" + url.PathEscape(cmp.Or(at, "text"))
}

// todos tells of a task list.
func (v *follower) todos(input json.RawMessage) {
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if json.Unmarshal(input, &in) != nil {
		return
	}
	out := planUpdate{Kind: "plan", Entries: []planEntry{}}
	for _, t := range in.Todos {
		out.Entries = append(out.Entries, planEntry{Content: text.OneLine(t.Content), Priority: "medium", Status: status(t.Status)})
	}
	v.tell(out)
}

func status(s string) string {
	switch s {
	case callRuns, callCompleted:
		return s
	}
	return callPending
}

// plan tells of a plan that waits for a decision, or was changed meanwhile.
func (v *follower) plan(p agent.Plan) {
	out := planUpdate{Kind: "plan", Entries: []planEntry{}}
	for _, step := range p.Steps {
		out.Entries = append(out.Entries, planEntry{Content: text.OneLine(step.Text), Priority: "medium", Status: callPending})
	}
	if len(out.Entries) > 0 {
		v.tell(out)
	}
}

// newMessage names the message that an attempt at an answer makes.
func newMessage(turn string, step, attempt int) string {
	return fmt.Sprintf("%s-%s-%d", turn, strconv.Itoa(step), attempt)
}
