package telemetry

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"dure/agent"
)

// fold makes spans, events and figures of the events of one session. It belongs to the
// goroutine that reads those.
type fold struct {
	o    *Observer
	id   string // of the session
	last int64  // event

	above *Context // what its turns are a part of; nil = each is a trace of its own

	agent, model string
	opened       agent.SessionOpened

	turn     *turn
	requests map[string]*request
	calls    map[string]*call // by ID
	settled  []place          // calls that have come out since the last turn
	children map[string]child
	asked    map[string]bool // questions that nobody has answered, by ID
	said     messages        // since the last request, when content is told
}

// turn is a turn that goes on.
type turn struct {
	id   string
	span *span
	on   bool // spans of its trace are told
}

// request is a request to a model that has not been answered.
type request struct {
	span          *span
	on            bool
	turn, purpose string
	model         string
	input         messages
}

// call is a call of a tool that has begun, or will.
type call struct {
	key     string
	class   agent.Class
	start   time.Time
	started bool
	input   []byte
}

// child is a session that works for a call.
type child struct {
	since time.Time
	above *Context
}

func newFold(o *Observer, id string) *fold {
	return &fold{
		o: o, id: id, requests: map[string]*request{}, calls: map[string]*call{}, children: map[string]child{}, asked: map[string]bool{},
		said: messages{redact: o.cfg.Redact, on: o.cfg.Content != ContentNone, parts: o.cfg.Parts},
	}
}

// know takes what an event says of the session, and tells of nothing.
func (f *fold) know(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		f.opened = b
		f.agent, f.model = cmp.Or(b.Agent, "dure"), cmp.Or(b.Model, f.model)
	case agent.SettingsChanged:
		f.model = cmp.Or(b.Model, f.model)
	case agent.ApprovalAsked:
		if !f.asked[b.ID] {
			f.asked[b.ID] = true
			f.o.figures.waiting.Add(1)
		}
	case agent.ApprovalResolved:
		if f.asked[b.ID] {
			delete(f.asked, b.ID)
			f.o.figures.waiting.Add(-1)
		}
	case agent.TurnEnded:
		f.unasked()
	}
}

// unasked forgets questions that are not asked any more.
func (f *fold) unasked() {
	f.o.figures.waiting.Add(-float64(len(f.asked)))
	clear(f.asked)
}

// take tells of an event.
func (f *fold) take(e agent.Event) {
	f.know(e)
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		f.sessionOpened(e, b)
	case agent.InputAdded:
		f.said.user(b.Text, inputPart(b.Origin))
		f.inputAdded(e, b)
	case agent.ContextAdded:
		f.said.user(b.Text, partRest)
	case agent.TurnStarted:
		f.turnStarted(e, b)
	case agent.TurnEnded:
		f.turnEnded(e, b)
	case agent.ModelRequested:
		f.requested(e, b)
	case agent.ModelAnswered:
		f.answered(e, b)
	case agent.ModelFailed:
		f.failed(e, b)
	case agent.CallDecided:
		f.decided(e, b)
	case agent.CallStarted:
		f.started(e, b)
	case agent.CallFinished:
		f.finished(e, b)
	case agent.CallSettled:
		f.callSettled(e, b)
	case agent.ChildOpened:
		f.childOpened(e, b)
	case agent.ChildEnded:
		f.childEnded(b)
	case agent.ContextCompacted:
		f.compacted(e, b)
	}
}

// end tells of what goes on when the session ends before it: by a crash of its process, or
// because it is closed.
func (f *fold) end(now time.Time) {
	for _, r := range f.requests {
		f.unfinished(r.span, r.on, now)
	}
	if t := f.turn; t != nil {
		f.unfinished(t.span, t.on, now)
	}
	clear(f.requests)
	f.turn = nil
	f.unasked()
}

func (f *fold) unfinished(s *span, on bool, now time.Time) {
	s.attrs.add("dure.unfinished", true)
	s.end = now
	f.o.tell(s, on)
}

func (f *fold) sessionOpened(e agent.Event, b agent.SessionOpened) {
	start := "new"
	switch {
	case b.Parent != "":
		start = "agent"
	case b.ForkOf != "":
		start = "fork"
	case e.Seq > 1:
		start = "resumed"
	}
	f.o.figures.sessions.Add(1, b.Lane, start)
	r := f.event(e, "dure.session.opened", severityInfo)
	r.attrs.text("dure.session.start", start)
	r.attrs.text("dure.session.lane", b.Lane)
	r.attrs.text("dure.session.parent", b.Parent)
	r.attrs.text("dure.session.profile", b.Profile)
	r.attrs.text("dure.session.mode", string(b.Mode))
	r.attrs.text(keyAgent, f.agent)
	r.attrs.text(keyModel, f.model)
	f.o.log(r)
}

