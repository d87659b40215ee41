package sdk

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/state/transcript"
)

// maxRead is how much of a file is read for a host: more is no line that every host reads.
const maxRead = 512 << 10

// rewound is what came, or would come, of putting files back.
type rewound struct {
	Can     bool     `json:"canRewind"`
	Error   string   `json:"error,omitempty"`
	Files   []string `json:"filesChanged,omitempty"`
	Added   *int     `json:"insertions,omitempty"`
	Removed *int     `json:"deletions,omitempty"`
	Skipped int      `json:"skippedLinks,omitempty"`
}

// input notes which event a message of the user has become.
func (h *Host) input(e agent.Event, b agent.InputAdded) {
	if h.inputs == nil {
		h.inputs = map[string]int64{}
	}
	h.inputs[transcript.InputID(b.Input, e.ID)] = e.Seq
}

// rewindFiles puts the files back to how they were before the turn of a message.
func (h *Host) rewindFiles(in struct {
	ID  string `json:"user_message_id"`
	Dry bool   `json:"dry_run"`
},
) (any, error) {
	to, ok := h.inputs[in.ID]
	if !ok {
		return rewound{Error: fmt.Sprintf("this session has no message %q of the user", in.ID)}, nil
	}
	if !in.Dry && h.show.busy() {
		return rewound{Error: "a turn is running: files are put back between turns"}, nil
	}
	c, s, id, dir := h.prog.Client, h.sess, h.session, h.prog.Workdir
	return slow(func(ctx context.Context) (any, error) {
		plan, err := client.Query[query.RewindPlan](ctx, c, query.PlanRewind{Session: id, To: to})
		if err != nil {
			return rewound{Error: err.Error()}, nil
		}
		out := rewound{Can: true, Files: []string{}, Added: &plan.Added, Removed: &plan.Removed}
		for _, f := range plan.Files {
			switch {
			case f.Conflict == "" || f.Forced:
				out.Files = append(out.Files, filepath.Join(dir, filepath.FromSlash(f.Path)))
			case f.Kind == "link" || f.KindWas == "link":
				out.Skipped++
			}
		}
		if in.Dry {
			return out, nil
		}
		if err := s.Send(ctx, agent.Rewind{To: to, Files: true}); err != nil {
			return rewound{Error: err.Error()}, nil
		}
		return out, nil
	}), nil
}

// readFile reads a file of the workspace.
func (h *Host) readFile(in struct {
	Path     string `json:"path"`
	Most     int64  `json:"max_bytes"`
	Encoding string `json:"encoding"`
},
) (any, error) {
	switch {
	case in.Path == "":
		return nil, errors.New("path is empty")
	case in.Encoding != "" && in.Encoding != "utf-8" && in.Encoding != "base64":
		return nil, fmt.Errorf("there is no encoding %q; there are utf-8 and base64", in.Encoding)
	}
	p, id := h.prog.API, h.session
	if in.Most <= 0 || in.Most > maxRead {
		in.Most = maxRead
	}
	return slow(func(context.Context) (any, error) {
		f, err := p.ReadFile(id, in.Path, in.Most)
		if err != nil {
			return nil, err
		}
		out := map[string]any{"absPath": f.Path}
		if f.Cut {
			out["truncated"] = true
		}
		if in.Encoding == "base64" {
			out["contents"], out["encoding"] = base64.StdEncoding.EncodeToString(f.Data), "base64"
			return out, nil
		}
		words := string(f.Data)
		if f.Cut { // a character may have been cut in two
			for i := 0; i < utf8.UTFMax && !utf8.ValidString(words); i++ {
				words = words[:max(0, len(words)-1)]
			}
			if !utf8.ValidString(words) {
				words = string(f.Data)
			}
		}
		if !utf8.ValidString(words) {
			words, out["lossy"] = strings.ToValidUTF8(words, "\uFFFD"), true
		}
		out["contents"] = words
		return out, nil
	}), nil
}

// seedRead notes that the host has shown a file to the model before the session began.
func (h *Host) seedRead(in struct {
	Path  string   `json:"path"`
	Mtime *float64 `json:"mtime"`
},
) (any, error) {
	if in.Mtime == nil || *in.Mtime < 0 || *in.Mtime > 1e15 {
		return nil, errors.New("mtime has to be a number of milliseconds")
	}
	p, id, at := h.prog.API, h.session, time.UnixMilli(int64(*in.Mtime))
	return slow(func(context.Context) (any, error) { return empty{}, p.SawFile(id, in.Path, at) }), nil
}

// suggestFiles completes the name of a file behind an @.
func (h *Host) suggestFiles(in struct {
	Query string `json:"query"`
},
) (any, error) {
	return reports(h, query.CompleteMention{Session: h.session, Typed: in.Query}, func(_ context.Context, list []string) any {
		type suggestion struct {
			Path string `json:"path"`
		}
		out := []suggestion{}
		for _, path := range list {
			out = append(out, suggestion{path})
		}
		return map[string]any{"suggestions": out}
	})
}
