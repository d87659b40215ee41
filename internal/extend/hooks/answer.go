package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

// An Answer is what came of one hook.
type Answer struct {
	Outcome agent.HookOutcome
	Exit    *int // of a process

	// Verdict is its word on a call or a change of the model. Defer asks to put the
	// call off until the program is run again.
	Verdict agent.Verdict
	Defer   bool

	Block  bool // what it was asked about is not to happen, or not to end
	Reason string

	Stop    bool   // everything is to stop
	Because string // for people

	Context string // for the model
	Message string // for people

	Input  json.RawMessage // in the place of the call's input, all of it
	Output json.RawMessage // in the place of its output
	Tips   string          // for whoever classifies calls

	Grants    json.RawMessage // updatedPermissions
	Interrupt bool            // a denial stops the turn
	Retry     bool            // the model may try again what was denied

	Watch  []string // files to watch; nil = as they were
	Title  string   // of the session
	First  string   // is read as the first input
	Reload bool     // skills are to be read anew
	Hide   bool     // the original input is not to be shown
	Show   *string  // in the place of a message
	Path   string   // of a worktree
	Bell   string   // what the terminal is to be told

	Action  string          // on a question of a server: accept, decline or cancel
	Content json.RawMessage // of that answer

	Async   bool // it goes on, and nobody waits for it
	Warn    []string
	Invalid string // why the answer does not count

	barred bool   // it could not be started, by no fault of what it is to start
	said   string // by a process that ended with 2: its error output, or else its output
}

// reply is what a process or a server has answered with.
type reply struct {
	exit    int
	out     string
	err     string
	cut     bool // out is not all of it
	process bool // it has an exit code
	server  bool // its answer has to be JSON
}

// read says what a reply means at an event.
func read(e Event, r reply) Answer {
	a := Answer{Outcome: agent.HookPassed}
	if r.process {
		a.Exit = &r.exit
	}
	out := strings.TrimSpace(r.out)
	obj, isObject := object(out)
	switch {
	case r.cut:
		isObject = false
		a.fail(fmt.Sprintf("it wrote more than %d bytes", maxOutput))
	case kinds[e].deaf:
	case isObject:
		a.object(e, obj)
	case r.server && out != "":
		a.fail("the answer is no JSON object")
	case kinds[e].plain && r.exit == 0:
		a.Context = out
	case e == WorktreeCreate && r.exit == 0:
		a.Path = lastLine(out)
	}
	if a.Invalid != "" { // nothing of it counts
		a = Answer{Outcome: agent.HookFailed, Exit: a.Exit, Invalid: a.Invalid, Warn: a.Warn}
	}
	stderr := strings.TrimSpace(r.err)
	switch {
	case e == WorktreeCreate && r.exit != 0:
		a.block(firstOf(a.forbids(), stderr, fmt.Sprintf("exit code %d", r.exit)))
	case r.exit == 2:
		a.exit2(e, stderr)
		if a.said = stderr; stderr == "" && !isObject {
			a.said = out
		}
	case r.exit != 0 && !isObject:
		a.fail(fmt.Sprintf("Failed with non-blocking status code: %s", firstOf(lineOf(r.err), fmt.Sprint("exit code ", r.exit))))
	}
	return a
}

// exit2 is what it means that a process has ended with 2. An answer that allows does not
// count beside it.
func (a *Answer) exit2(e Event, stderr string) {
	if kinds[e].blocks == never {
		if a.Verdict == agent.Allow {
			a.Verdict, a.Reason, a.Input, a.Grants = agent.Pass, "", nil, nil
		}
		a.Message = firstOf(a.Message, stderr)
		return
	}
	a.block(firstOf(a.forbids(), stderr, "exit code 2"))
}

// forbids returns why an answer forbids something; "" = it does not, or does not say why.
func (a *Answer) forbids() string {
	if a.Block || a.Verdict == agent.Deny {
		return a.Reason
	}
	return ""
}

func (a *Answer) block(reason string) {
	a.Block, a.Reason, a.Verdict, a.Outcome, a.Input = true, reason, agent.Deny, agent.HookBlocked, nil
}

func (a *Answer) fail(why string) { a.Outcome, a.Invalid = agent.HookFailed, firstOf(a.Invalid, why) }