// event makes a record of the log, at the place where the session is.
func (f *fold) event(e agent.Event, name string, severity uint64) *event {
	r := &event{time: e.Time, name: name, severity: severity}
	if f.turn != nil && f.turn.on {
		r.at = f.turn.span.at
	}
	r.attrs.text("gen_ai.conversation.id", f.id)
	return r
}

func (f *fold) inputAdded(e agent.Event, b agent.InputAdded) {
	r := f.event(e, "dure.input.added", severityInfo)
	origin, _, _ := strings.Cut(b.Origin, ":")
	r.attrs.text("dure.input.origin", cmp.Or(origin, "user"))
	r.attrs.add("dure.input.length", int64(len(b.Text)))
	if f.o.cfg.Content.events() && f.o.cfg.Parts.has(inputPart(b.Origin)) {
		r.attrs.add("dure.input.text", clip(f.o.cfg.Redact(b.Text), maxContent))
	}
	f.o.log(r)
}

// place returns where something of the session is that has the given ID: in the trace of
// its turn, if it has one.
func (f *fold) place(turn string, id spanID) (p place, on bool) {
	return f.o.place(f.id, turn, id, f.above)
}

func (f *fold) turnStarted(e agent.Event, b agent.TurnStarted) {
	if f.turn != nil { // it was cut short
		f.unfinished(f.turn.span, f.turn.on, e.Time)
	}
	at, on := f.place(b.Turn, turnSpan(f.id, b.Turn, b.Attempt))
	s := &span{at: at, name: operationAgent + " " + f.agent, kind: kindInternal, start: e.Time, links: f.settled}
	f.settled = nil
	if f.above != nil {
		s.parent, s.state, s.remote = f.above.at.span, f.above.state, f.above == f.o.cfg.Parent
	}
	if b.Attempt > 1 {
		s.links = append(s.links, place{at.trace, turnSpan(f.id, b.Turn, b.Attempt-1)})
	}
	s.attrs.text(keyOperation, operationAgent)
	s.attrs.text(keyAgent, f.agent)
	s.attrs.text("gen_ai.conversation.id", f.id)
	s.attrs.text(keyProvider, f.o.provider(f.model))
	s.attrs.text(keyModel, f.model)
	s.attrs.text("dure.turn", b.Turn)
	s.attrs.text("dure.session.lane", f.opened.Lane)
	f.turn = &turn{id: b.Turn, span: s, on: on}
}

// turnSpan is the ID of the span of an attempt at a turn.
func turnSpan(session, turn string, attempt int) spanID {
	return spanOf("turn", session, turn+"\x00"+strconv.Itoa(max(1, attempt)))
}

func (f *fold) turnEnded(e agent.Event, b agent.TurnEnded) {
	why := ""
	switch b.Reason {
	case agent.EndFailed:
		why = cmp.Or(string(b.Fail), string(b.Problem), "failed")
	case agent.EndRefused, agent.EndLimit:
		why = string(b.Reason)
	}
	f.o.figures.turns.Add(1, f.agent, string(b.Reason))
	f.o.figures.turn.Record(float64(b.Millis)/1e3, operationAgent, f.agent, why)
	r := f.event(e, "dure.turn.ended", severityInfo)
	if why != "" {
		r.severity = severityWarn
	}
	var more attrs
	more.text("dure.turn.reason", string(b.Reason))
	more.text(keyError, why)
	more.count("dure.turn.steps", int64(b.Steps))
	more = append(more, usage(b.Usage)...)
	if b.Cost != nil {
		more.add("dure.cost.usd", b.Cost.Dollars())
	}
	r.attrs = append(r.attrs, more...)
	r.attrs.add("dure.turn.ms", b.Millis)
	f.o.log(r)
	for key, r := range f.requests {
		if r.turn == b.Turn && r.purpose == "" { // it was given up with the turn, and nobody says so
			f.unfinished(r.span, r.on, e.Time)
			delete(f.requests, key)
		}
	}
	if t := f.turn; t != nil {
		t.span.attrs = append(t.span.attrs, more...)
		t.span.failed, t.span.why, t.span.end = why != "", why, e.Time
		f.o.tell(t.span, t.on)
	}
	f.turn = nil
	clear(f.calls)
}

