package enforce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/safety/policy"
)

// explain decides on a call that nobody makes, as a session in the working folder would, and
// says why.
func (x *Extension) explain(ctx context.Context, q query.ExplainCall) (query.ExplainedCall, error) {
	prop, err := x.cfg.Propose(ctx, q.Tool, q.Input)
	if err != nil {
		return query.ExplainedCall{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("the call cannot be decided on: %v", err), Fix: "check the name of the tool and its input", Err: err,
		}
	}
	d, err := x.Decider("")
	if err != nil {
		return query.ExplainedCall{}, err
	}
	return query.ExplainedCall{Proposal: prop, Explanation: d.Policy.Explain(prop, d.Policy.Decide(prop))}, nil
}

// simulate decides the recorded calls that q selects again, by the policy in a file on top of
// none, or by that of the settings with "".
func (x *Extension) simulate(ctx context.Context, q query.SimulatePolicy) (query.Simulation, error) {
	list, err := x.cfg.Decisions(ctx, q.ListDecisions)
	if err != nil {
		return query.Simulation{}, err
	}
	var c policy.Config
	if q.File == "" {
		place, err := x.cfg.Here()
		if err != nil {
			return query.Simulation{}, err
		}
		settings, _ := x.cfg.Settings()
		c = place.By(settings)
	} else {
		file, err := read(q.File, policy.ParsePolicy)
		if err != nil {
			return query.Simulation{}, err
		}
		c = file.Apply(policy.Config{Canonical: x.cfg.Canonical})
	}
	decided := make([]agent.CallDecided, len(list))
	for i, r := range list {
		decided[i] = r.CallDecided
	}
	flips, skipped, err := policy.Simulate(decided, c)
	if err != nil {
		return query.Simulation{}, faulty(err)
	}
	sim := query.Simulation{Decisions: len(list), Skipped: skipped, Flips: []query.FlippedDecision{}}
	for _, r := range list { // flips have the order of the decisions
		if len(flips) > 0 && flips[0].Decided.Key == r.Key && flips[0].Decided.Proposal.Call.ID == r.Proposal.Call.ID {
			sim.Flips = append(sim.Flips, query.FlippedDecision{DecisionRecord: r, Was: flips[0].Was, Now: flips[0].Now})
			flips = flips[1:]
		}
	}
	return x.cfg.Mask(sim)
}

// Test decides on the cases of a file by the policy of another one, in a place without rules.
// "" stands for those that come with the program; a policy's cases stand beside it unless they
// are named.
func Test(policyFile, casesFile string, in policy.Config, plan func(policy.Case) (agent.Proposal, error)) (policy.Report, error) {
	text, cases := policy.Default()
	file, err := policy.ParsePolicy(text, "")
	if policyFile != "" {
		file, err = read(policyFile, policy.ParsePolicy)
		if casesFile == "" {
			casesFile = casesBeside(policyFile)
		}
	}
	if err != nil {
		return policy.Report{}, err
	}
	list, err := policy.ParseCases(cases, "")
	if casesFile != "" {
		list, err = read(casesFile, policy.ParseCases)
	}
	if err != nil {
		return policy.Report{}, err
	}
	rep, err := policy.Test(file.Apply(in), list, plan)
	if err != nil {
		return rep, faulty(err)
	}
	return rep, nil
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

// maxFile limits a file with a policy or with cases, in bytes.
const maxFile = 16 << 20

// read reads a file with a policy or with cases.
func read[T any](path string, parse func(data []byte, file string) (T, error)) (v T, err error) {
	info, err := os.Stat(path)
	var data []byte
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		err = errors.New("it is no file of at most 16 MiB")
	default:
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return v, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("%s cannot be read: %v", path, err), Fix: "name a policy file", Err: err,
		}
	}
	if v, err = parse(data, path); err != nil {
		return v, faulty(err)
	}
	return v, nil
}

// faulty is a policy that a person has to fix.
func faulty(err error) error {
	return &agent.Problem{Code: agent.ProblemSettings, Message: err.Error(), Fix: "mend the policy", Err: err}
}
