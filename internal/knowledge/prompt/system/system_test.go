package system

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/workspace"
)

// newExtension knows the models "small", "large" and "none", of which the last is not there, and
// the kind of work "code".
func newExtension(t *testing.T, file string) *Extension {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := os.WriteFile(filepath.Join(dir, "code.md"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Extension{
		Dir: dir, Workdir: t.TempDir(),
		Work: func(string) (prompt.Work, error) {
			return prompt.Work{Profile: agent.Profile{Name: "code", Kind: "code"}}, nil
		},
		Model: func(name string) (agent.ModelInfo, error) {
			window, ok := map[string]int{"small": 3200, "large": 200_000}[name]
			if !ok {
				return agent.ModelInfo{}, errors.New("there is no such model")
			}
			return agent.ModelInfo{ID: name, Window: window}, nil
		},
		UsualModel: func(string) string { return "large" },
		Place:      func(*workspace.Workspace) (bool, string) { return true, "bash" },
		Tools: func(string, agent.Profile) ([]agent.Spec, map[string]string, error) {
			return []agent.Spec{{Name: "file-system__read", Description: "reads"}}, map[string]string{"file-system__read": "Read"}, nil
		},
		Count: func(string) func(string) int { return func(s string) int { return len(s) / 3 } },
		Fixed: func(string, agent.Spec) int { return 7 },
	}
}

// Of the texts that replace what dure says of itself, the first counts; what is added follows.
func TestTextsOfTheUser(t *testing.T) {
	flag := "Flag."
	for _, tt := range []struct {
		file         string
		flag         *string
		set          string
		want         string
		replaces     bool
		isAFileWrong bool
	}{
		{want: "Append.\n\nAdded."},
		{file: "File.", want: "File.\n\nAppend.\n\nAdded."},
		{file: "---\nmode: replace\n---\nFile.", want: "File.\n\nAppend.\n\nAdded.", replaces: true},
		{file: "---\nmode: replace\n---\nFile.", set: "Set.", want: "Set.\n\nAppend.\n\nAdded.", replaces: true},
		{file: "File.", set: "Set.", flag: &flag, want: "Flag.\n\nFile.\n\nAppend.\n\nAdded.", replaces: true},
		{file: "---\nmode: other\n---\n", isAFileWrong: true},
	} {
		x := newExtension(t, tt.file)
		x.Flag, x.Added = tt.flag, "Added."
		text, replace, err := x.text(prompt.Work{Profile: agent.Profile{Name: "code"}, Prompt: tt.set, Append: "Append."})
		if p := agent.ProblemOf(err); tt.isAFileWrong != (p != nil && p.Code == agent.ProblemSettings) || text != tt.want || replace != tt.replaces {
			t.Errorf("%q: %q, %v, %v", tt.file, text, replace, err)
		}
	}
}

// A session that goes over to a model whose window is too small keeps its prompt.
func TestPromptOfAnotherModel(t *testing.T) {
	x := newExtension(t, "")
	ws, err := workspace.New(workspace.Config{Root: x.Workdir})
	if err != nil {
		t.Fatal(err)
	}
	s := Session{Work: prompt.Work{Profile: agent.Profile{Name: "code", Model: "large"}}, Dir: x.Workdir, Workspace: ws}
	write, err := x.Write(s)
	if err != nil {
		t.Fatal(err)
	}
	first, small := write(time.Now(), "large"), write(time.Now(), "small")
	if len(small) >= len(first) || prompt.Hash(write(time.Now(), "none")) != prompt.Hash(first) {
		t.Errorf("%d sections, %d of a small model", len(first), len(small))
	}
	s.Agent = strings.Repeat("You sing. ", 1000)
	if write, err = x.Write(s); err != nil || prompt.Hash(write(time.Now(), "small")) != prompt.Hash(write(time.Now(), "large")) {
		t.Errorf("with a text of an agent: %v", err)
	}
	s.Work.Model = "small"
	_, err = x.Write(s)
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemPrompt || !strings.Contains(p.Message, "has room for 400") {
		t.Errorf("what does not fit: %v", err)
	}
}

// The preview has what a session would have.
func TestPreview(t *testing.T) {
	x := newExtension(t, "File.")
	r, err := x.preview(t.Context(), query.PromptPreview{Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := (query.PromptTool{Name: "Read", Description: "reads", Tokens: 7}); len(r.Tools) != 1 || r.Tools[0] != want {
		t.Errorf("tools %+v", r.Tools)
	}
	if r.Profile != "code" || r.Model != "large" || r.Budget != 25_000 || r.Path != filepath.Join(x.Dir, "code.md") || r.Hash == "" {
		t.Errorf("%+v", r)
	}
	if r, err = x.preview(t.Context(), query.PromptPreview{Model: "small"}); err != nil || r.Budget != 400 || r.Tokens > r.Budget || r.Tools != nil {
		t.Errorf("in a small window: %d of %d tokens, %v", r.Tokens, r.Budget, err)
	}
	for _, q := range []query.PromptPreview{{Model: "none"}, {Workdir: filepath.Join(x.Dir, "nowhere")}} {
		if _, err := x.preview(t.Context(), q); err == nil {
			t.Errorf("%+v is previewed", q)
		}
	}
}
