// Package replay builds the requests of a session again from its log, with no
// model, tool or network, and says where they first differ from what was sent.
//
// It reads and never writes, keeps one fold in memory, and starts no goroutines.
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
	"dure/internal/transcript"
)

// Config says what to replay. All fields are required.
type Config struct {
	Session string
	Events  iter.Seq2[agent.Event, error] // from the first on
	Blob    func(ctx context.Context, sha256 string) (io.ReadCloser, error)
}

// maxBlob bounds what is read of one part of a request.
const maxBlob = 256 << 20

// Verify builds every request again and compares it with the hash that was
// stored before the request was sent. The report names the first difference; an
// error means that the log could not be read.
func Verify(ctx context.Context, cfg Config) (agent.ReplayReport, error) {
	v := verifier{Config: cfg, state: transcript.New(), known: map[string]bool{}}
	report := agent.ReplayReport{Session: cfg.Session}
	for e, err := range cfg.Events {
		if err != nil {
			return report, fmt.Errorf("reading the log of %s: %w", cfg.Session, err)
		}
		if req, ok := e.Body.(agent.ModelRequested); ok {
			report.Requests++
			if err := v.check(ctx, req); err != nil {
				report.At, report.Problem = e.Seq, err.Error()
				return report, nil
			}
		}
		v.state.Apply(e)
	}
	report.OK = true
	return report, nil
}

type verifier struct {
	Config
	state *transcript.State
	known map[string]bool // parts that were found whole
}

func (v *verifier) check(ctx context.Context, req agent.ModelRequested) error {
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
			return fmt.Errorf("%s: %w", part.name, err)
		}
		v.known[part.hash] = true
	}
	messages, hashes := v.state.Conversation()
	if req.Purpose != "" {
		if err := v.load(ctx, req.Input, &messages); err != nil {
			return fmt.Errorf("side question %s: %w", req.Purpose, err)
		}
		hashes = transcript.Hashes(messages)
	}
	if len(messages) != req.Messages {
		return fmt.Errorf("the request had %d messages, the log gives %d", req.Messages, len(messages))
	}
	if got := transcript.RequestHash(req, hashes); got != req.Hash {
		return fmt.Errorf("the request had hash %.12s, the log gives %.12s", req.Hash, got)
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
