package toolkit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/tools/files"
	"dure/internal/tools/kit"
)

const (
	openText = `Begin to change the bundle that you are part of: its agents, prompts, tools and code. Its files are copied into a folder of the workspace; change them there with your file tools, then commit the changeset.`

	commitText = `Bring the files of a changeset back into the bundle, all or none. Nothing is written while the bundle would have mistakes, which you are told of, or when somebody has changed the same files meanwhile. What was committed counts when the bundle is started again.`
)

// powers is what a commit changes beside files.
const powers = "what the bundle has its agents, tools and code do"

type openInput struct {
	Reason string `json:"reason"`
}

type opened struct {
	ID     string `json:"changesetId"`
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Reason string `json:"reason,omitempty"`
}

type commitInput struct {
	ID      string `json:"changesetId"`
	Message string `json:"message"`
}

type committed struct {
	ID       string   `json:"changesetId"`
	Message  string   `json:"message,omitempty"`
	Written  []string `json:"written"`
	Removed  []string `json:"removed"`
	Warnings []string `json:"warnings,omitempty"`
	Counts   string   `json:"counts"`
}

// there refuses where a session has no bundle to change.
func (t *tools) there() error {
	if t.Changes == nil {
		return kit.Refuse(changeset.ErrUnknown, "there is no bundle to change here", "")
	}
	return nil
}

func (t *tools) open() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: openText, Class: agent.Unsafe, Group: "toolkit", Risk: agent.RiskMedium,
			Input: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","description":"what the change is for"}},"additionalProperties":false}`),
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			if err := t.there(); err != nil {
				return agent.Effects{}, err
			}
			_, err := kit.Decode[openInput](c)
			return agent.Effects{Writes: []string{t.Changes.Place("")}}, err
		},
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[openInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if err := t.there(); err != nil {
				return agent.Result{}, err
			}
			id, n, err := t.Changes.Open()
			if err != nil {
				return agent.Result{}, err
			}
			return answer(opened{ID: id, Folder: t.Changes.Place(id), Files: n, Reason: in.Reason}), nil
		},
	}
}

func (t *tools) commit() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: commitText, Class: agent.Unsafe, Group: "toolkit", Risk: agent.RiskHigh,
			Input: json.RawMessage(`{"type":"object","properties":{"changesetId":{"type":"string"},"message":{"type":"string","description":"what was changed, and why"}},"required":["changesetId"],"additionalProperties":false}`),
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			change, err := t.look(c)
			if err != nil {
				return agent.Effects{}, err
			}
			t.pins.Set(c.ID, change.Digest)
			return agent.Effects{Writes: append(change.Paths, t.Changes.Place(change.ID)), Powers: powers}, nil
		},
		Does: func(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[commitInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if err := t.there(); err != nil {
				return agent.Result{}, err
			}
			agreed, _ := t.pins.Moved(c.ID, "") // what is not known any more is agreed to by nobody
			change, err := t.Changes.Commit(ctx, in.ID, agreed)
			if err != nil {
				return agent.Result{}, err
			}
			done := committed{
				ID: in.ID, Message: in.Message, Written: change.Written(), Removed: change.Removed(),
				Counts: "when the bundle is started again; code that was changed is not run until then",
			}
			for _, p := range change.Warnings {
				done.Warnings = append(done.Warnings, changeset.Tell(p))
			}
			r := answer(done)
			r.Text = fmt.Sprintf("Committed %s.", in.ID)
			if len(done.Written) > 0 {
				r.Text += "\nWritten: " + strings.Join(done.Written, ", ")
			}
			if len(done.Removed) > 0 {
				r.Text += "\nRemoved: " + strings.Join(done.Removed, ", ")
			}
			r.Text += "\nIt counts " + done.Counts + "."
			return r, nil
		},
	}
}

// committing is the tool that commits: it says what it would change.
type committing struct {
	kit.Tool
	t *tools
}

// Preview returns what a call would change in the bundle, as it was planned; "" where that is
// more than is shown.
func (c committing) Preview(call agent.Call) string {
	change, err := c.t.look(call)
	if err != nil {
		return ""
	}
	if _, moved := c.t.pins.Moved(call.ID, change.Digest); moved {
		return ""
	}
	var b strings.Builder
	for name, content := range change.Contents() {
		if !utf8.Valid(content.Old) || !utf8.Valid(content.New) {
			fmt.Fprintf(&b, "%s: %d bytes, no text\n", name, len(content.New))
			continue
		}
		if len(content.Old)+len(content.New) > files.MaxPreviewed {
			return ""
		}
		b.Write(diff.Diff(name, content.Old, name, content.New))
		if b.Len() > files.MaxPreview {
			return ""
		}
	}
	return b.String()
}

func (t *tools) look(c agent.Call) (*changeset.Change, error) {
	in, err := kit.Decode[commitInput](c)
	if err != nil {
		return nil, err
	}
	if err := t.there(); err != nil {
		return nil, err
	}
	return t.Changes.Look(in.ID)
}