// usage says how many tokens were used. What came from the cache, or went into it, is part
// of the input.
func usage(u agent.Usage) (a attrs) {
	a.count("gen_ai.usage.input_tokens", int64(u.Input+u.CacheRead+u.CacheWrite))
	a.count("gen_ai.usage.output_tokens", int64(u.Output))
	a.count("gen_ai.usage.cache_read.input_tokens", int64(u.CacheRead))
	a.count("gen_ai.usage.cache_creation.input_tokens", int64(u.CacheWrite))
	return a
}

func requestKey(turn, purpose string, step int) string {
	return turn + "\x00" + purpose + "\x00" + strconv.Itoa(step)
}

func (f *fold) requested(e agent.Event, b agent.ModelRequested) {
	key := requestKey(b.Turn, b.Purpose, b.Step)
	if old := f.requests[key]; old != nil {
		f.unfinished(old.span, old.on, e.Time)
	}
	at, on := f.place(cmp.Or(b.Turn, e.ID), spanOf("request", f.id, e.ID))
	s := &span{at: at, name: operationChat + " " + b.Model, kind: kindClient, start: e.Time}
	f.under(s)
	s.attrs.text(keyOperation, operationChat)
	s.attrs.text(keyProvider, f.o.provider(b.Model))
	s.attrs.text(keyModel, b.Model)
	s.attrs.text("gen_ai.conversation.id", f.id)
	s.attrs.text("dure.request.purpose", b.Purpose)
	s.attrs.count("gen_ai.request.max_tokens", int64(b.Params.MaxTokens))
	if t := b.Params.Temperature; t != nil {
		s.attrs.add("gen_ai.request.temperature", *t)
	}
	s.attrs.count("dure.request.attempt", int64(b.Attempt))
	r := &request{span: s, on: on, turn: b.Turn, purpose: b.Purpose, model: b.Model}
	if b.Purpose == "" {
		r.input = f.said.peek()
	}
	if len(f.requests) >= maxRequests { // given up, one after the other
		for key, old := range f.requests {
			f.unfinished(old.span, old.on, e.Time)
			delete(f.requests, key)
		}
	}
	f.requests[key] = r
}

// under puts a span below the turn, or, outside of turns, where the session is.
func (f *fold) under(s *span) {
	switch {
	case f.turn != nil && f.turn.span.at.trace == s.at.trace:
		s.parent, s.state = f.turn.span.at.span, f.turn.span.state
	case f.above != nil:
		s.parent, s.state, s.remote = f.above.at.span, f.above.state, f.above == f.o.cfg.Parent
	}
}

// over takes a request that is over.
func (f *fold) over(turn, purpose string, step int) *request {
	key := requestKey(turn, purpose, step)
	r := f.requests[key]
	delete(f.requests, key)
	return r
}

func (f *fold) answered(e agent.Event, b agent.ModelAnswered) {
	r := f.over(b.Turn, b.Purpose, b.Step)
	if r == nil { // asked before anybody looked
		return
	}
	provider, as := f.o.provider(r.model), cmp.Or(b.Model, r.model)
	n := &f.o.figures
	n.tokens.Record(float64(b.Usage.Input+b.Usage.CacheRead+b.Usage.CacheWrite), operationChat, provider, r.model, as, "input")
	n.tokens.Record(float64(b.Usage.Output), operationChat, provider, r.model, as, "output")
	n.operation.Record(e.Time.Sub(r.span.start).Seconds(), operationChat, provider, r.model, as, "")
	if b.FirstByte > 0 {
		n.first.Record(float64(b.FirstByte)/1e3, operationChat, provider, r.model, as)
	}
	for _, part := range []struct {
		kind string
		n    int
	}{{"input", b.Usage.Input}, {"output", b.Usage.Output}, {"cache_read", b.Usage.CacheRead}, {"cache_write", b.Usage.CacheWrite}} {
		if part.n > 0 {
			n.used.Add(float64(part.n), provider, r.model, part.kind)
		}
	}
	s := r.span
	s.attrs.text(keyAnswered, as)
	s.attrs.text("gen_ai.response.id", b.ID)
	if b.Stop != "" {
		s.attrs.add("gen_ai.response.finish_reasons", []string{clip(string(b.Stop), maxAttr)})
	}
	s.attrs = append(s.attrs, usage(b.Usage)...)
	if b.Cost != nil {
		n.cost.Add(b.Cost.Dollars(), provider, r.model)
		s.attrs.add("dure.cost.usd", b.Cost.Dollars())
	}
	s.attrs.count("dure.response.first_ms", b.FirstByte)
	var output messages
	if b.Purpose == "" {
		f.said.clear()
		output = f.said.answer(b.Message, b.Stop)
	}
	f.details(e, r, output)
}

