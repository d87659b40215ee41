package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed move.md
var moveText string

type moveInput struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Overwrite   bool   `json:"overwrite"`
}

// mover is the tool that moves. It is an [agent.Checker].
type mover struct {
	kit.Tool
	f *files
}

// moving is a move that has been checked.
type moving struct {
	from, to *spot
	over     fs.FileInfo // the file that is replaced, or nil
}

func (f *files) move() agent.Tool {
	return mover{f: f, Tool: kit.Tool{
		About: agent.Spec{
			Name:        "file-system__move",
			Description: kit.Describe(moveText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"source":{"type":"string"},"destination":{"type":"string"},"overwrite":{"type":"boolean"}},` +
				`"required":["source","destination"],"additionalProperties":false}`),
			Class: agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
			Aliases: map[string]string{"from": "source", "to": "destination", "src": "source", "dest": "destination", "old_path": "source", "new_path": "destination"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			m, err := f.prepareMove(context.Background(), tc, c)
			if err != nil {
				return agent.Effects{}, err
			}
			f.settle(c, m.from)
			f.pins.Set(c.ID+"\x00"+m.to.path, m.to.place)
			return agent.Effects{Writes: append(m.from.paths(m.from.path), m.from.paths(m.to.path)...)}, nil
		},
		Does: f.runMove,
	}}
}

func (f *files) prepareMove(ctx context.Context, tc agent.ToolContext, c agent.Call) (*moving, error) {
	in, err := kit.Decode[moveInput](c)
	if err != nil {
		return nil, err
	}
	from, err := f.spot(ctx, tc, in.Source)
	if err != nil {
		return nil, err
	}
	to, err := f.bareSpot(tc, in.Destination)
	if err != nil {
		return nil, err
	}
	m := &moving{from: from, to: to}
	if from.place == to.place {
		return nil, kit.Refuse(agent.ErrInput, "source and destination are the same", "Give another destination.")
	}
	if rel, err := filepath.Rel(from.place, to.place); err == nil && filepath.IsLocal(rel) && from.info.IsDir() {
		return nil, kit.Refuse(agent.ErrInput, kit.Name(to.path)+" is inside of what is moved", "Give a destination outside of it.")
	}
	if to.info == nil || f.Workspace.Key(from.place) == f.Workspace.Key(to.place) && os.SameFile(from.info, to.info) {
		to.info = nil // free, or the same name in other letters
		return m, nil
	}
	switch {
	case to.info.IsDir():
		return nil, kit.Refuse(ErrFileExists, kit.Name(to.path)+" is an existing folder", "Name the new path in full, such as "+kit.Name(filepath.Join(to.path, filepath.Base(from.path)))+".")
	case !in.Overwrite:
		return nil, kit.Refuse(ErrFileExists, kit.Name(to.path)+" exists already", "Give another destination, or set overwrite to replace it.")
	case !to.info.Mode().IsRegular() || from.info.IsDir():
		return nil, kit.Refuse(ErrFileType, "only a file can replace a file, and only a regular one", "Move or delete "+kit.Name(to.path)+" first.")
	}
	m.over = to.info
	return m, f.knows(ctx, tc, to)
}

// knows checks that the session has read the file that is going to be replaced.
func (f *files) knows(ctx context.Context, tc agent.ToolContext, s *spot) error {
	data, info, err := f.load(ctx, s.place)
	var now workspace.State
	switch {
	case errors.Is(err, errLarge):
		now = workspace.State{Size: info.Size(), ModTime: info.ModTime()}
	case err != nil:
		return f.explain(tc, s.path, err)
	default:
		now = workspace.StateOf(info, data)
	}
	return f.seen(&change{path: s.path, resolved: s.place, info: s.info, old: now}, &workspace.Text{})
}

func (f *files) runMove(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	m, err := f.prepareMove(ctx, tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	if err := f.settled(c, m.from); err != nil {
		return agent.Result{}, err
	}
	if _, moved := f.pins.Moved(c.ID+"\x00"+m.to.path, m.to.place); moved {
		return agent.Result{}, kit.Refuse(ErrFileChanged, kit.Name(m.to.path)+" leads elsewhere than when the call was decided", "Name the folder itself rather than a link to it.")
	}
	err = f.Workspace.Move(ctx, m.from.place, m.to.place, workspace.MoveOptions{Old: m.from.info, Over: m.over, Key: agent.CallEnvOf(ctx).Key})
	switch {
	case errors.Is(err, fs.ErrExist):
		return agent.Result{}, kit.Refuse(ErrFileExists, kit.Name(m.to.path)+" exists by now", "Give another destination, or set overwrite to replace it.")
	case err != nil:
		return agent.Result{}, f.explain(tc, m.from.path, err)
	}
	return f.moved(tc, m), nil
}

func (f *files) moved(tc agent.ToolContext, m *moving) agent.Result {
	text := fmt.Sprintf("Moved %s to %s (%s)", shown(tc, m.from.path), shown(tc, m.to.path), m.from.counted())
	if m.over != nil {
		text += ", replacing the file that was there"
		f.Tracker.Forget(m.to.place)
	}
	r := agent.OK(text + ".")
	r.Files = f.states(m.from, m.to.place)
	r.Output = kit.Structured(struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
		Entries     int    `json:"entries"`
		Bytes       int64  `json:"bytes"`
		Replaced    bool   `json:"replaced"`
	}{m.from.path, m.to.path, len(m.from.below), m.from.bytes, m.over != nil})
	return r
}

// Mark implements [agent.Checker].
func (m mover) Mark(ctx context.Context, tc agent.ToolContext, c agent.Call) (json.RawMessage, error) {
	mv, err := m.f.prepareMove(ctx, tc, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return kit.Structured(spotMark{}), nil
	}
	mark := spotMark{Place: mv.from.place, To: mv.to.place, Digest: mv.from.named("")}
	if mv.over != nil {
		mark.Over = m.f.digestAt(ctx, tc, mv.to.place)
	}
	return kit.Structured(mark), nil
}

// named is the digest of an entry under another name.
func (s *spot) named(place string) string {
	other := *s
	other.place = place
	return other.digest()
}

// digestAt returns the digest of what is at a place, but for its name; "" when
// there is nothing, or it cannot be told.
func (f *files) digestAt(ctx context.Context, tc agent.ToolContext, place string) string {
	s, err := f.spot(ctx, tc, place)
	if err != nil {
		return ""
	}
	return s.named("")
}

// Probe implements [agent.Checker]. When both names are taken, a move across
// file systems was cut short behind its copy, or somebody else was at work:
// nobody can tell.
func (m mover) Probe(ctx context.Context, tc agent.ToolContext, _ agent.Call, raw json.RawMessage) (agent.Probe, agent.Result, error) {
	var mark spotMark
	if err := json.Unmarshal(raw, &mark); err != nil {
		return agent.ProbeUnknown, agent.Result{}, fmt.Errorf("reading the mark: %w", err)
	}
	if mark.Place == "" {
		return agent.ProbeNotDone, agent.Result{}, nil
	}
	from, to := m.f.digestAt(ctx, tc, mark.Place), m.f.digestAt(ctx, tc, mark.To)
	switch {
	case from == mark.Digest && to == mark.Over:
		return agent.ProbeNotDone, agent.Result{}, nil
	case from == "" && to == mark.Digest && m.f.gone(mark.Place):
		s, err := m.f.spot(ctx, tc, mark.To)
		if err != nil {
			return agent.ProbeUnknown, agent.Result{}, nil
		}
		s.place = mark.Place // where it was
		r := agent.OK(fmt.Sprintf("%s was moved to %s before the program was interrupted.", shown(tc, mark.Place), shown(tc, mark.To)))
		r.Files = m.f.states(s, mark.To)
		return agent.ProbeDone, r, nil
	}
	return agent.ProbeUnknown, agent.Result{}, nil
}

func (f *files) gone(place string) bool {
	_, err := f.Workspace.Lstat(place)
	return errors.Is(err, fs.ErrNotExist)
}
