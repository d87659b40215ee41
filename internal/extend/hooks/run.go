package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"dure/agent"
)

// Bounds of what is taken of a hook.
const (
	maxOutput = 1 << 20 // bytes of each of its outputs; one that writes more has not answered
	maxWords  = 10_000  // characters of a text; what is longer is kept in a file
	maxHead   = 2000    // of them that are passed on then
	maxTips   = 2000    // characters for whoever classifies calls
)

// An overdue is why a hook is stopped at its time limit.
type overdue struct{ limit time.Duration }

func (o overdue) Error() string { return fmt.Sprintf("stopped after %v", o.limit) }

// Fire runs the hooks that an event concerns, beside each other, and returns when all
// have answered that are waited for. It has nothing to say when there are none, or when
// ctx is done.
func (s *Set) Fire(ctx context.Context, m Moment) Outcome {
	if !s.Has(m.Event) {
		return Outcome{}
	}
	input, data, err := s.input(m)
	if err != nil {
		return Outcome{Block: kinds[m.Event].blocks != never, Verdict: agent.Deny, Reasons: []string{err.Error()}, By: "hooks"}
	}
	all := s.choices(m, input, true)
	ctx, done := s.together(ctx, m.Event, all)
	defer done()
	var out Outcome
	var wg sync.WaitGroup
	var mu sync.Mutex // of out
	for _, c := range all {
		if c.skip != "" && c.skip != SkipBroken {
			continue
		}
		h, r := c.hook, s.begin(c.hook, m)
		h.Once = h.Once && c.err == nil // what cannot run is not spent
		if h.Async && c.err == nil {
			s.alone(h, m, r, data)
			continue
		}
		wg.Go(func() {
			a := broken(m.Event, c.err)
			if c.err == nil {
				a = s.one(ctx, h, m, r, data)
			}
			a = s.fit(a)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil || m.Event == SessionEnd {
				out.add(s.name(h), a)
			}
			if !a.Async {
				s.ended(h, m, r, a)
			}
		})
	}
	wg.Wait()
	return out
}

// together gives the hooks of an event the time that they have together.
func (s *Set) together(ctx context.Context, e Event, all []choice) (context.Context, context.CancelFunc) {
	if e != SessionEnd {
		return ctx, func() {}
	}
	d := s.closing(all)
	return context.WithTimeoutCause(ctx, d, overdue{d})
}

// broken is what it means that nobody can tell whether an event concerns a hook: what
// would happen without a word of it, does not.
func broken(e Event, err error) Answer {
	a := Answer{Outcome: agent.HookFailed}
	if err == nil {
		return a
	}
	if a.Invalid = err.Error(); e.guards() {
		a.block(err.Error())
	}
	return a
}

// guards reports whether a call goes on to run when the hooks of an event say nothing:
// what keeps one of them from being asked at all then forbids the call.
func (e Event) guards() bool { return e == PreToolUse || e == PermissionRequest }

// closing is what the hooks at the end of a session have together.
func (s *Set) closing(all []choice) time.Duration {
	if s.c.Closing > 0 {
		return s.c.Closing
	}
	d := closingLimit
	for _, c := range all {
		if c.hook.shared() {
			d = max(d, c.hook.Timeout)
		}
	}
	return min(d, closingMost)
}

// input is what hooks are told, as an object and as bytes.
func (s *Set) input(m Moment) (map[string]json.RawMessage, []byte, error) {
	c := s.c.Facts()
	c.Event = m.Event
	all := map[string]json.RawMessage{}
	for _, v := range []any{c, m.Fields} {
		if v == nil {
			continue
		}
		data, err := encode(v)
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("writing what hooks are told: %w", err)
		}
	}
	if k := kinds[m.Event]; c.Effort != "" && (k.tool || m.Event == Stop || m.Event == SubagentStop) {
		all["effort"], _ = json.Marshal(map[string]string{"level": c.Effort})
	}
	data, err := encode(all)
	if err != nil {
		return nil, nil, fmt.Errorf("writing what hooks are told: %w", err)
	}
	return all, data, nil
}

// encode writes JSON as people write it: < and & stay what they are, for hooks that look
// for them with a search of text.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// running is a run of a hook.
type running struct {
	id    string
	begun time.Time
	held  bool // it is waited for, even if it says that nobody is to
}

func (m Moment) call() string {
	if m.Proposal == nil {
		return ""
	}
	return m.Proposal.Call.ID
}

func (s *Set) begin(h Hook, m Moment) running {
	r := running{id: s.c.NewID(), begun: time.Now()}
	// A log that cannot be written ends the turn at its next event.
	_ = s.c.Record(agent.HookStarted{
		Run: r.id, Event: string(m.Event), Hook: s.name(h), Source: h.Source.String(), Call: m.call(), Status: h.Status, Async: h.Async,
	})
	return r
}

func (s *Set) ended(h Hook, m Moment, r running, a Answer) {
	if a.Retry && a.Context == "" {
		a.Context = "The call that was denied may be tried again."
	}
	words := a.Context
	if kinds[m.Event].blocks == goesOn && !h.Async {
		words = "" // they are what the model goes on with
	}
	_ = s.c.Record(agent.HookRan{
		Run: r.id, Event: string(m.Event), Hook: s.name(h), Source: h.Source.String(), Call: m.call(),
		Outcome: a.Outcome, Exit: a.Exit, Millis: time.Since(r.begun).Milliseconds(), Verdict: a.Verdict, Reason: cmp.Or(a.Reason, a.Because),
		Message: s.short(a.notice()), Rewrote: a.Input != nil || a.Output != nil, Context: Reminder(m.Event, words),
		Once: h.mark(), Terminal: a.Bell,
	})
}

