//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dure/internal/frontend/text"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// actionStep is a step of an action or of a job.
type actionStep struct {
	ID   string            `yaml:"id"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	With map[string]string `yaml:"with"`
	Env  map[string]string `yaml:"env"`
}

// action is examples/github-action/action.yml.
type action struct {
	Inputs map[string]struct {
		Required bool   `yaml:"required"`
		Default  string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Value string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []actionStep `yaml:"steps"`
	} `yaml:"runs"`
}

// workflow is examples/github-action/review.yml.
type workflow struct {
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		If          string            `yaml:"if"`
		Permissions map[string]string `yaml:"permissions"`
		Outputs     map[string]string `yaml:"outputs"`
		Steps       []actionStep      `yaml:"steps"`
	} `yaml:"jobs"`
}

func readExample(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples/github-action", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	readExample(t, "action.yml", &a)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) != 2 {
		t.Fatalf("%+v", a.Runs)
	}
	return a
}

var (
	inputUsed = regexp.MustCompile(`\$\{\{ inputs\.([a-z0-9-]+) \}\}`)
	pinned    = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	longFlag  = regexp.MustCompile(`(?:^|[\s(])--([a-z][a-z-]+)`)
)

// The example says what the program knows: its inputs are used, its flags are there.
func TestActionIsWhole(t *testing.T) {
	a := readAction(t)
	used := map[string]bool{"working-directory": true}
	for _, s := range a.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("%s: text of others is in its script", s.ID)
		}
		for name, value := range s.Env {
			m := inputUsed.FindStringSubmatch(value)
			if m == nil {
				t.Errorf("%s is %q", name, value)
				continue
			}
			used[m[1]] = true
			if _, ok := a.Inputs[m[1]]; !ok {
				t.Errorf("%s is an input that is not there: %s", name, m[1])
			}
		}
	}
	for name, in := range a.Inputs {
		if !used[name] {
			t.Errorf("the input %s does nothing", name)
		}
		if in.Required != (name == "prompt" || name == "api-key") {
			t.Errorf("required: %s is %v", name, in.Required)
		}
	}
	p := &program{text: text.For("en")}
	root := p.root()
	flags := longFlag.FindAllStringSubmatch(a.Runs.Steps[1].Run, -1)
	if len(flags) < 8 {
		t.Errorf("flags: %q", flags)
	}
	for _, m := range flags {
		if f := root.Flags().Lookup(m[1]); f == nil || f.Hidden {
			t.Errorf("there is no flag --%s", m[1])
		}
	}
}

// The workflow gives secrets to nobody's code but the repository's own, and rights to no
// job that reads it.
func TestActionsWorkflow(t *testing.T) {
	a := readAction(t)
	var w workflow
	readExample(t, "review.yml", &w)
	if _, ok := w.On["pull_request"]; !ok || len(w.On) != 1 {
		t.Errorf("on: %v", w.On)
	}
	if w.Permissions == nil || len(w.Permissions) > 0 {
		t.Errorf("permissions: %v", w.Permissions)
	}
	var uses, handed int
	for name, job := range w.Jobs {
		secret, writes, reads := false, false, false
		for _, right := range job.Permissions {
			writes = writes || right != "read"
		}
		for _, s := range job.Steps {
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: text of others is in its script: %s", name, s.Run)
			}
			switch {
			case s.Uses == "./.github/actions/dure":
				uses++
				for in := range s.With {
					if _, ok := a.Inputs[in]; !ok {
						t.Errorf("%s: no input %s", name, in)
					}
				}
				secret = strings.Contains(s.With["api-key"], "secrets.")
			case s.Uses != "" && !pinned.MatchString(s.Uses):
				t.Errorf("%s: %s is no commit", name, s.Uses)
			case strings.HasPrefix(s.Uses, "actions/upload-artifact@") && s.With["path"] == "${{ steps.dure.outputs.file }}":
				handed++
			}
			if strings.HasPrefix(s.Uses, "actions/checkout@") {
				reads = true
				if s.With["persist-credentials"] != "false" {
					t.Errorf("%s: the token stays in the folder", name)
				}
			}
		}
		if len(job.Permissions) == 0 || writes && (reads || secret) {
			t.Errorf("%s: %v", name, job.Permissions)
		}
		if secret && !strings.Contains(job.If, "head.repo.full_name == github.repository") {
			t.Errorf("%s: if: %s", name, job.If)
		}
		if len(job.Outputs) > 0 {
			t.Errorf("%s: outputs have no room for answers that are long: %v", name, job.Outputs)
		}
	}
	if handed != 1 || a.Outputs["file"].Value == "" {
		t.Errorf("the answer is handed on %d times: %+v", handed, a.Outputs)
	}
	if uses != 1 {
		t.Errorf("used %d times", uses)
	}
}

// runner is what a step of the action runs in.
type runner struct {
	t      *testing.T
	action action
	temp   string // RUNNER_TEMP
	dir    string
	path   string // of the programs in front of all others
	model  *script.Server
	output string // what the step has said of itself
	log    string
}

func newRunner(t *testing.T, replies ...script.Reply) *runner {
	t.Helper()
	r := &runner{t: t, action: readAction(t), temp: t.TempDir(), dir: t.TempDir(), path: t.TempDir()}
	var err error
	if r.model, err = script.NewServer(script.Script{Replies: replies}, script.Options{Key: "the-key"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.model.Close() })
	if err := os.Mkdir(filepath.Join(r.temp, "dure-bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// step runs a step as a runner does, and returns its exit code.
func (r *runner) step(id string, with map[string]string) int {
	r.t.Helper()
	i := slices.IndexFunc(r.action.Runs.Steps, func(s actionStep) bool { return s.ID == id })
	return r.run(r.action.Runs.Steps[i], func(value string) string {
		return inputUsed.ReplaceAllStringFunc(value, func(m string) string {
			in := inputUsed.FindStringSubmatch(m)[1]
			if v, ok := with[in]; ok {
				return v
			}
			return r.action.Inputs[in].Default
		})
	})
}

// run runs a step, with the values of its variables.
func (r *runner) run(s actionStep, valueOf func(string) string) int {
	r.t.Helper()
	bash := prooftest.Program(r.t, "bash")
	out := filepath.Join(r.temp, "output")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", s.Run)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + r.path + ":" + os.Getenv("PATH"), "HOME=" + r.temp, "RUNNER_TEMP=" + r.temp, "GITHUB_OUTPUT=" + out,
		"ANTHROPIC_BASE_URL=" + r.model.URL(), "GORACE=" + atOnce,
	}
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+valueOf(value))
	}
	log, err := cmd.CombinedOutput()
	r.log = string(log)
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		r.t.Fatalf("%v\n%s", exit, log)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		r.t.Fatal(err)
	}
	r.output = string(data)
	return cmd.ProcessState.ExitCode()
}

// install puts the program where the action has it.
func (r *runner) install() {
	r.t.Helper()
	if err := os.Symlink(dureProgram(r.t), filepath.Join(r.temp, "dure-bin", "dure")); err != nil {
		r.t.Fatal(err)
	}
}

// The step of the action runs the task with the limits of its inputs, and tells how it went.
func TestActionRuns(t *testing.T) {
	t.Parallel()
	r := newRunner(t,
		script.Reply{Calls: []script.Call{
			{ID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{"command":"echo it was allowed"}`)},
			{ID: "toolu_2", Tool: "Bash", Input: json.RawMessage(`{"command":"touch made"}`)},
		}},
		script.Reply{Text: "One.\ncode=7\n::error::two\n"},
	)
	r.install()
	prompt := "Say \"it\" $(touch run) `touch run`\n--version; touch run"
	code := r.step("run", map[string]string{
		"prompt": prompt, "api-key": "the-key", "model": "script", "allow": "Bash(echo *)\n\nBash(git log *)\n",
	})
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.log)
	}
	lines := strings.Split(strings.TrimSuffix(r.output, "\n"), "\n")
	file := filepath.Join(r.temp, "dure.json")
	if len(lines) != 3 || lines[1] != "file="+file || lines[2] != "code=0" {
		t.Fatalf("%q", lines)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != strings.TrimPrefix(lines[0], "json=")+"\n" {
		t.Errorf("its file: %v, %q", err, data)
	}
	var result struct {
		Result  string `json:"result"`
		Session string `json:"session_id"`
		Denials []struct {
			ID string `json:"tool_use_id"`
		} `json:"permission_denials"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[0], "json=")), &result); err != nil {
		t.Fatalf("%v: %s", err, lines[0])
	}
	if !strings.Contains(result.Result, "::error::two") || result.Session == "" {
		t.Errorf("%+v", result)
	}
	if len(result.Denials) != 1 || result.Denials[0].ID != "toolu_2" {
		t.Errorf("denied: %+v", result.Denials)
	}
	for _, name := range []string{"run", "made"} {
		if exists(filepath.Join(r.dir, name)) {
			t.Errorf("%s was made", name)
		}
	}
	asked, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	said := asked[1 : len(asked)-1]
	if !bytes.Contains(r.model.Requests()[0].Body, said) {
		t.Errorf("the task is not %s", said)
	}
	if !regexp.MustCompile(`(?s)::stop-commands::([0-9a-f]{32})\n.*::[0-9a-f]{32}::\n$`).MatchString(r.log) {
		t.Errorf("the runner listens:\n%s", r.log)
	}
}

// Without a bound in dollars the action gives none: a model whose price is not known could
// not be asked.
func TestActionWithoutBudget(t *testing.T) {
	t.Parallel()
	r := newRunner(t, script.Reply{Text: "Hello."})
	r.install()
	code := r.step("run", map[string]string{"prompt": "hi", "api-key": "the-key", "model": "no-price-is-known", "max-budget-usd": ""})
	if code != 0 || !strings.Contains(r.output, "Hello.") {
		t.Errorf("exit code %d\n%s\n%s", code, r.output, r.log)
	}
}

// What goes wrong is the exit code of the step, and its result is there all the same.
func TestActionFails(t *testing.T) {
	t.Parallel()
	task := func(more ...string) map[string]string {
		with := map[string]string{"prompt": "go", "api-key": "the-key", "model": "script"}
		for i := 0; i < len(more); i += 2 {
			with[more[i]] = more[i+1]
		}
		return with
	}
	call := script.Reply{Calls: []script.Call{{Tool: "Read", Input: json.RawMessage(`{"file_path":"a"}`)}}}
	for name, tt := range map[string]struct {
		with   map[string]string
		want   int
		output string
	}{
		"no key":      {task("api-key", ""), 4, `^$`},
		"another key": {task("api-key", "no"), 4, `(?s)^json=.*\nfile=.*\ncode=4\n$`},
		"a variable":  {task("key-variable", "PATH"), 2, `^$`},
		"steps":       {task("max-turns", "1"), 8, `^json=\{.*"subtype":"error_max_turns".*\}\nfile=.*\ncode=8\n$`},
		"no number":   {task("max-turns", "many"), 2, `^json=\nfile=.*\ncode=2\n$`},
		"a mode":      {task("permission-mode", "never"), 2, `^json=\nfile=.*\ncode=2\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, call, call)
			r.install()
			if code := r.step("run", tt.with); code != tt.want || !regexp.MustCompile(tt.output).MatchString(r.output) {
				t.Errorf("exit code %d, output %q\n%s", code, r.output, r.log)
			}
		})
	}
}

