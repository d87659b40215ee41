package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dure/internal/frontend/text"
	"dure/internal/prooftest"
)

// isolated is an environment of its own, with a session that has a title.
func isolated(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DURE_HOME=" + filepath.Join(dir, "dure"), "LANG=C.UTF-8",
		"ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "GORACE=" + atOnce,
	}
}

// completed is what a shell would offer behind a line.
func completed(t *testing.T, env []string, words ...string) []string {
	t.Helper()
	cmd := exec.Command("dure", append([]string{"__complete"}, words...)...)
	cmd.Env, cmd.Dir = env, t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begun := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, &stderr)
	}
	const patience = 60 * time.Second // of a machine with other things to do
	if took := time.Since(begun); took > patience {
		t.Errorf("%q took %v", words, took)
	}
	if s := stderr.String(); !strings.HasPrefix(s, "Completion ended with directive") {
		t.Errorf("%q says %q", words, s)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[:len(lines)-1] // the last one is the directive
}

func TestComplete(t *testing.T) {
	t.Parallel()
	env := isolated(t)
	// A session whose request fails is a session all the same.
	cmd := exec.Command("dure", "-p", "--session-id", "s-one", "--name", "첫 세션\x1b[2J", "--model", "sonnet", "--settings", `{"limits": {"retries": 1}}`, "hello")
	cmd.Env, cmd.Dir = env, t.TempDir()
	if err := cmd.Run(); err == nil {
		t.Fatal("nobody answers, and it went well")
	}
	for _, tt := range []struct {
		words []string
		want  []string // all of them, or with "…" in front, some of them
	}{
		{[]string{"-r", ""}, []string{"s-one\t첫 세션␛[2J"}},
		{[]string{"--resume=s"}, []string{"s-one\t첫 세션␛[2J"}},
		{[]string{"show", "s-"}, []string{"s-one\t첫 세션␛[2J"}},
		{[]string{"show", "s-one", ""}, []string{""}},
		{[]string{"--model", "anthropic/claude-opus-5-"}, []string{"anthropic/claude-opus-5-5\tClaude Opus 5.5"}},
		{[]string{"--model", "OPU"}, []string{"opus\tClaude Opus 5.5"}},
		{[]string{"--fallback-model", "sonnet,hai"}, []string{"sonnet,haiku\tClaude Haiku 5.5"}},
		{[]string{"--profile", ""}, []string{"chat", "cowork", "code", "finance"}},
		{[]string{"--permission-mode", "p"}, []string{"plan"}},
		{[]string{"--allow", "Bash,Gre"}, []string{"Bash,Grep"}},
		{[]string{"--deny", "No"}, []string{"NotebookEdit"}},
		{[]string{"--output-format", ""}, []string{"text", "json", "ndjson"}},
		{[]string{"login", "an"}, []string{"anthropic"}},
		{[]string{"logout", "o"}, []string{"openai", "openrouter", "ollama"}},
		{[]string{"models", "test", "hai"}, []string{"haiku\tClaude Haiku 5.5"}},
		{[]string{"usage", "--by", ""}, []string{"day", "model", "project", "session"}},
		{[]string{"completion", "f"}, []string{"fish"}},
		{[]string{"help", "models", ""}, []string{"test\task a model for one word"}},
		{[]string{"demo", "--wire", ""}, []string{"anthropic", "chat", "responses", "gemini"}},
	} {
		got := completed(t, env, tt.words...)
		if len(got) == 0 {
			got = []string{""}
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q: %s", tt.words, d)
		}
	}
}

// Broken settings complete nothing, and say nothing.
func TestCompleteSilently(t *testing.T) {
	env := append(isolated(t), "DURE_HOME=/dev/null/x")
	if got := completed(t, env, "show", ""); len(got) != 0 {
		t.Errorf("there is %q", got)
	}
}

// Every shell gets a script, and bash runs its own.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, s := range shells {
		cmd := exec.Command("dure", "completion", s.name)
		cmd.Env = isolated(t)
		out, err := cmd.Output()
		if err != nil || !bytes.Contains(out, []byte("__complete")) {
			t.Errorf("%s: %v, %d bytes", s.name, err, len(out))
		}
	}
	bash := prooftest.Program(t, "bash")
	const ask = `source <(dure completion bash)
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
_init_completion() { _get_comp_words_by_ref; }
__ltrim_colon_completions() { :; }
compopt() { :; }
COMP_WORDS=(dure --permission-mode acc); COMP_CWORD=2; COMP_LINE="dure --permission-mode acc"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_dure
printf '%s\n' "${COMPREPLY[@]}"`
	cmd := exec.Command(bash, "-c", ask)
	cmd.Env = isolated(t)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "acceptEdits" {
		t.Errorf("bash completes %q: %v", got, err)
	}
}

// The manual page names every command and flag in both languages, and holds
// nothing that roff would take for a command.
func TestManual(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"en", "ko"} {
		p := &program{text: text.For(lang)}
		root := p.root()
		page := string(p.manual(root))
		if !utf8.ValidString(page) {
			t.Errorf("%s: it is no UTF-8", lang)
		}
		for _, want := range []string{".TH DURE 1", `\-\-fallback\-model`, "dure models test", `\-\-since`, ".B 130"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: %s is missing", lang, want)
			}
		}
		for line := range strings.Lines(page) {
			if line[0] == '.' && !slices.Contains([]string{"TH", "SH", "TP", "PP", "B", "RS", "RE", "br"}, strings.Fields(line[1:])[0]) {
				t.Errorf("%s: %q is a command of roff", lang, line)
			}
		}
		groff, err := exec.LookPath("groff")
		if err != nil {
			continue
		}
		cmd := exec.Command(groff, "-K", "utf8", "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = strings.NewReader(page)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: groff says %s: %v", lang, out, err)
		}
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".TH x": `\&.TH x`, "'br": `\&'br`, `a\b`: `a\eb`, "--flag": `\-\-flag`, "two\nlines": "two lines", `say "x"`: `say \(dqx\(dq`, "한글": "한글",
	} {
		if got := roff(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestSinceOf(t *testing.T) {
	now := time.Date(2026, 3, 10, 15, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		in, want string
		ok       bool
	}{
		{"", "", true},
		{"12h", "2026-03-10T03:00:00Z", true},
		{"7d", "2026-03-03T15:00:00Z", true},
		{"2w", "2026-02-24T15:00:00Z", true},
		{"2026-01-31", "2026-01-31T00:00:00Z", true},
		{"0d", "2026-03-10T15:00:00Z", true},
		{"yesterday", "", false},
		{"-1d", "", false},
		{"7", "", false},
		{"d", "", false},
		{"7dd", "", false},
		{"07d", "", false},
		{"99999999d", "", false},
		{"2026-13-01", "", false},
	} {
		if got, ok := sinceOf(tt.in, now); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %q, %v", tt.in, got, ok)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for _, tt := range []struct {
		args string
		want bool
	}{
		{"sessions --json", true},
		{"-p --output-format json x", true},
		{"-p --output-format=ndjson x", true},
		{"-p --output-format text x", false},
		{"-p -- --json", false},
		{"sessions", false},
		{"sessions --bad --json", true},
	} {
		if got := wantsJSON(strings.Fields(tt.args)); got != tt.want {
			t.Errorf("%q: %v", tt.args, got)
		}
	}
}
