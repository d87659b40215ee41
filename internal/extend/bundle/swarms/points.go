package swarms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
)

// pointsHere are the moments at which the extensions of a session take part.
var pointsHere = []exthost.Point{
	exthost.AtTurn, exthost.TurnPre, exthost.TurnPost, exthost.AtStep, exthost.StepPre, exthost.StepTools, exthost.StepPost,
	exthost.CallPre, exthost.CallExec, exthost.CallPost,
}

// extend starts the extensions of an agent, and puts their tools into the catalog. One that
// does not start has the session not open: what it guards would go unguarded.
func (r *Session) extend(e *bundle.Effective) error {
	all := r.ext.cfg.Code.left(e)
	if len(all) == 0 {
		return nil
	}
	ctx := context.Background() // it is bounded by the host
	r.set = exthost.NewSet(r.ext.cfg.Logger, nil)
	r.set.Only(pointsHere...)
	r.set.Notes(r.note)
	r.knows(e)
	for _, x := range all {
		spec := x.Spec.(*bundle.Extension)
		one := exthost.Extension{
			Name: x.Name, Host: r.host, Runtime: exthost.Runtime(spec.Runtime), Entry: entryOf(x, spec.Runtime, spec.Entry), Config: spec.Config, Metadata: x.Labels,
			State: r.build.Kept[x.Name],
		}
		if spec.Runtime == bundle.RuntimeBuiltin {
			one = r.ext.inGo(one, spec.Entry)
		}
		if err := r.set.Add(ctx, one); err != nil {
			return err
		}
	}
	return r.bring(ctx)
}

// Points have extensions take part in the turns of a session, whose tools catalog returns.
func (r *Session) Points(catalog func() plug.Catalog) plug.Points {
	if r == nil {
		return plug.Points{}
	}
	p := plug.Points{Close: r.Close}
	if r.set == nil {
		return p
	}
	r.catalog = catalog
	p.Choose, p.Wrap = r.choose, []plug.Wrap{r.wrap}
	p.Hooks.Calling = r.calling
	p.Hooks.After = func(ctx context.Context, on agent.Proposal, res agent.Result, _ time.Duration) (agent.Result, bool) {
		return r.after(ctx, on, res), false
	}
	p.Hooks.Turn = func(turn string, steps int) {
		r.listen()
		r.at.Lock()
		defer r.at.Unlock()
		r.turn, r.step, r.said, r.wanted = turn, max(steps, 1), nil, nil
	}
	p.Hooks.AroundTurn, p.Hooks.AroundStep = r.aroundTurn, r.aroundStep
	p.Hooks.Closing = func(context.Context) { r.keep() }
	return p
}

// Inner is what of a bundle comes behind everything else: what its extensions have said, and
// the tools that its agent has to call.
func (r *Session) Inner() plug.Points {
	if r == nil {
		return plug.Points{}
	}
	p := r.requires()
	if r.set != nil {
		p.Extra = func(context.Context, plug.Moment) []agent.ContextAdded {
			r.at.Lock()
			defer r.at.Unlock()
			return slices.Clone(r.said)
		}
	}
	return p
}

