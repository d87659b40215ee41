package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed delete.md
var deleteText string

type deleteInput struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}

// remover is the tool that removes. It is an [agent.Checker].
type remover struct {
	kit.Tool
	f *files
}

func (f *files) delete() agent.Tool {
	return remover{f: f, Tool: kit.Tool{
		About: agent.Spec{
			Name:        "file-system__delete",
			Description: kit.Describe(deleteText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"},"recursive":{"type":"boolean"}},` +
				`"required":["path"],"additionalProperties":false}`),
			Class: agent.Checkable, Group: "files", Risk: agent.RiskHigh, Limit: fileLimit,
			Aliases: map[string]string{"file_path": "path", "file": "path", "filePath": "path"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			s, err := f.prepareDelete(context.Background(), tc, c)
			if err != nil {
				return agent.Effects{}, err
			}
			f.settle(c, s)
			return agent.Effects{Writes: s.paths(s.path)}, nil
		},
		Does: f.runDelete,
	}}
}

func (f *files) prepareDelete(ctx context.Context, tc agent.ToolContext, c agent.Call) (*spot, error) {
	in, err := kit.Decode[deleteInput](c)
	if err != nil {
		return nil, err
	}
	s, err := f.bareSpot(tc, in.Path)
	if err != nil {
		return nil, err
	}
	if s.info != nil && s.info.IsDir() && !in.Recursive {
		return nil, kit.Refuse(ErrFileType, kit.Name(s.path)+" is a folder", "Set recursive to remove it with all that is in it.")
	}
	return f.spot(ctx, tc, in.Path)
}

func (f *files) runDelete(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	s, err := f.prepareDelete(ctx, tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	if err := f.settled(c, s); err != nil {
		return agent.Result{}, err
	}
	if err := f.Workspace.Remove(s.place, s.info, agent.CallEnvOf(ctx).Key); err != nil {
		return agent.Result{}, f.explain(tc, s.path, err)
	}
	r := agent.OK(fmt.Sprintf("Removed %s (%s).", shown(tc, s.path), s.counted()))
	r.Files = f.states(s, "")
	r.Output = kit.Structured(struct {
		Path    string `json:"path"`
		Entries int    `json:"entries"`
		Bytes   int64  `json:"bytes"`
	}{s.path, len(s.below), s.bytes})
	return r, nil
}

// spotMark is what is stored before an entry is removed or moved.
type spotMark struct {
	Place  string `json:"place,omitempty"` // "" = the call was going to fail
	To     string `json:"to,omitempty"`
	Digest string `json:"digest,omitempty"`
	Over   string `json:"over,omitempty"` // digest of what is replaced
}

// Mark implements [agent.Checker].
func (r remover) Mark(ctx context.Context, tc agent.ToolContext, c agent.Call) (json.RawMessage, error) {
	s, err := r.f.prepareDelete(ctx, tc, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return kit.Structured(spotMark{}), nil
	}
	return kit.Structured(spotMark{Place: s.place, Digest: s.digest()}), nil
}

// Probe implements [agent.Checker]. An entry leaves its name at once, so it is
// there as it was, or gone.
func (r remover) Probe(ctx context.Context, tc agent.ToolContext, _ agent.Call, raw json.RawMessage) (agent.Probe, agent.Result, error) {
	var m spotMark
	if err := json.Unmarshal(raw, &m); err != nil {
		return agent.ProbeUnknown, agent.Result{}, fmt.Errorf("reading the mark: %w", err)
	}
	if m.Place == "" {
		return agent.ProbeNotDone, agent.Result{}, nil
	}
	gone, err := r.f.Workspace.Removed(m.Place, agent.CallEnvOf(ctx).Key)
	switch {
	case err != nil:
		return agent.ProbeUnknown, agent.Result{}, err
	case gone:
		r.f.Tracker.Forget(m.Place)
		done := agent.OK(shown(tc, m.Place) + " was removed before the program was interrupted.")
		done.Files = []agent.FileState{{Path: m.Place, Gone: true}}
		return agent.ProbeDone, done, nil
	}
	if s, err := r.f.spot(ctx, tc, m.Place); err != nil || s.digest() != m.Digest {
		return agent.ProbeUnknown, agent.Result{}, nil
	}
	return agent.ProbeNotDone, agent.Result{}, nil
}
