package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/eval"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// Explanation is a decision taken apart.
type Explanation struct {
	Proposal agent.Proposal `json:"proposal"`
	policy.Explanation
}

// Explain decides on a call that nobody makes, as a session in the working folder
// would, and says why.
func (a *App) Explain(ctx context.Context, tool string, input json.RawMessage) (Explanation, error) {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return Explanation{}, workspace.Problem(a.opts.Workdir, err)
	}
	v := NewEvaluator(a.opts.Workdir, a.opts.UserHome)
	place, err := v.Place(a.opts.Workdir, a.cfg.AddDirs, a.opts.UserHome)
	if err != nil {
		return Explanation{}, err
	}
	prop, err := place.Propose(ctx, eval.Case{Tool: tool, Input: input}, a.opts.Workdir)
	if err != nil {
		return Explanation{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("the call cannot be decided on: %v", err), Fix: "check the name of the tool and its input", Err: err,
		}
	}
	deciding, err := a.newDecider(place.Catalog, ws, a.opts.Workdir, "", a.cfg.Mode, nil, nil)
	if err != nil {
		return Explanation{}, err
	}
	return Explanation{prop, deciding.pol.Explain(prop, deciding.pol.Decide(prop))}, nil
}

// PolicyReport is what became of the expectations of a policy.
type PolicyReport struct {
	Cases    int             `json:"cases"`
	Rules    int             `json:"rules"`
	Failures []PolicyFailure `json:"failures"`
	Unused   []string        `json:"unused"` // rules that decide no case
}

// PolicyFailure is a case that is decided otherwise than it should be.
type PolicyFailure struct {
	Line        int                 `json:"line"`
	ID          string              `json:"id,omitempty"`
	Expect      agent.Verdict       `json:"expect"`
	Error       string              `json:"error,omitempty"` // the case is no call
	Explanation *policy.Explanation `json:"explanation,omitempty"`
}

// OK reports whether everything is as expected, and every rule of use.
func (r PolicyReport) OK() bool { return len(r.Failures) == 0 && len(r.Unused) == 0 }

// DefaultPolicy returns the policy that comes with the program, with comments, and
// what is expected of it.
func DefaultPolicy() (text, cases []byte) { return policy.Default() }

// TestPolicy decides on the cases of a file by the policy of another one. "" stands
// for those that come with the program; a policy's cases stand beside it unless
// they are named.
func TestPolicy(ctx context.Context, policyFile, casesFile, dir, home string) (PolicyReport, error) {
	text, cases := policy.Default()
	var err error
	if policyFile != "" {
		if text, err = readPolicy(policyFile); err != nil {
			return PolicyReport{}, err
		}
		if casesFile == "" {
			casesFile = casesBeside(policyFile)
		}
	}
	if casesFile != "" {
		if cases, err = readPolicy(casesFile); err != nil {
			return PolicyReport{}, err
		}
	}
	file, err := policy.ParsePolicy(text, policyFile)
	if err != nil {
		return PolicyReport{}, policyProblem(err)
	}
	list, err := policy.ParseCases(cases, casesFile)
	if err != nil {
		return PolicyReport{}, policyProblem(err)
	}
	v := NewEvaluator(dir, home)
	place, err := v.Place(dir, nil, home)
	if err != nil {
		return PolicyReport{}, err
	}
	rep, err := policy.Test(file.Apply(place.Config(dir, home)), list, func(c policy.Case) (agent.Proposal, error) {
		at := dir
		if c.Cwd != "" {
			at = c.Cwd
		}
		return place.Propose(ctx, eval.Case{Tool: c.Tool, Input: c.Input}, at)
	})
	if err != nil {
		return PolicyReport{}, policyProblem(err)
	}
	return reported(rep, len(file.Rules)), nil
}