// details tells of a request that is over: as an event, and as a span.
func (f *fold) details(e agent.Event, r *request, output messages) {
	s, content := r.span, attrs(nil)
	if len(r.input.list) > 0 {
		content.add("gen_ai.input.messages", r.input.list)
	}
	if len(output.list) > 0 {
		content.add("gen_ai.output.messages", output.list)
	}
	log := f.event(e, "gen_ai.client.inference.operation.details", severityInfo)
	log.attrs = append(attrs(nil), s.attrs...)
	if s.failed {
		log.severity = severityWarn
	}
	if r.on {
		log.at = s.at
	}
	if f.o.cfg.Content.events() {
		log.attrs = append(log.attrs, content...)
	}
	f.o.log(log)
	if f.o.cfg.Content.spans() {
		s.attrs = append(s.attrs, content...)
	}
	s.end = e.Time
	f.o.tell(s, r.on)
}

func (f *fold) failed(e agent.Event, b agent.ModelFailed) {
	r := f.over(b.Turn, b.Purpose, b.Step)
	if r == nil {
		return
	}
	why, provider := cmp.Or(string(b.Class), "_OTHER"), f.o.provider(r.model)
	f.o.figures.failures.Add(1, provider, r.model, why)
	f.o.figures.operation.Record(e.Time.Sub(r.span.start).Seconds(), operationChat, provider, r.model, "", why)
	r.span.attrs.text(keyError, why)
	r.span.attrs.count("http.response.status_code", int64(b.Status))
	r.span.attrs.add("dure.request.retried", b.Retry)
	r.span.failed, r.span.why = true, why
	f.details(e, r, messages{})
}

func (f *fold) decided(e agent.Event, b agent.CallDecided) {
	tool, by := b.Proposal.Call.Tool, b.Decision.By
	by, _, _ = strings.Cut(by, ":")
	if len(f.calls) >= maxCalls {
		clear(f.calls)
	}
	f.calls[b.Proposal.Call.ID] = &call{key: b.Key, class: b.Proposal.Class, start: e.Time, input: b.Proposal.Call.Input}
	f.o.figures.decisions.Add(1, tool, string(b.Decision.Verdict), by)
	r := f.event(e, "dure.tool.decided", severityInfo)
	r.attrs.text(keyTool, tool)
	r.attrs.text("gen_ai.tool.call.id", b.Proposal.Call.ID)
	r.attrs.text("dure.decision.verdict", string(b.Decision.Verdict))
	r.attrs.text("dure.decision.by", by)
	f.o.log(r)
}

func (f *fold) started(e agent.Event, b agent.CallStarted) {
	c := f.calls[b.ID]
	if c == nil {
		c = &call{}
		f.calls[b.ID] = c
	}
	c.key, c.class, c.start, c.started = b.Key, b.Class, e.Time, true
}

// denials are the errors of calls that were not allowed to run.
var denials = map[agent.ErrorCode]bool{agent.ErrDenied: true, agent.ErrBlockedByHook: true, agent.ErrApprovalTimeout: true}

// outcome says how a call came out: a word for it, and the class of its error.
func outcome(r agent.Result) (word, why string) {
	if r.Status != agent.StatusError {
		return cmp.Or(string(r.Status), string(agent.StatusOK)), ""
	}
	why = string(agent.ErrTool)
	if r.Error != nil {
		why = cmp.Or(string(r.Error.Code), why)
		if denials[r.Error.Code] {
			return "denied", why
		}
	}
	return string(agent.StatusError), why
}

func (f *fold) finished(e agent.Event, b agent.CallFinished) {
	f.said.result(b.Result)
	c := f.calls[b.Result.ID]
	if c == nil { // nothing was decided, such as on a call of a tool that is unknown
		c = &call{start: e.Time.Add(-time.Duration(b.Millis) * time.Millisecond)}
	}
	word, why := outcome(b.Result)
	f.o.figures.calls.Add(1, b.Tool, word)
	if c.started {
		f.o.figures.tool.Record(float64(b.Millis)/1e3, operationTool, b.Tool, why)
	}
	s := &span{name: operationTool + " " + b.Tool, kind: kindInternal, start: c.start, end: e.Time, failed: why != "", why: why}
	on := false
	s.at, on = f.place(f.turnID(e), callSpan(f.id, cmp.Or(c.key, b.Result.ID)))
	f.under(s)
	s.attrs.text(keyOperation, operationTool)
	s.attrs.text(keyTool, b.Tool)
	s.attrs.text("gen_ai.tool.call.id", b.Result.ID)
	s.attrs.text("gen_ai.tool.type", "function")
	s.attrs.text("gen_ai.conversation.id", f.id)
	s.attrs.text("dure.tool.class", string(c.class))
	s.attrs.text("dure.tool.outcome", word)
	s.attrs.text(keyError, why)
	r := f.event(e, "dure.tool.finished", severityInfo)
	if why != "" {
		r.severity = severityWarn
	}
	if on {
		r.at = s.at
	}
	r.attrs = append(attrs(nil), s.attrs...)
	r.attrs.add("dure.tool.ms", b.Millis)
	content := f.callContent(c.input, b.Result)
	if f.o.cfg.Content.spans() {
		s.attrs = append(s.attrs, content...)
	}
	if f.o.cfg.Content.events() {
		r.attrs = append(r.attrs, content...)
	}
	f.o.log(r)
	f.o.tell(s, on)
}

