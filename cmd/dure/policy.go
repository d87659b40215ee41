package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app/eval"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/safety/policy"
)

func (p *program) policyCommand() *cobra.Command {
	rules := p.command("rules", text.HelpPolicyRules, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		p.notes()
		return c.Rules(ctx, asJSON)
	})
	return p.group("policy", text.HelpPolicy,
		p.explainCommand(), rules, p.evalCommand(), p.policyTestCommand(), p.simulateCommand(), p.defaultCommand())
}

// group returns a command that is a name for others; by itself it shows its help.
func (p *program) group(use string, short text.Key, list ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: p.text.Say(short), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.help(cmd)
			return nil
		},
	}
	cmd.AddCommand(list...)
	return cmd
}

// filter returns a command that answers every line of its input.
func (p *program) filter(use string, short text.Key, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: p.text.Say(short), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
	p.jsonFlag(cmd) // it is JSON anyway
	return cmd
}

func (p *program) guardCommand() *cobra.Command {
	return p.filter("guard", text.HelpGuard, func(ctx context.Context) error { return eval.Guard(ctx, p.in, p.out) })
}

func (p *program) evalCommand() *cobra.Command {
	cwd := ""
	cmd := p.filter("eval", text.HelpEval, func(ctx context.Context) error {
		dir, home, err := here(cwd)
		if err != nil {
			return p.usage(p.text.Say(text.BadValue, "flag", "--cwd", "value", cwd, "wanted", p.text.Say(text.WantFolder)), "")
		}
		v := eval.Evaluator{Dir: dir, Home: home}
		return v.Run(ctx, p.in, p.out)
	})
	cmd.Flags().StringVar(&cwd, "cwd", "", p.text.Say(text.FlagCwd))
	return cmd
}

// here returns a folder and the user's home, both absolute; "" = the current one.
func here(dir string) (abs, home string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	home, _ = os.UserHomeDir() // without it, ~ stands for nothing
	return abs, home, nil
}

func (p *program) defaultCommand() *cobra.Command {
	cases := false
	cmd := &cobra.Command{
		Use: "default", Short: p.text.Say(text.HelpPolicyDefault), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			shipped, expected := policy.Default()
			if cases {
				shipped = expected
			}
			_, err := p.out.Write(shipped)
			return err
		},
	}
	p.jsonFlag(cmd)
	cmd.Flags().BoolVar(&cases, "cases", false, p.text.Say(text.FlagPolicyCases))
	return cmd
}

func (p *program) explainCommand() *cobra.Command {
	tool, session, call := "", "", ""
	cmd := p.command("explain COMMAND", text.HelpExplain, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		switch {
		case call != "" && len(args) == 0 && tool == "":
			return p.explainRecorded(ctx, c, session, call, asJSON)
		case len(args) == 0 || call != "" || session != "":
			return p.usage(p.text.Say(text.NoCall), p.text.Say(text.FixNoCall))
		}
		name, input := tool, json.RawMessage(args[0])
		if tool == "" {
			name = "Bash"
			encoded, err := json.Marshal(map[string]string{"command": args[0]})
			if err != nil {
				return err
			}
			input = encoded
		} else if !json.Valid(input) {
			return p.usage(p.text.Say(text.NoCall), p.text.Say(text.FixNoCall))
		}
		p.notes() // a rule that cannot be read explains much
		e, err := client.Query[query.ExplainedCall](ctx, c.Client, query.ExplainCall{Tool: name, Input: input})
		if err != nil {
			return err
		}
		if asJSON {
			return p.encode(e)
		}
		return c.Explain(e.Proposal, e.Decision)
	})
	cmd.Flags().StringVar(&tool, "tool", "", p.text.Say(text.FlagExplainTool))
	cmd.Flags().StringVar(&call, "call", "", p.text.Say(text.FlagExplainCall))
	cmd.Flags().StringVar(&session, "session", "", p.text.Say(text.FlagExplainSession))
	complete(cmd, "tool", p.toolNames)
	complete(cmd, "session", p.sessionNames)
	return cmd
}

// explainRecorded explains a decision of a log.
func (p *program) explainRecorded(ctx context.Context, c *cli.CLI, session, call string, asJSON bool) error {
	workdir := ""
	if session == "" {
		workdir = p.flags.workdir
	}
	info, err := c.Find(ctx, session, workdir)
	if err != nil {
		return err
	}
	r, err := client.Query[query.ExplainedDecision](ctx, c.Client, query.ExplainDecision{Session: info.ID, Call: call})
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(r)
	}
	return c.ExplainRecorded(r)
}

