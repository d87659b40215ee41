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
)

// verifyReplay executes a session again from its log. What is stored now is read; the
// session may go on.
func (a *App) verifyReplay(ctx context.Context, id string) (agent.ReplayReport, error) {
	snaps, err := a.store.Snapshots(ctx, id)
	if err != nil {
		return agent.ReplayReport{Session: id}, archive.Missing(id, err)
	}
	again := redecider{app: a}
	return replay.Verify(ctx, replay.Config{
		Session: id, Events: archive.Events(ctx, a.store, id), Blob: func(ctx context.Context, sha string) (io.ReadCloser, error) { return a.store.Blob(ctx, id, sha) }, Decide: again.decide, Snapshots: snaps,
	})
}

// A redecider makes the decisions of a log again. It keeps the policy from one to the
// next as long as folder and grants are the same.
type redecider struct {
	app     *App
	pol     *policy.Policy
	err     error
	workdir string
	granted []string
}

func (d *redecider) decide(ctx context.Context, r agent.DecisionRecord, granted []string) (replay.Second, error) {
	if d.pol == nil && d.err == nil || r.Workdir != d.workdir || !slices.Equal(granted, d.granted) {
		d.workdir, d.granted = r.Workdir, slices.Clone(granted)
		d.pol, d.err = d.app.policyWith(r, granted)
	}
	if d.err != nil { // settings that cannot be read now say nothing about then
		return replay.Second{Lost: d.err.Error()}, ctx.Err()
	}
	flip, err := d.pol.Again(r.CallDecided)
	if err != nil {
		return replay.Second{Lost: err.Error()}, ctx.Err()
	}
	s := replay.Second{Was: flip.Was, Now: flip.Now}
	if b := flip.Now.Basis; s.Was != s.Now.Verdict && (b == nil || b.Policy != r.Decision.Basis.Policy) {
		s.Lost = "the rules are others now"
	}
	return s, ctx.Err()
}

// again decides on a recorded call by the rules of now.
func (a *App) again(r agent.DecisionRecord, granted []string) (pieces []query.DecisionPiece, was agent.Verdict, now agent.Decision, err error) {
	pol, err := a.policyWith(r, granted)
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
