package exthost

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Point is where extensions take part in the work of an agent.
type Point string

// The points. A wrapper is around what happens; a mutator sees what is about to happen,
// or what has, and changes what its point lets it change.
const (
	AtTurn     Point = "turn"          // wrap; a mutator is one of turn.pre
	TurnPre    Point = "turn.pre"      // mutate
	TurnPost   Point = "turn.post"     // mutate
	AtStep     Point = "step"          // wrap; a mutator is one of step.pre
	StepPre    Point = "step.pre"      // mutate
	StepConfig Point = "step.config"   // mutate: effectiveConfig
	StepTools  Point = "step.tools"    // mutate: toolCatalog
	StepBlocks Point = "step.blocks"   // mutate: blocks
	StepModel  Point = "step.llmCall"  // wrap
	StepError  Point = "step.llmError" // mutate
	StepPost   Point = "step.post"     // mutate
	AtCall     Point = "toolCall"      // wrap; it is toolCall.exec
	CallPre    Point = "toolCall.pre"  // mutate: toolCall.arguments
	CallExec   Point = "toolCall.exec" // wrap
	CallPost   Point = "toolCall.post" // mutate: toolResult
)

// pointKind says what can be registered at a point.
type pointKind struct {
	wrap   bool
	mutate Point // what a mutator there is one of; "" = there are none
}

var points = map[Point]pointKind{
	AtTurn: {true, TurnPre}, TurnPre: {false, TurnPre}, TurnPost: {false, TurnPost},
	AtStep: {true, StepPre}, StepPre: {false, StepPre}, StepConfig: {false, StepConfig}, StepTools: {false, StepTools},
	StepBlocks: {false, StepBlocks}, StepModel: {true, ""}, StepError: {false, StepError}, StepPost: {false, StepPost},
	AtCall: {true, ""}, CallPre: {false, CallPre}, CallExec: {true, ""}, CallPost: {false, CallPost},
}

// mutable returns the point that a mutator is one of.
func mutable(p Point) (Point, error) {
	if k, ok := points[p]; ok && k.mutate != "" {
		return k.mutate, nil
	}
	return "", notThere("mutate", p)
}

// wrappable returns the point that a wrapper is around.
func wrappable(p Point) (Point, error) {
	if p == AtCall {
		return CallExec, nil
	}
	if points[p].wrap {
		return p, nil
	}
	return "", notThere("wrap", p)
}

func notThere(what string, p Point) error {
	var known []Point
	for _, name := range slices.Sorted(maps.Keys(points)) {
		if k := points[name]; what == "wrap" && k.wrap || what == "mutate" && k.mutate != "" {
			known = append(known, name)
		}
	}
	return fmt.Errorf("there is nothing to %s at %q: known are %v", what, p, known)
}

// A Moment is what an extension is shown at a point.
type Moment struct {
	Agent    string `json:"agentName,omitempty"`
	Instance string `json:"instanceKey,omitempty"`

	Turn *Turn `json:"turn,omitempty"`
	Step *Step `json:"step,omitempty"`

	ToolCall    *ToolCall         `json:"toolCall,omitempty"`
	ToolResult  *ToolResult       `json:"toolResult,omitempty"`
	ToolCatalog []CatalogItem     `json:"toolCatalog,omitempty"`
	Config      json.RawMessage   `json:"effectiveConfig,omitempty"`
	Blocks      []json.RawMessage `json:"blocks,omitempty"`
	Error       string            `json:"error,omitempty"` // of the model, at step.llmError
}

// A Turn is what comes of an input.
type Turn struct {
	ID       string `json:"id"`
	Instance string `json:"instanceId"`
	Agent    string `json:"agentName"`

	// Messages are the newest ones of the conversation, at the points of turns and
	// steps. Mutators of turn.pre and step.pre may add to them.
	Messages []Message `json:"messages,omitempty"`
}

// A Step is one request, and the calls of its answer.
type Step struct {
	ID     string     `json:"id"`
	Index  int        `json:"index"` // from 0
	Turn   string     `json:"turnId"`
	Result *LLMResult `json:"llmResult,omitempty"`        // of the model, once it has answered
	Calls  []ToolCall `json:"pendingToolCalls,omitempty"` // of its answer
}

// An LLMResult is an answer of a model.
type LLMResult struct {
	Message Message `json:"message"`
	Reason  string  `json:"finishReason,omitempty"`
}

// A Message is one of a conversation, without what is no text.
type Message struct {
	Role    string     `json:"role"` // user, assistant, tool; what is added: user, system
	Content string     `json:"content"`
	Calls   []ToolCall `json:"toolCalls,omitempty"`
	Call    string     `json:"toolCallId,omitempty"` // that it is the result of
	Source  string     `json:"source,omitempty"`     // the extension that has added it; "" = none has
}

