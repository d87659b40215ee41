package git

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed commit.md
var commitText string

// Limits of a commit.
const (
	commitTimeout = 5 * time.Minute // with its hooks
	commitLimit   = commitTimeout + time.Minute
	commitBudget  = 6_000     // characters of a result
	maxMessage    = 64 << 10  // bytes of a message
	maxList       = 16 << 20  // bytes of the names of changed files
	maxSaid       = 256 << 10 // bytes that git and the hooks write
)

type commitInput struct {
	Message string   `json:"message"`
	Paths   []string `json:"paths"`
	All     bool     `json:"all"`
	Amend   bool     `json:"amend"`
	Hunks   []string `json:"hunks"` // of what is staged; see the package hunks
}

// committing is git__commit.
type committing struct{ conditional }

var _ agent.Checker = committing{}

func (g *Git) commit() agent.Tool {
	return committing{conditional{git: g, Tool: kit.Tool{
		About: agent.Spec{
			Name: "git__commit", Description: kit.Describe(commitText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"message":{"type":"string"},` +
				`"paths":{"type":"array","items":{"type":"string"}},` +
				`"all":{"type":"boolean"},"amend":{"type":"boolean"},` +
				`"hunks":{"type":"array","items":{"type":"string"}}},` +
				`"required":["message"],"additionalProperties":false}`),
			Class: agent.Checkable, Group: "git", Risk: agent.RiskMedium, Limit: commitLimit, Budget: commitBudget,
			Aliases: map[string]string{"files": "paths", "msg": "message"},
		},
		Does: g.runCommit,
	}}}
}

// Plan lists the commit and every program that git would start for it. What git
// itself does to the repository is the meaning of running it.
func (t committing) Plan(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
	in, r, err := t.git.commitRequest(tc, c)
	if err != nil {
		return agent.Effects{}, err
	}
	p, err := t.git.programs(ctx, r)
	if err != nil {
		return agent.Effects{}, err
	}
	t.git.planned.Set(c.ID, p.key())
	args := []string{"git", "commit", "--message=" + in.Message}
	if in.All {
		args = append(args, "--all")
	}
	if in.Amend {
		args = append(args, "--amend")
	}
	if len(in.Paths) > 0 {
		args = append(append(args, "--"), in.Paths...)
	}
	return agent.Effects{Reads: r.reads(), Runs: append([][]string{args}, p.argv...), Unreadable: p.unclear}, nil
}

func (g *Git) commitRequest(tc agent.ToolContext, c agent.Call) (commitInput, repository, error) {
	in, err := kit.Decode[commitInput](c)
	if err != nil {
		return in, repository{}, err
	}
	switch {
	case strings.TrimSpace(in.Message) == "":
		return in, repository{}, kit.Refuse(agent.ErrInput, "the message is empty", "Say what the commit does.")
	case len(in.Message) > maxMessage || strings.ContainsRune(in.Message, 0):
		return in, repository{}, kit.Refuse(agent.ErrInput, "the message is longer than 64 KiB or has a NUL character", "Write a shorter one.")
	case in.All && len(in.Paths) > 0:
		return in, repository{}, kit.Refuse(agent.ErrInput, "all and paths exclude each other", "Name the paths, or take all.")
	}
	if len(in.Hunks) > 0 && (in.All || in.Amend || len(in.Paths) > 0) {
		return in, repository{}, kit.Refuse(agent.ErrInput, "hunks are of what is staged: all, amend and paths are not for them", "Name the hunks alone.")
	}
	r, err := g.in(tc)
	if err != nil {
		return in, r, err
	}
	in.Paths, err = r.inside(tc, in.Paths)
	return in, r, err
}

func (g *Git) runCommit(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, r, err := g.commitRequest(tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	p, err := g.programs(ctx, r)
	if err != nil {
		return agent.Result{}, err
	}
	if _, moved := g.planned.Moved(c.ID, p.key()); moved {
		return agent.Result{}, kit.Refuse(agent.ErrTool, "the hooks or the configuration of the repository changed after the commit was decided about", "Call it again.")
	}
	if err := g.stage(ctx, r, in); err != nil {
		return agent.Result{}, err
	}
	args := []string{"commit", "--file=-", "--cleanup=whitespace"}
	if in.Amend {
		args = append(args, "--amend")
	}
	if len(in.Paths) > 0 {
		args = append(append(args, "--only", "--"), in.Paths...)
	}
	env, done, err := g.chosen(ctx, r, in.Hunks)
	if err != nil {
		return agent.Result{}, err
	}
	defer done()
	out := &window{most: maxSaid}
	exit, complaint, err := g.do(ctx, r, job{argv: g.command(nil, args...), in: in.Message, timeout: commitTimeout, out: out, env: env})
	said := strings.TrimSpace(strings.ToValidUTF8(string(out.kept), "\uFFFD"))
	if err != nil || !out.more && (exit.Code != 0 || exit.Interrupted()) {
		return agent.Result{}, refusedCommit(r, in, said, explain(r, exit, complaint, err))
	}
	return g.committed(ctx, r, strings.TrimSpace(said+"\n"+complaint))
}

// refusedCommit adds what git, or a hook, said.
func refusedCommit(r repository, in commitInput, said string, err error) error {
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok || te.Code != agent.ErrTool {
		return err
	}
	message := strings.TrimSpace(kit.Cut(said, 3000) + "\n" + te.Message)
	suggestion := "Mend what it says, then commit again."
	switch {
	case strings.Contains(said, "nothing to commit"), strings.Contains(said, "no changes added"), strings.Contains(said, "nothing added"):
		suggestion = "Name the changed files in paths, or set all."
	case strings.Contains(te.Message, "does not trust"), strings.Contains(te.Message, "whose commit"), strings.Contains(te.Message, "index.lock"):
		suggestion = te.Suggestion
	}
	if in.All || len(in.Paths) > 0 {
		suggestion += " What was to be committed is staged."
	}
	return kit.Refuse(te.Code, message, suggestion)
}

// stage brings the changes of a commit into the index: by their names, because
// git's own way to do so for a whole folder starts a git in every submodule.
func (g *Git) stage(ctx context.Context, r repository, in commitInput) error {
	var args []string
	switch {
	case in.All:
		args = []string{"diff-files", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all"}
	case len(in.Paths) > 0:
		args = append([]string{"ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard", "--"}, in.Paths...)
	default:
		return nil
	}
	names, err := g.ask(ctx, r, job{argv: g.command(nil, args...), timeout: readTimeout, most: maxList})
	if err != nil {
		return err
	}
	var list strings.Builder
	for name := range strings.SplitSeq(names, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") { // "dir/" is a repository inside this one
			list.WriteString(name)
			list.WriteByte(0)
		}
	}
	if list.Len() == 0 {
		return nil
	}
	_, err = g.ask(ctx, r, job{
		argv: g.command(nil, "update-index", "--add", "--remove", "-z", "--stdin"), in: list.String(), timeout: readTimeout,
	})
	return err
}

// head is the last commit.
type head struct {
	Commit  string   `json:"commit,omitempty"` // "" = there is none yet
	Parents []string `json:"parents,omitempty"`
	message string
}

// last returns the last commit.
func (g *Git) last(ctx context.Context, r repository) (head, error) {
	argv := g.command(idle, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	out := &window{most: maxAnswer}
	exit, complaint, err := g.do(ctx, r, job{argv: argv, out: out, env: alone(r)})
	if err == nil && exit.Code == 1 && complaint == "" && len(out.kept) == 0 {
		return head{}, nil
	}
	if err != nil || exit.Code != 0 || exit.Interrupted() {
		return head{}, explain(r, exit, complaint, err)
	}
	text, err := g.ask(ctx, r, job{argv: g.command(idle, "log", "-1", "--no-notes", "--format=%H%n%P%n%B", "HEAD", "--"), env: alone(r)})
	if err != nil {
		return head{}, err
	}
	commit, rest, _ := strings.Cut(text, "\n")
	parents, message, _ := strings.Cut(rest, "\n")
	return head{commit, strings.Fields(parents), tidy(message)}, nil
}

// tidy returns a message without what git takes out of it: space at the ends of
// lines, and empty lines that add nothing.
func tidy(message string) string {
	var lines []string
	for l := range strings.Lines(message) {
		l = strings.TrimRight(l, " \t\r\n\v\f")
		if l != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, l)
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// commitAnswer is the answer for hooks and hosts.
type commitAnswer struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
}

// committed is the result of a commit that was made.
func (g *Git) committed(ctx context.Context, r repository, said string) (agent.Result, error) {
	h, err := g.last(ctx, r)
	if err != nil {
		return agent.Result{}, err
	}
	subject, _, _ := strings.Cut(h.message, "\n")
	if said == "" {
		said = "Committed " + h.Commit + ": " + subject
	}
	res := agent.OK(said)
	res.Output = kit.Structured(commitAnswer{h.Commit, subject})
	return res, nil
}

// Mark is the last commit before the call.
func (t committing) Mark(ctx context.Context, tc agent.ToolContext, _ agent.Call) (json.RawMessage, error) {
	r, err := t.git.in(tc)
	if err != nil {
		return nil, err
	}
	h, err := t.git.last(ctx, r)
	if err != nil {
		return nil, err
	}
	return kit.Structured(h), nil
}

// Probe compares the last commit with the one before the call. A commit with the
// message and the parents that the call would have given it is the call's; when
// nothing was committed, it can be made again, because staging twice is staging
// once. Everything else is somebody else's work.
func (t committing) Probe(ctx context.Context, tc agent.ToolContext, c agent.Call, mark json.RawMessage) (agent.Probe, agent.Result, error) {
	var before head
	if err := json.Unmarshal(mark, &before); err != nil {
		return agent.ProbeUnknown, agent.Result{}, err
	}
	in, r, err := t.git.commitRequest(tc, c)
	if err != nil {
		return agent.ProbeUnknown, agent.Result{}, err
	}
	now, err := t.git.last(ctx, r)
	if err != nil {
		return agent.ProbeUnknown, agent.Result{}, err
	}
	var parents []string
	switch {
	case now.Commit == before.Commit:
		return agent.ProbeNotDone, agent.Result{}, nil
	case in.Amend:
		parents = before.Parents
	case before.Commit != "":
		parents = []string{before.Commit}
	}
	// A hook may have added lines at the end.
	if !slices.Equal(now.Parents, parents) || !strings.HasPrefix(now.message+"\n", tidy(in.Message)+"\n") {
		return agent.ProbeUnknown, agent.Result{}, nil
	}
	res, err := t.git.committed(ctx, r, "")
	if err != nil {
		return agent.ProbeUnknown, agent.Result{}, err
	}
	return agent.ProbeDone, res, nil
}

// homeOf returns the home folder that git sees.
func homeOf(env []string) string {
	for _, name := range []string{"HOME=", "USERPROFILE="} {
		for _, e := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(e, name); ok && filepath.IsAbs(v) {
				return v
			}
		}
	}
	return ""
}