// notice is what people read of an answer.
func (a Answer) notice() string {
	all := slices.DeleteFunc([]string{a.Message, a.Because, a.Invalid}, func(s string) bool { return s == "" })
	return strings.Join(append(all, a.Warn...), "\n")
}

// fit cuts the texts of an answer to what is passed on.
func (s *Set) fit(a Answer) Answer {
	for _, t := range []*string{&a.Reason, &a.Because, &a.Context, &a.Message, &a.Invalid, &a.First, &a.Title} {
		*t = s.short(strings.TrimSpace(*t))
	}
	a.Tips = first(a.Tips, maxTips)
	if a.Show != nil {
		shown := first(*a.Show, maxWords)
		a.Show = &shown
	}
	return a
}

// first returns the first n characters of a text.
func first(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// short is a text, or its beginning and where the rest is.
func (s *Set) short(text string) string {
	if utf8.RuneCountInString(text) <= maxWords {
		return text
	}
	err := errors.New("there is no place for it")
	path := ""
	if s.c.Keep != nil {
		path, err = s.c.Keep(text)
	}
	if err != nil {
		return first(text, maxHead) + "\n[cut: the rest could not be kept]"
	}
	return fmt.Sprintf("%s\n[cut: all %d bytes are in %s]", first(text, maxHead), len(text), path)
}

// Reminder is a text of a hook for the model, which says where it comes from; "" stays
// "". What in it looks like the end of a reminder, or like another one, does not.
func Reminder(e Event, text string) string { return ReminderOf(string(e)+" hook", text) }

// ReminderOf is a Reminder of somebody else.
func ReminderOf(who, text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return fmt.Sprintf("<system-reminder>\n%s additional context: %s\n</system-reminder>", who, tame(text))
}

// tame takes the sense from tags of reminders in a text.
func tame(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return b.String() + text
		}
		b.WriteString(text[:i])
		text = text[i+1:]
		name := strings.ToLower(strings.TrimLeft(first(text, 40), "/ \t\n"))
		if strings.HasPrefix(name, "system-reminder") || strings.HasPrefix(name, "system_reminder") {
			b.WriteString("&lt;")
			continue
		}
		b.WriteByte('<')
	}
}

// one runs a hook to its end.
func (s *Set) one(ctx context.Context, h Hook, m Moment, r running, input []byte) (a Answer) {
	limit := h.Limit()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue{limit})
	defer cancel()
	switch h.Type {
	case Command:
		a = s.command(ctx, h, m, r, input)
	case HTTP:
		a = s.post(ctx, h, m, input)
	case MCPTool:
		a = s.invoke(ctx, h, m, input)
	case Prompt:
		a = s.ask(ctx, h, m, input)
	case Agent:
		a = s.delegate(ctx, h, m, input)
	case Callback:
		a = s.call(ctx, h, m, input)
	}
	if ctx.Err() != nil && a.Outcome == agent.HookFailed {
		a = interrupted(context.Cause(ctx))
	}
	return h.failing(m.Event, a)
}

// failing says what it means that a hook has not answered: nothing, unless that is to
// forbid what it was asked about, or it was us who could not start it.
func (h Hook) failing(e Event, a Answer) Answer {
	if a.Outcome != agent.HookFailed && a.Outcome != agent.HookTimedOut {
		return a
	}
	block := !h.Async && (h.Block && kinds[e].blocks != never || a.barred && e.guards())
	switch e {
	case Stop, SubagentStop, TaskCompleted, TeammateIdle:
		block = false
	case PreToolUse, UserPromptSubmit: // who embeds us may have had a no on its way
		block = block || h.Type == Callback && a.Outcome == agent.HookTimedOut
	case PreModelSwitch:
		block = block || a.Outcome == agent.HookTimedOut
	}
	if block {
		a.Block, a.Verdict, a.Reason = true, agent.Deny, cmp.Or(a.Reason, "a hook failed that has to pass: "+a.Invalid)
	}
	return a
}

// alone runs a hook that nobody waits for.
func (s *Set) alone(h Hook, m Moment, r running, input []byte) {
	ok := s.apart(func() {
		select {
		case s.free <- struct{}{}:
			defer func() { <-s.free }()
			s.late(h, m, r, s.one(s.life, h, m, r, input))
		case <-s.life.Done():
			s.late(h, m, r, Answer{Outcome: agent.HookCancelled})
		}
	})
	if !ok {
		s.late(h, m, r, Answer{Outcome: agent.HookCancelled})
	}
}

// late takes the answer of a hook that nobody has waited for: what it has to say is for
// the model, and nothing that it forbids counts any more.
func (s *Set) late(h Hook, m Moment, r running, a Answer) {
	if a.Async { // it goes on, and is taken at its end
		return
	}
	words := a.Context
	if a.Message != "" && a.Message != a.Context {
		words = strings.TrimSpace(words + "\n" + a.Message)
	}
	wake := h.Rewake && a.Exit != nil && *a.Exit == 2
	if wake {
		words = firstOf(a.said, words)
	}
	if a.Outcome == agent.HookBlocked {
		a.Outcome = agent.HookPassed
	}
	a = s.fit(Answer{Outcome: a.Outcome, Exit: a.Exit, Invalid: a.Invalid, Warn: a.Warn, Context: words, Bell: a.Bell})
	wake = wake && a.Context != "" && s.life.Err() == nil && s.c.Wake != nil
	if wake && s.c.Wake(Reminder(m.Event, a.Context), "hook:"+s.name(h)) {
		a.Context = ""
	}
	h.Async = true // one that has left since is as those that began so
	s.ended(h, m, r, a)
}
