// Package replay executes a session again from its log, with no model, tool or
// network: it builds every request again, follows what the loop did with each answer
// and each decision, decides calls a second time, and compares what it comes to with
// what was recorded. It says where the two first part.
//
// It also tells a log as a timeline, and two logs side by side. It reads and never
// writes, keeps one fold in memory, and starts no goroutines.
package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"dure/agent"
	"dure/internal/state/transcript"
)

// Config says what to replay. Session, Events and Blob are required.
type Config struct {
	Session string
	Events  iter.Seq2[agent.Event, error] // from the first on; may be read more than once
	Blob    func(ctx context.Context, sha256 string) (io.ReadCloser, error)

	// Decide decides on a recorded call again, with what had been allowed for the
	// session until then: was is what the policy said then, now what it says with what was
	// known then. An error says why that cannot be told. nil = decisions are not made again.
	Decide func(d agent.DecisionRecord, granted []string) (was agent.Verdict, now agent.Decision, err error)

	// Snapshots are the stored folds of the log, by the event that each is as of.
	Snapshots map[int64][]byte
}

// maxBlob bounds what is read of one part of a request.
const maxBlob = 256 << 20

// Verify replays a log. The report names the first divergence; an error means that
// the log could not be read.
func Verify(ctx context.Context, cfg Config) (agent.ReplayReport, error) {
	v := verifier{Config: cfg, state: transcript.New(), known: map[string]bool{}}
	v.report = agent.ReplayReport{Session: cfg.Session}
	v.state.Keep(1) // the hashes are enough
	v.state.Reread(func() iter.Seq2[agent.Event, error] { return cfg.Events })
	v.twin = twin{log: cfg.Events}
	for e, err := range cfg.Events {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return v.report, fmt.Errorf("reading the log of %s: %w", cfg.Session, err)
		}
		if d := v.event(ctx, e); d != nil {
			v.tell(e.Seq, d)
			return v.report, nil
		}
	}
	v.report.OK = true
	return v.report, nil
}

// A divergence is where a replay comes to something else than the log.
type divergence struct {
	problem   string
	want, got string // recorded, and what the replay comes to; "" = the problem says it
	diff      []string
}

func diverged(want, got any, format string, args ...any) *divergence {
	return &divergence{problem: fmt.Sprintf(format, args...), want: clip(fmt.Sprint(want)), got: clip(fmt.Sprint(got))}
}

func (v *verifier) tell(seq int64, d *divergence) {
	v.report.At, v.report.Problem = seq, d.problem
	v.report.Expected, v.report.Came, v.report.Diff = d.want, d.got, d.diff
}

// A verifier replays one log.
type verifier struct {
	Config
	report agent.ReplayReport
	state  *transcript.State
	twin   twin
	course course
	known  map[string]bool // parts that were found whole
	sound  int64           // the last request that came out the same
}

// event replays one event: what it says is compared with what follows from those
// before it, and then it is folded.
func (v *verifier) event(ctx context.Context, e agent.Event) *divergence {
	if d := v.course.follow(e, v.state); d != nil {
		return d
	}
	switch b := e.Body.(type) {
	case agent.ModelRequested:
		v.report.Requests++
		if d := v.request(ctx, b); d != nil {
			return d
		}
		v.sound = e.Seq
	case agent.CallDecided:
		v.report.Decisions++
		if d := v.decide(ctx, e, b); d != nil {
			return d
		}
	}
	v.state.Apply(e)
	v.course.granted(e, v.state)
	if err := v.state.Err(); err != nil {
		return &divergence{problem: err.Error()}
	}
	return v.folds(e)
}

func (v *verifier) request(ctx context.Context, req agent.ModelRequested) *divergence {
	for _, part := range []struct {
		name, hash string
		into       any
	}{
		{"system prompt", req.System, new([]agent.Section)},
		{"catalog of tools", req.Tools, new([]agent.Spec)},
	} {
		if v.known[part.hash] {
			continue
		}
		if err := v.load(ctx, part.hash, part.into); err != nil {
			return &divergence{problem: fmt.Sprintf("%s: %v", part.name, err)}
		}
		v.known[part.hash] = true
	}
	_, hashes := v.state.Conversation()
	if req.Purpose != "" {
		var messages []agent.Message
		if err := v.load(ctx, req.Input, &messages); err != nil {
			return &divergence{problem: fmt.Sprintf("side question %s: %v", req.Purpose, err)}
		}
		hashes = transcript.Hashes(messages)
	}
	if len(hashes) != req.Messages {
		d := diverged(req.Messages, len(hashes), "the request had %d messages, the log gives %d", req.Messages, len(hashes))
		d.diff = v.since(req)
		return d
	}
	if got := transcript.RequestHash(req, hashes); got != req.Hash {
		d := diverged(req.Hash, got, "the request had hash %.12s, the log gives %.12s", req.Hash, got)
		d.diff = v.since(req)
		return d
	}
	return nil
}

// since are the messages that have come into the conversation since the last request
// that came out the same: one of them is the one that differs.
func (v *verifier) since(req agent.ModelRequested) (lines []string) {
	if req.Purpose != "" {
		return nil
	}
	for _, m := range v.state.Timed() {
		if m.Seq <= v.sound {
			continue
		}
		if len(lines) == maxDiff {
			return append(lines, "...")
		}
		lines = append(lines, clip(fmt.Sprintf("? message of event %d: %s %s", m.Seq, m.Role, encoded(m.Blocks))))
	}
	return lines
}

// decide decides on a call once more.
func (v *verifier) decide(ctx context.Context, e agent.Event, b agent.CallDecided) *divergence {
	if v.Decide == nil || b.Decision.Basis == nil {
		return nil
	}
	r := agent.DecisionRecord{Session: v.Session, Seq: e.Seq, Time: e.Time, Workdir: v.course.workdir, CallDecided: b}
	was, now, lost := v.Decide(r, v.course.grantsFor(b.Proposal.Call.ID, v.state))
	if err := ctx.Err(); err != nil {
		return &divergence{problem: fmt.Sprintf("deciding call %s again: %v", b.Proposal.Call.ID, err)}
	}
	if lost != nil || was != now.Verdict && (now.Basis == nil || now.Basis.Policy != b.Decision.Basis.Policy) {
		return nil // that cannot be told: the rules are others now, or what was known was not recorded
	}
	v.report.Redecided++
	if was != now.Verdict {
		return diverged(was, joined(string(now.Verdict), now.By, now.Reason),
			"the policy said %s to call %s, and with the same rules and the same knowledge it says %s", was, b.Proposal.Call.ID, now.Verdict)
	}
	return nil
}

// load reads a part that was stored as a blob and checks that it is whole.
func (v *verifier) load(ctx context.Context, hash string, into any) error {
	r, err := v.Blob(ctx, hash)
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxBlob))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("blob %.12s does not match its hash", hash)
	}
	return json.Unmarshal(data, into)
}