// A release is taken only if it is what was asked for; without one the source is built.
func TestActionInstalls(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "sha256sum")
	program := func(r *runner, name, lines string) {
		r.t.Helper()
		if err := os.WriteFile(filepath.Join(r.path, name), []byte("#!/bin/sh\nset -e\n"+lines), 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	packed := func(r *runner) (sum string) {
		r.t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, "dure"), []byte("#!/bin/sh\necho a release\n"), 0o700); err != nil {
			r.t.Fatal(err)
		}
		cmd := exec.Command("tar", "-czf", "release.tar.gz", "dure")
		cmd.Dir = r.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			r.t.Fatalf("%v: %s", err, out)
		}
		data, err := os.ReadFile(filepath.Join(r.dir, "release.tar.gz"))
		if err != nil {
			r.t.Fatal(err)
		}
		// Stands in for the network: its last argument is the address.
		program(r, "curl", `while [ "$1" != --output ]; do shift; done; cp release.tar.gz "$2"; echo "$4" >asked`+"\n")
		return fmt.Sprintf("%x", sha256.Sum256(data))
	}
	const address = "https://releases.example/dure.tar.gz"
	t.Run("a release", func(t *testing.T) {
		r := newRunner(t)
		sum := packed(r)
		if code := r.step("install", map[string]string{"archive": address, "sha256": sum}); code != 0 || !strings.Contains(r.log, "a release") {
			t.Errorf("exit code %d\n%s", code, r.log)
		}
		if asked, _ := os.ReadFile(filepath.Join(r.dir, "asked")); string(asked) != address+"\n" {
			t.Errorf("asked for %q", asked)
		}
	})
	for name, sum := range map[string]string{"another one": strings.Repeat("0", 64), "no sum": "", "a bad sum": "x"} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			packed(r)
			if code := r.step("install", map[string]string{"archive": address, "sha256": sum}); code == 0 {
				t.Errorf("it was taken\n%s", r.log)
			}
			if exists(filepath.Join(r.temp, "dure-bin", "dure")) {
				t.Error("it is there")
			}
		})
	}
	t.Run("the source", func(t *testing.T) {
		r := newRunner(t)
		program(r, "go", `[ "$CGO_ENABLED $1 $2 $3 $5" = "0 build -trimpath -o ./cmd/dure" ]; printf '#!/bin/sh\necho built\n' >"$4"; chmod +x "$4"; pwd >&2`+"\n")
		source := t.TempDir()
		if code := r.step("install", map[string]string{"source": source}); code != 0 || !strings.Contains(r.log, filepath.Base(source)) || !strings.Contains(r.log, "built") {
			t.Errorf("exit code %d\n%s", code, r.log)
		}
	})
}

