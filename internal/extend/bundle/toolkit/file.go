package toolkit

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/files"
	"dure/internal/tools/kit"
)

// usualRead is how many bytes are read where nothing else is said.
const usualRead = 100_000

const encodingSchema = `"encoding":{"type":"string","enum":["utf8","utf-8","base64","hex"]}`

type readInput struct {
	Path     string     `json:"path"`
	Encoding string     `json:"encoding"`
	MaxBytes *kit.Whole `json:"maxBytes"`
}

type readAnswer struct {
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	Truncated bool   `json:"truncated"`
	Content   string `json:"content"`
}

type writeInput struct {
	Path     string  `json:"path"`
	Content  *string `json:"content"`
	Encoding string  `json:"encoding"`
}

type writeAnswer struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Written bool   `json:"written"`
}

// pin returns the path that the model means, and remembers where it leads.
func (t *tools) pin(tc agent.ToolContext, c agent.Call, path string) (string, error) {
	abs, resolved, err := t.place(tc, path)
	if err == nil {
		t.pins.Set(c.ID, resolved)
	}
	return abs, err
}

func (t *tools) place(tc agent.ToolContext, path string) (abs, resolved string, err error) {
	if path == "" {
		return "", "", kit.Refuse(agent.ErrInput, "the path is empty", "Name a file.")
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok && t.Home != "" {
		path = filepath.Join(t.Home, rest)
	}
	if abs, err = kit.Path(tc, t.Workspace.Root(), path); err != nil {
		return "", "", err
	}
	if _, resolved, err = t.Workspace.Resolve(abs); err != nil {
		return "", "", explain(abs, err)
	}
	return abs, resolved, nil
}

// arrive is where the path of a call led when that was decided about.
func (t *tools) arrive(tc agent.ToolContext, c agent.Call, path string) (abs, resolved string, err error) {
	if abs, resolved, err = t.place(tc, path); err != nil {
		return "", "", err
	}
	if _, moved := t.pins.Moved(c.ID, resolved); moved {
		return "", "", kit.Refuse(files.ErrFileChanged, kit.Name(abs)+" leads elsewhere than when the call was decided", "Name the file itself rather than a link to it.")
	}
	return abs, resolved, nil
}

func explain(path string, err error) error {
	if errors.Is(err, workspace.ErrNoFolder) {
		return kit.Refuse(files.ErrFileType, "a file stands where "+kit.Name(path)+" needs a folder", "Name another path.")
	}
	return files.Explain(path, err)
}

func (t *tools) read() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: "Reads a file: a text as it is (utf8), or bytes in base64 or hex.", Class: agent.Read, Group: "files", Risk: agent.RiskLow,
			Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},` + encodingSchema + `,"maxBytes":{"type":"integer","minimum":0,"description":"100000 unless it says otherwise"}},"required":["path"],"additionalProperties":false}`),
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[readInput](c)
			if err != nil {
				return agent.Effects{}, err
			}
			path, err := t.pin(tc, c, in.Path)
			return agent.Effects{Reads: []string{path}}, err
		},
		Does: func(_ context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[readInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			abs, resolved, err := t.arrive(tc, c, in.Path)
			if err != nil {
				return agent.Result{}, err
			}
			most := int64(usualRead)
			if in.MaxBytes != nil {
				most = max(0, min(int64(*in.MaxBytes), workspace.MaxText))
			}
			f, err := t.Workspace.Open(resolved)
			if err != nil {
				return agent.Result{}, explain(abs, err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return agent.Result{}, explain(abs, err)
			}
			data, err := io.ReadAll(io.LimitReader(f, most+1))
			if err != nil {
				return agent.Result{}, explain(abs, err)
			}
			got := readAnswer{Path: abs, Size: info.Size(), Truncated: int64(len(data)) > most}
			if got.Truncated {
				data = data[:most]
			}
			if got.Content, err = encoded(data, in.Encoding, got.Truncated); err != nil {
				return agent.Result{}, kit.Refuse(files.ErrFileBinary, kit.Name(abs)+" is no text", "Read it with the encoding base64 or hex.")
			}
			return answer(got), nil
		},
	}
}

// encoded is the content of a file as a model has it. Of a text that was cut, a character
// that was cut too is left out.
func encoded(data []byte, encoding string, cut bool) (string, error) {
	switch encoding {
	case "base64":
		return base64.StdEncoding.EncodeToString(data), nil
	case "hex":
		return hex.EncodeToString(data), nil
	}
	for n := range min(utf8.UTFMax, len(data)+1) {
		text, rest := data[:len(data)-n], data[len(data)-n:]
		if utf8.Valid(text) && (n == 0 || cut && !utf8.FullRune(rest)) {
			return string(text), nil
		}
	}
	return "", errors.New("not UTF-8")
}

func decoded(text, encoding string) ([]byte, error) {
	switch encoding {
	case "base64":
		return base64.StdEncoding.DecodeString(text)
	case "hex":
		return hex.DecodeString(text)
	}
	return []byte(text), nil
}

func (t *tools) write() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Description: "Writes a file, and makes its folders: a text as it is (utf8), or bytes that are given in base64 or hex.", Class: agent.Unsafe, Group: "files", Risk: agent.RiskMedium,
			Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},` + encodingSchema + `},"required":["path","content"],"additionalProperties":false}`),
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[writeInput](c)
			if err != nil {
				return agent.Effects{}, err
			}
			path, err := t.pin(tc, c, in.Path)
			return agent.Effects{Writes: []string{path}}, err
		},
		Does: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[writeInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			if in.Content == nil {
				return agent.Result{}, kit.Refuse(agent.ErrInput, "content is missing", `Give the whole content of the file; "" empties it.`)
			}
			data, err := decoded(*in.Content, in.Encoding)
			switch {
			case err != nil:
				return agent.Result{}, kit.Refuse(agent.ErrInput, "content is no "+in.Encoding+": "+err.Error(), "Give it in the encoding that you name.")
			case len(data) > workspace.MaxText:
				return agent.Result{}, kit.Refuse(agent.ErrInput, fmt.Sprintf("content is larger than %d MiB", workspace.MaxText>>20), "Make the file with a command.")
			case t.Masked(string(data)):
				return agent.Result{}, kit.Refuse(files.ErrFileMasked, "the text has a mask: it stands for a secret that you are not shown", "Leave it out, or ask the user to write the file.")
			}
			abs, resolved, err := t.arrive(tc, c, in.Path)
			if err != nil {
				return agent.Result{}, err
			}
			info, err := t.Workspace.Write(resolved, data, workspace.WriteOptions{Key: agent.CallEnvOf(ctx).Key})
			if err != nil {
				return agent.Result{}, explain(abs, err)
			}
			r := answer(writeAnswer{abs, info.Size(), true})
			r.Files = []agent.FileState{{Path: resolved, SHA256: workspace.Sum(data), Wrote: true}}
			return r, nil
		},
	}
}