// A ToolCall is a call of a tool, as extensions see it.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A ToolResult is its outcome.
type ToolResult struct {
	Status string          `json:"status"` // ok, error, pending
	Output json.RawMessage `json:"output,omitempty"`
	Handle string          `json:"handle,omitempty"`
	Error  *struct {
		Message    string `json:"message"`
		Name       string `json:"name,omitempty"`
		Code       string `json:"code,omitempty"`
		Suggestion string `json:"suggestion,omitempty"`
		HelpURL    string `json:"helpUrl,omitempty"`
	} `json:"error,omitempty"`
}

// A CatalogItem is a tool that a model is offered in a step.
type CatalogItem struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Source      *ItemSource     `json:"source,omitempty"`
}

// An ItemSource says where a tool comes from.
type ItemSource struct {
	Type string `json:"type"` // config, extension, mcp
	Name string `json:"name"`
}

// changed returns a moment with what an extension may change of it at a point.
func (m Moment) changed(p Point, to Moment, known func(tool string) bool) (Moment, error) {
	switch p {
	case TurnPre, StepPre:
		return m.added(to)
	case CallPre:
		if m.ToolCall == nil || to.ToolCall == nil {
			return m, errors.New("it left out toolCall")
		}
		if to.ToolCall.ID != m.ToolCall.ID || to.ToolCall.Name != m.ToolCall.Name {
			return m, errors.New("it made another call of it: only the arguments can be changed")
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(to.ToolCall.Arguments, &object) != nil || object == nil {
			return m, errors.New("the arguments of its call are no object")
		}
		call := *m.ToolCall
		call.Arguments = to.ToolCall.Arguments
		m.ToolCall = &call
	case CallPost:
		if err := m.ToolResult.becomes(to.ToolResult); err != nil {
			return m, err
		}
		m.ToolResult = to.ToolResult
	case StepTools:
		m.ToolCatalog = catalog(m.ToolCatalog, to.ToolCatalog, known)
	case StepConfig:
		m.Config = to.Config
	case StepBlocks:
		m.Blocks = to.Blocks
	}
	return m, nil
}

// maxAdded bounds what an extension adds to a conversation at a time, in bytes.
const maxAdded = 64 << 10

// added returns a moment with the messages that were added to it. Those that were there
// are in the log, and stay as they are.
func (m Moment) added(to Moment) (Moment, error) {
	if m.Turn == nil || to.Turn == nil || len(to.Turn.Messages) == 0 && len(m.Turn.Messages) == 0 {
		return m, nil
	}
	was, all := m.Turn.Messages, to.Turn.Messages
	same := func(a, b Message) bool { return a.Role == b.Role && a.Content == b.Content }
	if len(all) < len(was) || !slices.EqualFunc(was, all[:len(was)], same) {
		return m, errors.New("it changed messages of the conversation: they can only be added to, at their end")
	}
	bytes := 0
	for _, n := range all[len(was):] {
		if bytes += len(n.Content); n.Role != "user" && n.Role != "system" || n.Content == "" || len(n.Calls) > 0 || bytes > maxAdded {
			return m, fmt.Errorf("the messages that it added are not such: role user or system, a text as content, %d bytes at most", maxAdded)
		}
	}
	turn := *m.Turn
	turn.Messages = slices.Concat(was, all[len(was):])
	m.Turn = &turn
	return m, nil
}

// signed says who has added messages to those of another moment. They are in a slice of
// their own.
func (m Moment) signed(was Moment, by string) {
	if m.Turn == nil || was.Turn == nil {
		return
	}
	for i := len(was.Turn.Messages); i < len(m.Turn.Messages); i++ {
		m.Turn.Messages[i].Source = by
	}
}

// becomes returns an error if a result cannot be made of another one.
func (r *ToolResult) becomes(to *ToolResult) error {
	const pending = "pending"
	switch {
	case r == nil || to == nil:
		return errors.New("it left out toolResult")
	case to.Status != "ok" && to.Status != "error" && to.Status != pending:
		return fmt.Errorf("its result has status %q: ok, error and pending are known", to.Status)
	case (r.Status == pending) != (to.Status == pending) || r.Handle != to.Handle:
		return errors.New("whether a result comes later, and under which handle, cannot be changed")
	case to.Status == "error" && to.Error == nil:
		return errors.New("its result is an error and does not say which")
	}
	return nil
}

// catalog returns the tools of a changed catalog, each once: those that were there, and
// those that are known.
func catalog(was, to []CatalogItem, known func(string) bool) []CatalogItem {
	there, taken := map[string]CatalogItem{}, map[string]bool{}
	for _, item := range was {
		there[item.Name] = item
	}
	kept := []CatalogItem{}
	for _, item := range to {
		old, ok := there[item.Name]
		if taken[item.Name] || !ok && !known(item.Name) {
			continue
		}
		taken[item.Name] = true
		if ok {
			item.Source = old.Source
		}
		kept = append(kept, item)
	}
	return kept
}