// workflowStep is a step of a job of the workflow, by its place; negative = from the end.
func workflowStep(t *testing.T, job string, at int) actionStep {
	t.Helper()
	var w workflow
	readExample(t, "review.yml", &w)
	steps := w.Jobs[job].Steps
	if at < 0 {
		at += len(steps)
	}
	if steps[at].Run == "" {
		t.Fatalf("step %d of %s runs nothing: %+v", at, job, steps[at])
	}
	return steps[at]
}

// The workflow fails before it checks anything out unless it is said which source is built: an
// empty name stands for the pull request.
func TestActionsWorkflowWantsItsSource(t *testing.T) {
	t.Parallel()
	first := workflowStep(t, "review", 0)
	commit := strings.Repeat("0a", 20)
	for name, tt := range map[string]struct {
		repository, commit string
		says               string // "" = it goes on
	}{
		"both":              {"owner/dure", commit, ""},
		"neither":           {"", "", "DURE_REPOSITORY"},
		"no repository":     {"", commit, "DURE_REPOSITORY"},
		"no commit":         {"owner/dure", "", "DURE_COMMIT"},
		"a branch":          {"owner/dure", "main", "DURE_COMMIT"},
		"part of a commit":  {"owner/dure", commit[:39], "DURE_COMMIT"},
		"more than one":     {"owner/dure", commit + "\n" + commit, "DURE_COMMIT"},
		"text of a command": {"owner/dure", "$(exit 0)", "DURE_COMMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			values := map[string]string{"${{ vars.DURE_REPOSITORY }}": tt.repository, "${{ vars.DURE_COMMIT }}": tt.commit}
			code := r.run(first, func(value string) string {
				v, ok := values[value]
				if !ok {
					t.Errorf("%s", value)
				}
				return v
			})
			if ok := tt.says == ""; ok != (code == 0) || !ok && !strings.Contains(r.log, "::error::set the variable "+tt.says) {
				t.Errorf("exit code %d: %s", code, r.log)
			}
		})
	}
}

