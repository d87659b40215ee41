package journal

import (
	"context"
	"errors"
	"fmt"

	"dure/agent"
)

// Verify checks a log from its first line: the chain of checksums, the numbers,
// the epochs, the bodies that are kept as blobs, every other blob, and the
// seals. The error is for what kept it from looking; what it found wrong is in
// the report. Nothing can be said about what was cut off behind the last event:
// who wants to know keeps the report's Head.
func (s *Local) Verify(ctx context.Context, id string) (agent.SealReport, error) {
	rep := agent.SealReport{Session: id}
	err := s.check()
	var dir string
	if err == nil {
		dir, err = s.find(id)
	}
	if err == nil {
		err = s.verify(ctx, dir, &rep)
	}
	if err != nil {
		return rep, fmt.Errorf("verifying session %s: %w", id, err)
	}
	rep.OK = rep.Problem == ""
	return rep, nil
}

func (s *Local) verify(ctx context.Context, dir string, rep *agent.SealReport) error {
	r, err := readFrom(s.d, dir, place{seg: 1})
	if err != nil {
		return err
	}
	defer r.close()
	v := verifier{rep: rep, seal: newSealing(1, ""), fetch: s.fetch(dir)}
	for rep.Problem == "" && r.step() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.line(r.line)
	}
	switch {
	case rep.Problem != "":
	case errors.Is(r.err, ErrDamaged) || errors.Is(r.err, errNewer):
		v.problem(r.at.seq+1, r.err)
	case r.err != nil:
		return r.err
	case r.torn != nil && !errors.Is(r.torn, errUnfinished):
		v.problem(r.at.seq+1, r.torn)
	}
	if rep.Problem == "" {
		return s.verifyBlobs(ctx, dir, rep)
	}
	return nil
}

// verifyBlobs compares all blobs with their names.
func (s *Local) verifyBlobs(ctx context.Context, dir string, rep *agent.SealReport) error {
	names, err := s.d.list(dir + "/blobs")
	if err != nil {
		return err
	}
	for _, sha := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := s.d.open(blobName(dir, sha), toRead)
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			err = checkBlob(f, sha, size)
		}
		err = errors.Join(err, f.Close())
		if errors.Is(err, ErrDamaged) {
			rep.Problem = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A verifier follows the seals of a log.
type verifier struct {
	rep   *agent.SealReport
	seal  sealing
	fetch func(blobRef) ([]byte, error)
	text  []byte
}

func (v *verifier) problem(at int64, err error) {
	v.rep.Problem, v.rep.At = err.Error(), at
}

func (v *verifier) line(l line) {
	v.rep.Events = l.seq
	var body agent.Body
	if l.ref != nil || l.kind == kindSealed {
		e, err := l.event(v.fetch)
		if err != nil {
			v.problem(l.seq, err)
			return
		}
		body = e.Body
	}
	if sealed, ok := body.(agent.LogSealed); ok {
		want, err := v.seal.body(l.seq-1, nil)
		if err == nil && sealed != want {
			err = errors.New("the seal does not fit: what it covers was changed")
		}
		if err != nil {
			v.problem(l.seq, err)
			return
		}
		v.rep.Seals++
		v.rep.Head = sealed.Hash
	}
	v.text = append(append(v.text[:0], l.raw...), '\n')
	v.seal.line(l.seq, body, v.text)
	if v.rep.Seals > 0 {
		v.rep.Open = l.seq - v.seal.from
	} else {
		v.rep.Open = l.seq
	}
}