// encode writes v as JSON.
func (p *program) encode(v any) error {
	e := json.NewEncoder(p.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// tell asks a query and writes the answer: as JSON, or what say makes of it.
func tell[T any](ctx context.Context, p *program, c client.Client, q agent.Query, asJSON bool, say func(*strings.Builder, T)) error {
	v, err := client.Query[T](ctx, c, q)
	if err != nil {
		return err
	}
	if asJSON {
		return p.encode(v)
	}
	var b strings.Builder
	say(&b, v)
	_, err = p.out.WriteString(b.String())
	return err
}

func (p *program) policyTestCommand() *cobra.Command {
	cases := ""
	cmd := &cobra.Command{
		Use: "test [FILE]", Short: p.text.Say(text.HelpPolicyTest), Args: p.atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, home, err := here("")
			if err != nil {
				return err
			}
			v := eval.Evaluator{Dir: dir, Home: home}
			r, err := v.Test(cmd.Context(), strings.Join(args, ""), cases)
			if err != nil {
				return err
			}
			if err := p.showTest(r); err != nil {
				return err
			}
			if !r.OK() {
				return &cli.Exited{Code: cli.ExitFailed, Err: fmt.Errorf("%d cases are not as expected, %d rules are of no use", len(r.Failures), len(r.Unused))}
			}
			return nil
		},
	}
	p.jsonFlag(cmd)
	cmd.Flags().StringVar(&cases, "cases", "", p.text.Say(text.FlagCases))
	return cmd
}

func (p *program) showTest(r policy.Report) error {
	if p.asJSON {
		return p.encode(r)
	}
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%d %s: %s\n", f.Line, text.OneLine(f.ID), p.text.Say(text.TestWanted, "verdict", p.text.Word(string(f.Expect))))
		switch {
		case f.Error != "":
			fmt.Fprintf(&b, "  %s\n", text.OneLine(f.Error))
		case f.Explanation != nil:
			d := f.Explanation.Decision
			fmt.Fprintf(&b, "  %s\n", p.text.Say(text.ExplainVerdict, "verdict", p.text.Word(string(d.Verdict)), "reason", p.text.Phrase(text.OneLine(d.Reason))))
		}
	}
	if len(r.Failures) > 0 {
		fmt.Fprintln(&b, p.text.Say(text.TestFailed, "n", len(r.Failures)))
	}
	if len(r.Unused) > 0 {
		fmt.Fprintln(&b, p.text.Say(text.TestUncovered, "n", len(r.Unused), "list", text.OneLine(strings.Join(r.Unused, ", "))))
	}
	if r.OK() {
		fmt.Fprintln(&b, p.text.Say(text.TestPassed, "n", r.Cases, "rules", r.Rules))
	}
	_, err := p.out.WriteString(b.String())
	return err
}

func (p *program) simulateCommand() *cobra.Command {
	over := "30d"
	cmd := p.command("simulate [FILE]", text.HelpSimulate, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		since, ok := sinceOf(over, time.Now())
		if !ok {
			return p.badValue("--over", over, text.WantSince)
		}
		return tell(ctx, p, c.Client, query.SimulatePolicy{File: strings.Join(args, ""), ListDecisions: query.ListDecisions{Since: since}}, asJSON, func(b *strings.Builder, sim query.Simulation) {
			for _, f := range sim.Flips {
				fmt.Fprintln(b, c.Flip(f.Session, f.Proposal, f.Was, f.Now))
			}
			if len(sim.Flips) == 0 {
				fmt.Fprintln(b, p.text.Say(text.SimulateNone, "n", sim.Decisions))
			} else {
				fmt.Fprintln(b, p.text.Say(text.SimulateSome, "n", len(sim.Flips), "all", sim.Decisions))
			}
			if sim.Skipped > 0 {
				fmt.Fprintln(b, p.text.Say(text.SimulateSkipped, "n", sim.Skipped))
			}
		})
	})
	cmd.ValidArgsFunction = nil
	cmd.Flags().StringVar(&over, "over", over, p.text.Say(text.FlagOver))
	return cmd
}

// editRule adds a permission rule to the settings, or takes one away.
func (p *program) editRule(ctx context.Context, e query.RuleEdit) (query.RuleEdited, error) {
	return client.Query[query.RuleEdited](ctx, p.client(), e)
}