// callContent is what is told of what a call was made with, and of what it answered.
func (f *fold) callContent(input []byte, r agent.Result) (content attrs) {
	c := &f.o.cfg
	if c.Content == ContentNone {
		return nil
	}
	if c.Parts.has(PartInputs) {
		content.add("gen_ai.tool.call.arguments", clip(c.Redact(unescaped(input)), maxContent))
	}
	if c.Parts.has(PartResults) {
		content.add("gen_ai.tool.call.result", clip(c.Redact(r.Unfenced()), maxContent))
	}
	return content
}

// turnID is the turn that something belongs to: the one that goes on, or one of its own.
func (f *fold) turnID(e agent.Event) string {
	if f.turn != nil {
		return f.turn.id
	}
	return e.ID
}

// callSpan is the ID of the span of a call, by its key.
func callSpan(session, key string) spanID { return spanOf("call", session, key) }

// callSettled tells how a call came out that had been answered as pending. The turn that
// reads of it is linked to it.
func (f *fold) callSettled(e agent.Event, b agent.CallSettled) {
	word, why := outcome(b.Result)
	if b.Lost {
		word = "lost"
	}
	f.o.figures.calls.Add(1, b.Tool, word)
	s := &span{name: operationTool + " " + b.Tool + " settled", kind: kindInternal, start: e.Time, end: e.Time, failed: why != "", why: why}
	on := false
	s.at, on = f.place(f.turnID(e), spanOf("settled", f.id, b.Handle))
	f.under(s)
	s.attrs.text(keyOperation, operationTool)
	s.attrs.text(keyTool, b.Tool)
	s.attrs.text("gen_ai.tool.call.id", b.ID)
	s.attrs.text("gen_ai.conversation.id", f.id)
	s.attrs.text("dure.tool.outcome", word)
	s.attrs.text(keyError, why)
	if f.turn == nil && len(f.settled) < maxLinks {
		f.settled = append(f.settled, s.at)
	}
	r := f.event(e, "dure.tool.settled", severityInfo)
	r.attrs = append(attrs(nil), s.attrs...)
	f.o.log(r)
	f.o.tell(s, on)
}

// maxLinks bounds what a turn is linked to.
const maxLinks = 32

func (f *fold) childOpened(e agent.Event, b agent.ChildOpened) {
	at, on := f.place(f.turnID(e), f.askedBy(b.Key))
	above := &Context{at: at, sampled: on}
	if f.above != nil {
		above.state = f.above.state
	}
	f.children[b.Child] = child{since: e.Time, above: above}
	f.o.belongs(b.Child, above)
}

// maxRequests bounds the requests that are waited for.
const maxRequests = 256

// maxCalls bounds the calls that are remembered, where no turn ends.
const maxCalls = 1000

// askedBy is the span of the call that asks for a child, by the child's key: that of the
// call, or one that begins with it. Without such a call it is the turn's.
func (f *fold) askedBy(key string) spanID {
	best := ""
	for _, c := range f.calls {
		if c.key != "" && strings.HasPrefix(key, c.key) && len(c.key) > len(best) {
			best = c.key
		}
	}
	switch {
	case best != "":
		return callSpan(f.id, best)
	case f.turn != nil:
		return f.turn.span.at.span
	}
	return callSpan(f.id, key)
}

func (f *fold) childEnded(b agent.ChildEnded) {
	c, ok := f.children[b.Child]
	if !ok {
		return
	}
	delete(f.children, b.Child)
	f.o.followChild(b.Child, c.since, c.above)
}

func (f *fold) compacted(e agent.Event, b agent.ContextCompacted) {
	r := f.event(e, "dure.context.compacted", severityInfo)
	r.attrs.text("dure.compact.trigger", b.Trigger)
	r.attrs.text("dure.compact.strategy", b.Strategy)
	r.attrs.add("dure.compact.before_tokens", int64(b.Before))
	r.attrs.add("dure.compact.after_tokens", int64(b.After))
	f.o.log(r)
}
