package code

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

//go:embed check.md
var checkText string

// Limits of a check.
const (
	checkTimeout = 10 * time.Minute // of all its commands together
	checkLimit   = checkTimeout + time.Minute
	checkBudget  = 8_000   // characters of a result
	maxRounds    = 5       // checks in a row that may fail before the next one is refused
	maxInline    = 4 << 10 // bytes of output; more is streamed to the guard
	maxFindings  = 20      // of errors, and of tests
)

// The kinds of check.
const (
	kindBuild = "build"
	kindTest  = "test"
	kindAll   = "all"
)

type checkInput struct {
	Command string `json:"command"`
	Kind    string `json:"kind"`
}

func (c *Code) check() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "code__check", Description: kit.Describe(checkText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"command":{"type":"string"},` +
				`"kind":{"type":"string","enum":["build","test","all"]}},"additionalProperties":false}`),
			Class: agent.Unsafe, Group: "code", Risk: agent.RiskHigh, Limit: checkLimit, Budget: checkBudget,
			Aliases: map[string]string{"cmd": "command", "type": "kind"},
		},
		Touches: func(tc agent.ToolContext, call agent.Call) (agent.Effects, error) {
			p, err := c.plan(tc, call)
			if err != nil {
				return agent.Effects{}, err
			}
			c.pins.Set(call.ID, p.key())
			if p.command != "" {
				return c.Reads.Read(p.command, p.dir), nil
			}
			var e agent.Effects
			for _, s := range p.steps {
				e.Commands = append(e.Commands, agent.SimpleCommand{Argv: s.shown})
			}
			return e, nil
		},
		Does: c.runCheck,
	}
}

// step is one command of a check.
type step struct {
	argv  []string
	shown []string // as it is said to the gate and to the model
}

// plan is what a check runs.
type plan struct {
	dir     string
	command string // the call's own; "" = steps were found
	steps   []step
}

func (p plan) key() string {
	key := p.dir
	for _, s := range p.steps {
		key += "\x00\x00" + strings.Join(s.argv, "\x00")
	}
	return key
}

// plan says what a call runs. It reads which project there is and runs nothing.
func (c *Code) plan(tc agent.ToolContext, call agent.Call) (plan, error) {
	in, err := kit.Decode[checkInput](call)
	if err != nil {
		return plan{}, err
	}
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	if failed >= maxRounds {
		return plan{}, kit.Refuse(agent.ErrTool, fmt.Sprintf("%d checks in a row have failed, which is the most that are made", failed),
			"Stop mending. Tell the user what fails, what you have tried, and what you think is the cause.")
	}
	dir := tc.Workdir
	if dir == "" {
		dir = c.Workspace.Root()
	}
	switch in.Kind {
	case "":
		in.Kind = kindTest
	case kindBuild, kindTest, kindAll:
	default:
		return plan{}, kit.Refuse(agent.ErrInput, "kind is none of build, test and all", "Use one of them.")
	}
	if strings.ContainsRune(in.Command, 0) {
		return plan{}, kit.Refuse(agent.ErrInput, "command contains a NUL character", "Write the command without it.")
	}
	if command := strings.TrimSpace(in.Command); command != "" {
		argv := append(kit.Shell(c.Shell), command)
		return plan{dir: dir, command: command, steps: []step{{argv, []string{"bash", "-c", command}}}}, nil
	}
	return c.project(dir, in.Kind)
}

func (c *Code) runCheck(ctx context.Context, tc agent.ToolContext, call agent.Call) (agent.Result, error) {
	p, err := c.plan(tc, call)
	if err != nil {
		return agent.Result{}, err
	}
	if _, moved := c.pins.Moved(call.ID, p.key()); moved {
		return agent.Result{}, kit.Refuse(errFileChanged, "the project is built in another way than when the call was decided", "Call it again.")
	}
	env := agent.CallEnvOf(ctx)
	capture := c.Box.NewCapture()
	vars := kit.CallEnv(c.env, p.dir, env.Key, env.Vars...)
	o := outcome{plan: p}
	var grant sandbox.Grant
	if p.command != "" {
		grant = kit.Grant(c.Reads.Read(p.command, p.dir))
	}
	deadline := time.Now().Add(checkTimeout)
	for _, s := range p.steps {
		if len(p.steps) > 1 {
			_, _ = fmt.Fprintf(capture, "$ %s\n", strings.Join(s.shown, " ")) // writing to a capture never fails
		}
		exit, err := c.Box.Run(ctx, sandbox.Cmd{
			Argv: s.argv, Dir: p.dir, Env: vars, Timeout: max(time.Until(deadline), time.Second),
			Out: kit.Watched(capture, env.Progress), Spawned: env.Spawned, Grant: grant,
		})
		switch {
		case ctx.Err() != nil || exit.Cancelled:
			_ = capture.Close() // it is given up
			return agent.Result{}, kit.Refuse(agent.ErrAborted, "the check was cancelled, and everything it had started was stopped", "")
		case err != nil:
			_ = capture.Close() // it is given up
			return agent.Result{}, kit.Refuse(agent.ErrTool, err.Error(), "Check that the program is installed, or name another command.")
		}
		o.ran, o.exit = append(o.ran, ran{s, exit}), exit
		if exit.Code != 0 || exit.TimedOut {
			break
		}
	}
	o.round = c.count(o.passed())
	return o.result(capture), nil
}

// count records how a check ended and returns how many in a row have failed.
func (c *Code) count(passed bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed++; passed {
		c.failed = 0
	}
	return c.failed
}

type ran struct {
	step step
	exit sandbox.Exit
}

// outcome is how a check ended.
type outcome struct {
	plan  plan
	ran   []ran
	exit  sandbox.Exit // of the last command
	round int          // how many in a row have failed
}

func (o outcome) passed() bool { return o.exit.Code == 0 && !o.exit.TimedOut }

// checkAnswer is the answer for hooks and hosts.
type checkAnswer struct {
	Passed   bool      `json:"passed"`
	Commands []string  `json:"commands"`
	ExitCode int       `json:"exitCode"`
	TimedOut bool      `json:"timedOut,omitempty"`
	Tests    []string  `json:"failedTests"`
	Errors   []finding `json:"errors"`
	Round    int       `json:"failedInARow"`
	Seconds  float64   `json:"seconds"`
}

// result takes over the capture. A check that finds mistakes has done its work:
// its result is no failure, and is not counted as one by what ends repetitions.
func (o outcome) result(capture *sandbox.Capture) agent.Result {
	head, tail, dropped := capture.Ends()
	a := checkAnswer{Passed: o.passed(), Commands: []string{}, ExitCode: o.exit.Code, TimedOut: o.exit.TimedOut, Tests: []string{}, Errors: []finding{}, Round: o.round}
	var b strings.Builder
	for _, r := range o.ran {
		how := "passed"
		switch {
		case r.exit.TimedOut:
			how = "was stopped after " + checkTimeout.String()
		case r.exit.Code != 0:
			how = fmt.Sprintf("failed with exit code %d", r.exit.Code)
		}
		line := strings.Join(r.step.shown, " ")
		if o.plan.command != "" {
			line = o.plan.command
		}
		a.Commands = append(a.Commands, line)
		a.Seconds += r.exit.Duration.Seconds()
		fmt.Fprintf(&b, "%s: %s (%.1f s)\n", kit.Line(line, 200), how, r.exit.Duration.Seconds())
	}
	if !a.Passed {
		text := string(head)
		if dropped > 0 {
			text += "\n" + string(tail)
		}
		f := find(text)
		a.Tests, a.Errors = append(a.Tests, f.tests...), append(a.Errors, f.errors...)
		b.WriteString(f.String())
		fmt.Fprintf(&b, "[%d of %d failed checks in a row]\n", o.round, maxRounds)
		if refused := kit.Refused(o.exit.Denied); refused != "" {
			b.WriteString(refused + "\n")
		}
	}
	r := agent.OK("")
	r.Output = kit.Structured(a)
	if capture.Size() > maxInline {
		b.WriteString("--- output ---\n")
		full := capture.Reader()
		r.Stream = kit.Joined(strings.NewReader(b.String()), full, full)
		return r
	}
	_ = capture.Close() // all of it is in head
	if text := strings.TrimSpace(string(head)); text != "" {
		b.WriteString("--- output ---\n" + text)
	}
	r.Text = strings.TrimSpace(b.String())
	return r
}