// bring puts the tools that extensions have by now into the catalog.
func (r *Session) bring(ctx context.Context) error {
	tools, err := r.set.Tools(ctx)
	if err != nil {
		return err
	}
	specs := make([]agent.Spec, len(tools))
	for i, t := range tools {
		specs[i] = t.Spec()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if reflect.DeepEqual(specs, r.added) {
		return nil
	}
	r.added = specs
	return brought(r.cat, catalog.Extension, tools)
}

// choose has extensions say which tools a step has, and with what words. What they leave
// out cannot be called in it.
func (r *Session) choose(ctx context.Context, c plug.Catalog) (plug.Catalog, error) {
	m, all := r.moment(), r.items(c.Specs)
	if m.ToolCatalog = r.wants(); m.ToolCatalog == nil {
		m.ToolCatalog = all
	}
	to, err := r.set.Mutate(ctx, exthost.StepTools, m)
	if err != nil {
		return c, err
	}
	r.offer(to.ToolCatalog)
	if equalJSON(all, to.ToolCatalog) {
		return c, nil
	}
	has := map[string]agent.Spec{}
	for _, s := range c.Specs {
		has[s.Name] = s
	}
	left := map[string]bool{}
	var specs []agent.Spec
	for _, item := range to.ToolCatalog {
		s, ok := has[item.Name]
		if !ok {
			continue // it is not there yet
		}
		s.Description = item.Description
		if len(item.Parameters) > 0 {
			s.Input = item.Parameters
		}
		specs, left[s.Name] = append(specs, s), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !reflect.DeepEqual(specs, r.shown) {
		r.shown = specs
	}
	c.Specs = r.shown
	find, refuse := c.Find, c.Refuse
	c.Find = func(name string) (agent.Tool, bool) {
		t, ok := find(name)
		if ok && !left[t.Spec().Name] {
			return nil, false
		}
		return t, ok
	}
	c.Refuse = func(name string) *agent.ToolError {
		if _, ok := find(name); ok {
			return &agent.ToolError{Code: agent.ErrToolNotFound, Message: fmt.Sprintf("Tool %q is not offered in this step.", name), Suggestion: "Use only the tools that are listed."}
		}
		if refuse != nil {
			if e := refuse(name); e != nil {
				return e
			}
		}
		return &agent.ToolError{Code: agent.ErrToolNotFound, Message: "Unknown tool: " + name, Suggestion: "Use only the tools that are listed."}
	}
	return c, nil
}

// items is a catalog as extensions see it.
func (r *Session) items(specs []agent.Spec) []exthost.CatalogItem {
	list := make([]exthost.CatalogItem, len(specs))
	for i, s := range specs {
		list[i] = exthost.CatalogItem{Name: s.Name, Description: s.Description, Parameters: s.Input}
		if e, ok := r.cat.Get(s.Name); ok && e.Source != catalog.BuiltIn {
			list[i].Source = &exthost.ItemSource{Type: string(e.Source), Name: e.From}
		}
	}
	return list
}

// called is a moment of a call.
func (r *Session) called(c agent.Call) exthost.Moment {
	m := r.moment()
	m.ToolCall, m.ToolCatalog = &exthost.ToolCall{ID: c.ID, Name: c.Tool, Arguments: c.Input}, r.offered()
	return m
}

// calling has extensions see a call before it is decided about.
func (r *Session) calling(ctx context.Context, c agent.Call) (json.RawMessage, error) {
	m := r.called(c)
	to, err := r.set.Mutate(ctx, exthost.CallPre, m)
	if err != nil {
		return nil, err
	}
	if equalJSON(m.ToolCall, to.ToolCall) {
		return c.Input, nil
	}
	return to.ToolCall.Arguments, nil
}

// errCut is why a call has no outcome: it panicked, and an extension around it caught that.
var errCut = errors.New("it did not come to its end")

// wrap has extensions around a call that was decided about. It runs as that, once at most.
func (r *Session) wrap(_ agent.Tool, next plug.Run) plug.Run {
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		var ran bool
		var got agent.Result
		var failed error
		m := r.called(c)
		m.Step.Calls = asCalls(tc.Message.Calls())
		value, err := r.set.Wrap(ctx, exthost.CallExec, m, func(ctx context.Context, _ exthost.Moment) (json.RawMessage, error) {
			ran, failed = true, errCut
			if got, failed = next(ctx, tc, c); failed != nil {
				return nil, failed
			}
			return json.Marshal(r.told(got))
		})
		switch {
		case failed != nil || ran && (err != nil || got.Status == agent.StatusPending):
			return got, failed
		case err != nil:
			return agent.Failure(agent.ErrTool, err.Error(), ""), nil
		}
		var to exthost.ToolResult
		if err := json.Unmarshal(value, &to); err != nil || to.Status == string(agent.StatusPending) {
			return agent.Failure(agent.ErrTool, "an extension has answered the call with what is no result", ""), nil
		}
		if ran && equalJSON(r.told(got), to) {
			return got, nil
		}
		if got.Stream != nil {
			_ = got.Stream.Close() // it is not read
		}
		return become(got, to), nil
	}
}

// after has extensions see a result that may be passed on.
func (r *Session) after(ctx context.Context, on agent.Proposal, res agent.Result) agent.Result {
	m, told := r.called(on.Call), r.told(res)
	m.ToolResult = &told
	to, err := r.set.Mutate(context.WithoutCancel(ctx), exthost.CallPost, m)
	switch {
	case err != nil:
		f := agent.Failure(agent.ErrWithheld, "The result was withheld: "+err.Error(), "")
		f.Files = res.Files
		return f
	case equalJSON(told, to.ToolResult) || res.Status == agent.StatusPending:
		return res
	}
	return become(res, *to.ToolResult)
}

// told is a result as extensions see it: without secrets, and without what was not read yet.
func (r *Session) told(res agent.Result) exthost.ToolResult {
	t := exthost.ToolResult{Status: string(res.Status), Handle: res.Handle, Output: res.Output}
	if t.Status == "" {
		t.Status = string(agent.StatusOK)
	}
	if len(t.Output) == 0 && res.Text != "" {
		t.Output, _ = json.Marshal(r.ext.cfg.Redact(res.Text)) // a text
	} else if clean := r.ext.cfg.Redact(string(t.Output)); clean != string(t.Output) {
		if t.Output = json.RawMessage(clean); !json.Valid(t.Output) {
			t.Output, _ = json.Marshal(clean)
		}
	}
	if e := res.Error; e != nil {
		data, _ := json.Marshal(map[string]string{
			"message": r.ext.cfg.Redact(e.Message), "name": e.Name, "code": string(e.Code), "suggestion": r.ext.cfg.Redact(e.Suggestion), "helpUrl": e.HelpURL,
		})
		_ = json.Unmarshal(data, &t.Error) // texts
	}
	return t
}

// become is a result with what extensions have made of it.
func become(was agent.Result, to exthost.ToolResult) agent.Result {
	res := agent.Result{ID: was.ID, Status: agent.StatusOK, Output: to.Output, Files: was.Files}
	if to.Status != string(agent.StatusOK) {
		message, suggestion := "an extension has made an error of it", ""
		if to.Error != nil {
			message, suggestion = to.Error.Message, to.Error.Suggestion
		}
		res = agent.Failure(agent.ErrTool, message, suggestion)
		res.ID, res.Files = was.ID, was.Files
		return res
	}
	var text string
	if json.Unmarshal(to.Output, &text) == nil && bytes.HasPrefix(bytes.TrimSpace(to.Output), []byte(`"`)) {
		res.Text = text
	}
	if len(res.Output) == 0 {
		res.Output = json.RawMessage("null")
	}
	return res
}

// equalJSON reports whether two values are the same in JSON, however they are written.
func equalJSON(a, b any) bool {
	var values [2]any
	for i, v := range []any{a, b} {
		data, err := json.Marshal(v)
		if err != nil || json.Unmarshal(data, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