func reported(rep policy.Report, rules int) PolicyReport {
	r := PolicyReport{Cases: rep.Cases, Rules: rules, Failures: []PolicyFailure{}, Unused: []string{}}
	for _, f := range rep.Failures {
		out := PolicyFailure{Line: f.Case.Line, ID: f.Case.ID, Expect: f.Case.Expect}
		if f.Err != nil {
			out.Error = f.Err.Error()
		} else {
			out.Explanation = &f.Explanation
		}
		r.Failures = append(r.Failures, out)
	}
	for _, rule := range rep.Unused {
		r.Unused = append(r.Unused, strings.TrimSuffix(rule.Text+" ("+rule.Source.String()+")", " ()"))
	}
	return r
}

// casesBeside returns where the cases of a policy stand: policy_test.jsonl beside
// policy.jsonc.
func casesBeside(policyFile string) string {
	for _, ending := range []string{".jsonc", ".json"} {
		if base, ok := strings.CutSuffix(policyFile, ending); ok {
			return base + "_test.jsonl"
		}
	}
	return policyFile + "_test.jsonl"
}

// Flipped is a recorded decision that another policy would not make.
type Flipped struct {
	agent.DecisionRecord
	Was agent.Verdict  `json:"was"` // what the policy of then said, before a person did
	Now agent.Decision `json:"now"`
}

// Simulation is what another policy would have decided.
type Simulation struct {
	Decisions int       `json:"decisions"` // that were recorded
	Skipped   int       `json:"skipped"`   // that cannot be decided again
	Flips     []Flipped `json:"flips"`
}

// Simulate decides the recorded calls that q selects again, by the policy in a file
// on top of none, or by that of the settings with "".
func (a *App) Simulate(ctx context.Context, policyFile string, q query.ListDecisions) (Simulation, error) {
	if _, err := a.open(); err != nil {
		return Simulation{}, err
	}
	list, err := a.audit.Decisions(ctx, q)
	if err != nil {
		return Simulation{}, err
	}
	var c policy.Config
	cat := catalog.New(catalog.Config{})
	if policyFile == "" {
		ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
		if err != nil {
			return Simulation{}, workspace.Problem(a.opts.Workdir, err)
		}
		cfg, files, _ := a.permissions.current()
		c = policyConfig(cfg, files, cat, ws, a.opts.Workdir, a.opts.UserHome, a.ownFolders())
		c.Own = a.ownNotes(a.opts.Workdir)
	} else {
		text, err := readPolicy(policyFile)
		if err != nil {
			return Simulation{}, err
		}
		file, err := policy.ParsePolicy(text, policyFile)
		if err != nil {
			return Simulation{}, policyProblem(err)
		}
		c = file.Apply(policy.Config{Canonical: cat.Canonical})
	}
	decided := make([]agent.CallDecided, len(list))
	for i, r := range list {
		decided[i] = r.CallDecided
	}
	flips, skipped, err := policy.Simulate(decided, c)
	if err != nil {
		return Simulation{}, policyProblem(err)
	}
	sim := Simulation{Decisions: len(list), Skipped: skipped, Flips: []Flipped{}}
	for _, r := range list { // flips have the order of the decisions
		if len(flips) > 0 && flips[0].Decided.Key == r.Key && flips[0].Decided.Proposal.Call.ID == r.Proposal.Call.ID {
			sim.Flips = append(sim.Flips, Flipped{r, flips[0].Was, flips[0].Now})
			flips = flips[1:]
		}
	}
	return guard.MaskValue(sim)
}

// maxPolicy bounds a file with a policy or with cases, in bytes.
const maxPolicy = 16 << 20

func readPolicy(path string) ([]byte, error) {
	info, err := os.Stat(path)
	var data []byte
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || info.Size() > maxPolicy:
		err = errors.New("it is no file of at most 16 MiB")
	default:
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("%s cannot be read: %v", path, err), Fix: "name a policy file", Err: err,
		}
	}
	return data, nil
}

func policyProblem(err error) error {
	return &agent.Problem{Code: agent.ProblemSettings, Message: err.Error(), Fix: "mend the policy", Err: err}
}
