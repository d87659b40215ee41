package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed memory_read.md
var memoryReadText string

//go:embed memory_append.md
var memoryAppendText string

const (
	scopeSchema        = `"scope":{"type":"string","enum":["project","local","user"]}`
	memoryReadSchema   = `{"type":"object","properties":{` + scopeSchema + `},"additionalProperties":false}`
	memoryAppendSchema = `{"type":"object","properties":{"note":{"type":"string","minLength":1,"maxLength":2000},` + scopeSchema +
		`},"required":["note"],"additionalProperties":false}`
)

// Notebook is where an agent keeps notes for later sessions, by scope: project, local
// or user. Its functions are required, and safe for concurrent use.
type Notebook struct {
	// Read returns the notes of a scope as data between labels; "" = there are none.
	Read func(scope string) (string, error)

	// Path returns the file that they stand in.
	Path func(scope string) (string, error)

	Append func(scope, note string) error
}

// MemoryAppend is the name of the tool that adds notes.
const MemoryAppend = "memory__append"

// Memory returns memory__read and [MemoryAppend].
func Memory(n Notebook) []agent.Tool {
	return []agent.Tool{
		kit.Tool{
			About: agent.Spec{
				Name: "memory__read", Description: kit.Describe(memoryReadText), Input: json.RawMessage(memoryReadSchema),
				Class: agent.Read, Group: "planning", Risk: agent.RiskLow,
			},
			Touches: n.reads, Does: n.read,
		},
		kit.Tool{
			About: agent.Spec{
				Name: MemoryAppend, Description: kit.Describe(memoryAppendText), Input: json.RawMessage(memoryAppendSchema),
				Class: agent.Unsafe, Group: "planning", Risk: agent.RiskMedium,
			},
			Touches: n.writes, Does: n.add,
		},
	}
}

type memoryInput struct {
	Note  string `json:"note"`
	Scope string `json:"scope"`
}

// reads names the files in the project. Those in the user's folder are the program's
// own, which the user has not to be asked about.
func (n Notebook) reads(_ agent.ToolContext, c agent.Call) (e agent.Effects, err error) {
	in, err := kit.Decode[memoryInput](c)
	if err != nil {
		return e, err
	}
	for _, scope := range scopes(in.Scope) {
		path, err := n.Path(scope)
		if err != nil {
			return e, err
		}
		if scope != "user" {
			e.Reads = append(e.Reads, path)
		}
	}
	return e, nil
}

func (n Notebook) read(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := kit.Decode[memoryInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	var all []string
	for _, scope := range scopes(in.Scope) {
		text, err := n.Read(scope)
		if err != nil && in.Scope != "" {
			return agent.Result{}, err
		}
		if err == nil && text != "" {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return agent.OK("There are no notes."), nil
	}
	return agent.OK(strings.Join(all, "\n\n")), nil
}

func (n Notebook) writes(_ agent.ToolContext, c agent.Call) (e agent.Effects, err error) {
	in, err := kit.Decode[memoryInput](c)
	if err != nil {
		return e, err
	}
	path, err := n.Path(scopes(in.Scope)[0])
	if err != nil {
		return e, err
	}
	return agent.Effects{Writes: []string{path}}, nil
}

func (n Notebook) add(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := kit.Decode[memoryInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	scope := scopes(in.Scope)[0]
	if err := n.Append(scope, in.Note); err != nil {
		return agent.Result{}, err
	}
	return agent.OK(fmt.Sprintf("Noted for later sessions (%s).", scope)), nil
}

// scopes are those that a call means.
func scopes(one string) []string {
	if one != "" {
		return []string{one}
	}
	return []string{"project", "local", "user"}
}