func (a *Answer) warn(format string, args ...any) {
	a.Warn = append(a.Warn, fmt.Sprintf(format, args...))
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func lineOf(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func lastLine(s string) string {
	for _, l := range slices.Backward(strings.Split(s, "\n")) {
		if l = strings.TrimSpace(plainText(l)); l != "" {
			return l
		}
	}
	return ""
}

// plainText is a line without the sequences that colour it.
func plainText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '[' {
			for i += 2; i < len(s) && (s[i] < '@' || s[i] > '~'); i++ {
			}
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// object reads text that is a JSON object. What only looks like one is text.
func object(text string) (obj map[string]json.RawMessage, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	err := json.Unmarshal([]byte(text), &obj)
	return obj, err == nil && obj != nil
}

// specific are the fields of the part of an answer that is for one event.
var specific = map[Event][]string{
	SessionStart:        {"additionalContext", "initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"},
	Setup:               {"additionalContext"},
	UserPromptSubmit:    {"additionalContext", "sessionTitle", "suppressOriginalPrompt", "updatedPrompt"},
	UserPromptExpansion: {"additionalContext", "suppressOriginalPrompt"},
	MessageDisplay:      {"displayContent"},
	PreToolUse:          {"permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"},
	PermissionRequest:   {"decision"},
	PermissionDenied:    {"retry"},
	PostToolUse:         {"additionalContext", "classifierContext", "updatedToolOutput", "updatedMCPToolOutput"},
	PostToolUseFailure:  {"additionalContext"},
	PostToolBatch:       {"additionalContext"},
	SubagentStart:       {"additionalContext"},
	SubagentStop:        {"additionalContext"},
	Stop:                {"additionalContext"},
	PreModelSwitch:      {"permissionDecision", "permissionDecisionReason"},
	PostModelSwitch:     {"additionalContext"},
	CwdChanged:          {"watchPaths", "systemMessage"},
	FileChanged:         {"watchPaths", "systemMessage"},
	WorktreeCreate:      {"worktreePath"},
	Elicitation:         {"action", "content"},
	ElicitationResult:   {"action", "content"},
	PreSkillExecute:     {"additionalContext"},
	PostSkillExecute:    {"additionalContext"},
	Notification:        {"additionalContext"},
}

// object takes a JSON answer over.
func (a *Answer) object(e Event, obj map[string]json.RawMessage) {
	r := reading{a: a, m: obj}
	if r.flag("async", false) {
		return // whoever could go on alone has been left to it
	}
	r.text("asyncTimeout") // only with async
	if !r.flag("continue", true) {
		a.Stop, a.Because = true, r.text("stopReason")
	} else {
		r.text("stopReason")
	}
	r.flag("suppressOutput", false)
	a.Message = r.text("systemMessage")
	var all bool
	if a.Bell, all = agent.ForTerminal(r.text("terminalSequence")); !all {
		a.warn("what is no title, notice or bell in terminalSequence does not reach a terminal")
	}
	reason := r.text("reason")
	switch d := r.text("decision"); d {
	case "":
	case "block", "deny":
		a.decide(e, reason)
	case "approve":
		if e == PreToolUse {
			a.Verdict, a.Reason = agent.Allow, reason
		}
	default:
		a.fail(fmt.Sprintf("decision is %q: it has to be approve or block", d))
	}
	r.specific(e)
	for _, name := range r.left() {
		switch {
		case slices.Contains(specific[e], name):
			a.warn("%s does nothing there: put it into hookSpecificOutput", name)
		default:
			a.warn("%s is no field of an answer, and does nothing", name)
		}
	}
}

// decide is what a block means at an event.
func (a *Answer) decide(e Event, reason string) {
	if kinds[e].blocks == never {
		a.warn("%s cannot be blocked: decision does nothing", e)
		return
	}
	if e == Stop || e == SubagentStop {
		if reason == "" {
			a.fail("decision is block, and there is no reason that the model could go on with")
			return
		}
	}
	a.block(reason)
}

// reading takes fields out of an object.
type reading struct {
	a *Answer
	m map[string]json.RawMessage
}

func field[T any](r *reading, name, what string) (v T, ok bool) {
	data, has := r.m[name]
	delete(r.m, name)
	if !has || string(data) == "null" {
		return v, false
	}
	if err := json.Unmarshal(data, &v); err != nil {
		r.a.fail(name + " has to be " + what)
		return v, false
	}
	return v, true
}

func (r *reading) text(name string) string {
	if name == "asyncTimeout" {
		_, _ = field[float64](r, name, "a number")
		return ""
	}
	s, _ := field[string](r, name, "a text")
	return s
}

func (r *reading) flag(name string, usual bool) bool {
	if v, ok := field[bool](r, name, "true or false"); ok {
		return v
	}
	return usual
}

func (r *reading) left() []string {
	names := make([]string, 0, len(r.m))
	for name := range r.m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// specific reads what an answer says of its event.
func (r *reading) specific(e Event) {
	a := r.a
	part, ok := field[map[string]json.RawMessage](r, "hookSpecificOutput", "an object")
	if !ok {
		part = map[string]json.RawMessage{}
	}
	s := reading{a: a, m: part}
	for _, name := range s.left() {
		if name != "hookEventName" && !slices.Contains(specific[e], name) {
			a.warn("%s is no field of hookSpecificOutput at %s, and does nothing", name, e)
			delete(part, name)
		}
	}
	if name := s.text("hookEventName"); ok && name != string(e) {
		if name == "" {
			a.fail("hookSpecificOutput has no hookEventName")
		} else {
			a.fail(fmt.Sprintf("hookSpecificOutput is for %s, and the event is %s", name, e))
		}
		return
	}
	a.Context = s.text("additionalContext")
	a.permission(e, &s)
	if v, ok := field[json.RawMessage](&s, "updatedInput", "an object"); ok {
		a.Input = v
	}
	if a.Input != nil && !isObject(a.Input) {
		a.fail("updatedInput has to be an object")
	}
	for _, name := range []string{"updatedToolOutput", "updatedMCPToolOutput"} {
		if v, ok := field[json.RawMessage](&s, name, "a value"); ok {
			a.Output = v
		}
	}
	a.Tips = s.text("classifierContext")
	a.Watch, _ = field[[]string](&s, "watchPaths", "a list of texts")
	a.Title, a.First = s.text("sessionTitle"), firstOf(s.text("initialUserMessage"), s.text("updatedPrompt"))
	a.Reload, a.Hide, a.Retry = s.flag("reloadSkills", false), s.flag("suppressOriginalPrompt", false), s.flag("retry", false)
	if v, ok := field[string](&s, "displayContent", "a text"); ok {
		a.Show = &v
	}
	a.Path = s.text("worktreePath")
	a.Message = firstOf(a.Message, s.text("systemMessage"))
	switch a.Action = s.text("action"); a.Action {
	case "", "accept", "decline", "cancel":
	default:
		a.fail(fmt.Sprintf("action is %q: it has to be accept, decline or cancel", a.Action))
	}
	a.Content, _ = field[json.RawMessage](&s, "content", "a value")
}

// permission reads the word on a call.
func (a *Answer) permission(e Event, s *reading) {
	reason := s.text("permissionDecisionReason")
	switch d := s.text("permissionDecision"); d {
	case "":
	case "allow":
		a.say(agent.Allow, reason)
	case "deny":
		a.say(agent.Deny, reason)
	case "ask":
		a.say(agent.AskUser, reason)
	case "defer":
		a.Defer, a.Reason = true, firstOf(a.Reason, reason)
	default:
		a.fail(fmt.Sprintf("permissionDecision is %q: it has to be allow, deny, ask or defer", d))
	}
	if e != PermissionRequest {
		return
	}
	answer, ok := field[map[string]json.RawMessage](s, "decision", "an object")
	if !ok {
		return
	}
	d := reading{a: a, m: answer}
	switch b := d.text("behavior"); b {
	case "allow":
		a.say(agent.Allow, "")
		a.Input, _ = field[json.RawMessage](&d, "updatedInput", "an object")
		a.Grants, _ = field[json.RawMessage](&d, "updatedPermissions", "a list")
	case "deny":
		a.say(agent.Deny, d.text("message"))
		a.Interrupt = d.flag("interrupt", false)
	default:
		a.fail(fmt.Sprintf("decision.behavior is %q: it has to be allow or deny", b))
	}
	for _, name := range d.left() {
		a.warn("%s is no field of decision, and does nothing", name)
	}
}

// say is a verdict; a block before it stays one.
func (a *Answer) say(v agent.Verdict, reason string) {
	if a.Block {
		return
	}
	a.Verdict, a.Reason = v, firstOf(reason, a.Reason)
	if v == agent.Deny {
		a.Outcome = agent.HookBlocked
	}
}

// verdict reads what a model has answered to a prompt or as an agent.
func (a *Answer) verdict(e Event, h Hook, text string) {
	text = strings.TrimSpace(text)
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "```json"), "```"), "```")
	var v struct {
		OK         *bool  `json:"ok"`
		Reason     string `json:"reason"`
		Impossible bool   `json:"impossible"`
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(text)), &v); err != nil || v.OK == nil {
		a.fail(`the model did not answer with {"ok": true} or {"ok": false, "reason": "..."}`)
		return
	}
	if *v.OK {
		return
	}
	reason := firstOf(v.Reason, "a hook has said no")
	switch {
	case kinds[e].blocks == never, kinds[e].blocks == goesOn && v.Impossible && e != TeammateIdle:
		return // it has no effect there
	}
	a.block(reason)
	switch e {
	case Stop, SubagentStop, PostToolUseFailure, TaskCreated, TaskCompleted, PreModelSwitch, PreSkillExecute:
		return
	}
	if goesOn := h.GoOn || h.Type == Agent; !goesOn {
		a.Stop, a.Because = true, reason
	}
}
