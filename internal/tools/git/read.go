package git

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed read.md
var readText string

// Limits of one page of output.
const (
	readBudget  = 16_000 // characters of a result
	defaultPage = 12_000 // bytes
	maxPage     = 15_000
	maxSkip     = 256 << 20 // bytes of output that are made and not shown
	readLimit   = readTimeout + 2*askTimeout
)

type readInput struct {
	Command  string    `json:"command"`
	Args     []string  `json:"args"`
	Paths    []string  `json:"paths"`
	MaxBytes kit.Whole `json:"max_bytes"`
	Skip     kit.Whole `json:"skip"`
}

func (g *Git) read() agent.Tool {
	return conditional{git: g, Tool: kit.Tool{
		About: agent.Spec{
			Name: "git__read", Description: kit.Describe(readText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"command":{"type":"string","enum":["status","diff","log","show","blame","branch","tag","remote","stash-list","grep"]},` +
				`"args":{"type":"array","items":{"type":"string"}},` +
				`"paths":{"type":"array","items":{"type":"string"}},` +
				`"max_bytes":{"type":"integer","minimum":1},` +
				`"skip":{"type":"integer","minimum":0,"description":"bytes"}},` +
				`"required":["command"],"additionalProperties":false}`),
			Class: agent.Read, Group: "git", Risk: agent.RiskLow, Limit: readLimit, Budget: readBudget,
			Aliases: map[string]string{"subcommand": "command", "maxBytes": "max_bytes", "offset": "skip", "files": "paths", "flags": "args"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			_, r, q, err := g.readRequest(tc, c)
			if err != nil {
				return agent.Effects{}, err
			}
			// Git itself is not listed: it is this tool, held so that it starts
			// nothing else and does no more than read these.
			reads := r.reads()
			g.planned.Set(c.ID, strings.Join(reads, "\x00"))
			for _, p := range q.paths {
				reads = appendNew(reads, filepath.Join(r.top, filepath.FromSlash(p)))
			}
			return agent.Effects{Reads: reads}, nil
		},
		Does: g.runRead,
	}}
}

func (g *Git) readRequest(tc agent.ToolContext, c agent.Call) (readInput, repository, request, error) {
	in, err := kit.Decode[readInput](c)
	if err != nil {
		return in, repository{}, request{}, err
	}
	if in.Skip < 0 || in.Skip > maxSkip {
		return in, repository{}, request{}, kit.Refuse(agent.ErrInput, "skip is below 0 or above 256 MiB", "Ask for less instead: fewer commits, or some paths.")
	}
	r, err := g.in(tc)
	if err != nil {
		return in, r, request{}, err
	}
	q, err := parse(r, tc, in)
	return in, r, q, err
}

func (g *Git) runRead(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, r, q, err := g.readRequest(tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	if _, moved := g.planned.Moved(c.ID, strings.Join(r.reads(), "\x00")); moved {
		return agent.Result{}, kit.Refuse(agent.ErrTool, "the repository is elsewhere, or borrows from elsewhere, than when the call was decided about", "Call it again.")
	}
	list, err := g.settings(ctx, r)
	if err != nil {
		return agent.Result{}, err
	}
	off, err := without(list)
	if err != nil {
		return agent.Result{}, err
	}
	out := &window{skip: int64(in.Skip), most: pageSize(int(in.MaxBytes))}
	start := time.Now()
	exit, complaint, err := g.do(ctx, r, job{
		argv: g.command(slices.Concat(idle, off), q.args...), timeout: readTimeout, out: out,
		env: alone(r),
	})
	nothing := in.Command == "grep" && exit.Code == 1 && complaint == ""
	if err != nil || !out.more && !nothing && (exit.Code != 0 || exit.Interrupted()) {
		return agent.Result{}, explain(r, exit, complaint, err)
	}
	return readResult(in, out, time.Since(start)), nil
}

func pageSize(asked int) int {
	if asked <= 0 {
		return defaultPage
	}
	return min(asked, maxPage)
}

// readAnswer is the answer for hooks and hosts.
type readAnswer struct {
	Command  string `json:"command"`
	Bytes    int    `json:"bytes"`
	Next     int64  `json:"next,omitempty"` // skip of the next page
	Duration int64  `json:"durationMs"`
}

func readResult(in readInput, out *window, took time.Duration) agent.Result {
	page := pageEnd(out.kept, out.more)
	text := strings.ToValidUTF8(string(page), "\uFFFD")
	if in.Command == "remote" {
		text = passwords().ReplaceAllString(text, "$1***@")
	}
	a := readAnswer{Command: in.Command, Bytes: len(page), Duration: took.Milliseconds()}
	text = strings.TrimRight(text, "\n")
	switch {
	case out.more:
		a.Next = int64(in.Skip) + int64(len(page))
		text += fmt.Sprintf("\n[there is more; continue with skip %d, or ask for less]", a.Next)
	case text == "" && in.Skip > 0:
		text = "[no more output]"
	case text == "":
		text = "[" + empty(in.Command) + "]"
	}
	r := agent.OK(text)
	r.Output = kit.Structured(a)
	return r
}

// passwords are the user names and passwords of addresses.
var passwords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(://)[^/@\s]+@`)
})

// empty says what no output means.
func empty(command string) string {
	switch command {
	case "status":
		return "nothing to commit, working tree clean"
	case "diff":
		return "no differences"
	case "log":
		return "no commits"
	case "grep":
		return "no matches"
	case "branch", "tag", "remote", "stash-list":
		return "none"
	}
	return "no output"
}
