package app

import (
	"context"
	"fmt"
	"io"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/replay"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/state/archive"
	"dure/internal/state/journal"
)

// policyOf makes the policy that a session of a record's folder would have now, with what had
// been allowed for that session until then.
type policyOf func(r agent.DecisionRecord, granted []string) (*policy.Policy, error)

// verifyReplay executes a session again from its log. What is stored now is read; the
// session may go on.
func verifyReplay(ctx context.Context, store *journal.Local, policyOf policyOf, id string) (agent.ReplayReport, error) {
	snaps, err := store.Snapshots(ctx, id)
	if err != nil {
		return agent.ReplayReport{Session: id}, archive.Missing(id, err)
	}
	var pol *policy.Policy
	var lost error
	var dir string
	var rules []string
	return replay.Verify(ctx, replay.Config{
		Session: id, Events: archive.Events(ctx, store, id), Snapshots: snaps,
		Blob: func(ctx context.Context, sha string) (io.ReadCloser, error) {
			return store.Blob(ctx, id, sha)
		},
		Decide: func(r agent.DecisionRecord, granted []string) (was agent.Verdict, now agent.Decision, err error) {
			// The policy is made again only for another folder, or other grants.
			if pol == nil && lost == nil || r.Workdir != dir || !slices.Equal(granted, rules) {
				dir, rules = r.Workdir, slices.Clone(granted)
				pol, lost = policyOf(r, granted)
			}
			if lost != nil {
				return was, now, lost
			}
			flip, err := pol.Again(r.CallDecided)
			return flip.Was, flip.Now, err
		},
	})
}

// again decides on a recorded call by the rules of now.
func (of policyOf) again(r agent.DecisionRecord, granted []string) (pieces []query.DecisionPiece, was agent.Verdict, now agent.Decision, err error) {
	pol, err := of(r, granted)
	if err != nil {
		return nil, "", now, err
	}
	flip, err := pol.Again(r.CallDecided)
	return pol.Explain(r.Proposal, r.Decision).Pieces, flip.Was, flip.Now, err
}

// policyWith returns the policy that a session of a record's folder would have now, with what
// had been allowed for that session until then.
func (a *App) policyWith(r agent.DecisionRecord, granted []string) (*policy.Policy, error) {
	in := a
	if r.Workdir != "" && r.Workdir != a.opts.Workdir { // other rules hold there
		o := a.opts
		o.Workdir = r.Workdir
		other, err := New(o)
		if err != nil {
			return nil, fmt.Errorf("reading the settings for %s: %w", r.Workdir, err)
		}
		defer func() { _ = other.Close() }() // it has opened nothing
		in = other
	}
	ws, err := workspace.New(workspace.Config{Root: in.opts.Workdir, Extra: in.cfg.AddDirs, Absent: true})
	if err != nil {
		return nil, err
	}
	d, err := in.policy.New(in.place(in.catalog(), ws, in.opts.Workdir, nil), r.Session, in.cfg.Mode)
	if err != nil {
		return nil, err
	}
	if len(granted) > 0 {
		err = d.Policy.Grant(granted, policy.Session)
	}
	return d.Policy, err
}