// A review of any length comes to the comment: it is handed on as a file, of which the comment
// has as much as it has room for.
func TestActionsWorkflowComments(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "node")
	comment := workflowStep(t, "comment", -1)
	for name, value := range comment.Env {
		if strings.Contains(value, "needs.") || strings.Contains(value, "steps.") {
			t.Errorf("%s is what others said, however long: %s", name, value)
		}
	}
	for name, result := range map[string]string{
		"short":          "One.\n$(touch run) ::error::two\n",
		"long":           strings.Repeat("é\U0001f600 wrong\n", 40_000),
		"nothing at all": "",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			data, err := json.Marshal(map[string]string{"result": result})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(r.dir, "review"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.dir, "review", "dure.json"), append(data, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			// Stands in for the client of GitHub: its last argument is the file of the comment.
			gh := "#!/bin/sh\nset -e\n" + `[ "$1 $2 $3 $4 $5 $6" = "pr comment 7 --repo owner/name --body-file" ]; cp "$7" said` + "\n"
			if err := os.WriteFile(filepath.Join(r.path, "gh"), []byte(gh), 0o700); err != nil {
				t.Fatal(err)
			}
			values := map[string]string{"${{ github.repository }}": "owner/name", "${{ github.event.pull_request.number }}": "7"}
			if code := r.run(comment, func(value string) string { return values[value] }); code != 0 {
				t.Fatalf("exit code %d: %s", code, r.log)
			}
			said, err := os.ReadFile(filepath.Join(r.dir, "said"))
			if err != nil {
				t.Fatal(err)
			}
			want := []rune(result)
			if string(said) != string(want[:min(len(want), 60_000)]) {
				t.Errorf("%d bytes of %d: %.100q", len(said), len(result), said)
			}
			if exists(filepath.Join(r.dir, "run")) {
				t.Error("what was said has run")
			}
		})
	}
}
