package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"

	"dure/agent"
)

// Verify checks a log from its first line: the chain of checksums, the numbers,
// the epochs, the bodies that are kept as blobs, every other blob, those that events
// name and that are gone, the seals, the snapshots and the listing. Of a log that was closed in good order it also knows how far it
// went: the listing and the snapshots say so. The error is for what kept it from
// looking; what it found wrong is in the report, the first of it in the order log,
// blobs, snapshots, listing. Nothing can be said about whole events that were cut off the log
// of a process that has died before it closed it: who wants to know keeps the
// report's Head.
func (s *Local) Verify(ctx context.Context, id string) (agent.SealReport, error) {
	return s.vouch(ctx, id, true)
}

// vouch is Verify; without named, blobs that events name and that are gone do not
// matter: mending a log does not bring them back.
func (s *Local) vouch(ctx context.Context, id string, named bool) (agent.SealReport, error) {
	rep := agent.SealReport{Session: id}
	err := s.check()
	var dir string
	if err == nil {
		dir, err = s.find(id)
	}
	if err == nil {
		err = s.verify(ctx, dir, &rep, named)
	}
	if err != nil {
		return rep, fmt.Errorf("verifying session %s: %w", id, err)
	}
	rep.OK = rep.Problem == ""
	return rep, nil
}

func (s *Local) verify(ctx context.Context, dir string, rep *agent.SealReport, named bool) error {
	w := s.witness(dir) // before the log, which may grow
	r, err := readFrom(s.d, dir, place{seg: 1})
	if err != nil {
		return err
	}
	defer r.close()
	v := verifier{rep: rep, dir: dir, seal: newSealing(1, ""), fetch: s.fetch(dir), there: map[string]bool{}}
	v.gone = func(sha string) bool {
		_, _, err := s.d.stat(blobName(dir, sha))
		return named && missing(err)
	}
	for rep.Problem == "" && r.step() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.line(r)
	}
	switch {
	case rep.Problem != "":
	case errors.Is(r.err, ErrDamaged) || errors.Is(r.err, ErrNewer):
		v.bad(r, r.err)
	case r.err != nil:
		return r.err
	default:
		if r.torn != nil {
			rep.Torn = v.size(r) - r.torn.off
		}
		v.ending(r, w)
	}
	if rep.Problem == "" {
		err = s.verifyBlobs(ctx, &v)
	}
	if err == nil && rep.Problem == "" {
		err = s.verifySnapshots(ctx, &v)
	}
	if err == nil && rep.Problem == "" {
		err = s.verifyMeta(&v)
	}
	return err
}

// verifyMeta compares the listing with its checksum. There need not be one.
func (s *Local) verifyMeta(v *verifier) error {
	const name = "meta.json"
	b, err := readAll(s.d, v.dir+"/"+name, maxMeta)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isSummed(b) {
		v.problem(0, name, 0, fmt.Errorf("the listing is not as it was written: %w", errSum))
	}
	return nil
}

// A witness is what is known of a log besides what it says.
type witness struct {
	head  int64 // it has had so many events
	bytes int64 // ... and then so many bytes; 0 = not known
}

func (s *Local) witness(dir string) (w witness) {
	var m Meta
	b, err := readAll(s.d, dir+"/meta.json", maxMeta)
	if err == nil && isSummed(b) && json.Unmarshal(b, &m) == nil {
		w.head, w.bytes = m.Head, m.Bytes
	}
	if seqs, err := s.snapshots(dir); err == nil && len(seqs) > 0 && seqs[0] > w.head {
		w = witness{head: seqs[0]}
	}
	return w
}

// A verifier follows the seals of a log.
type verifier struct {
	rep   *agent.SealReport
	dir   string
	seal  sealing
	begin place // of the first line that the seal in progress covers
	fetch func(blobRef) ([]byte, error)
	gone  func(sha string) bool
	there map[string]bool // blobs that were looked for
	text  []byte
	total int64 // bytes of the good lines
}

// problem reports what is wrong with an event, in a file from a byte on.
func (v *verifier) problem(at int64, file string, off int64, err error) {
	v.rep.Problem, v.rep.At, v.rep.File, v.rep.Offset = err.Error(), at, file, off
}

func (v *verifier) line(r *logReader) {
	l := r.line
	v.rep.Events = l.seq
	size := int64(len(l.raw)) + 1
	at := r.place()
	at.off -= size
	file := path.Base(segmentName(v.dir, at.seg))
	body, ok := v.body(l, file, at.off)
	if !ok {
		return
	}
	if sealed, ok := body.(agent.LogSealed); ok {
		want, err := v.seal.body(l.seq-1, nil)
		if err == nil && sealed != want {
			err = errors.New("the seal does not fit: what it covers was changed")
		}
		if err != nil {
			v.problem(l.seq, path.Base(segmentName(v.dir, v.begin.seg)), v.begin.off, err)
			return
		}
		v.rep.Seals++
		v.rep.Head = sealed.Hash
	}
	if body != nil && body.Kind() == kindSealed || l.seq == 1 {
		v.begin = at
	}
	v.text = append(append(v.text[:0], l.raw...), '\n')
	v.seal.line(l.seq, body, v.text)
	v.total += size
	if v.rep.Seals > 0 {
		v.rep.Open = l.seq - v.seal.from
	} else {
		v.rep.Open = l.seq
	}
}

// body returns the body of a line, if it has to be looked at.
func (v *verifier) body(l line, file string, off int64) (agent.Body, bool) {
	if l.ref == nil && l.kind != kindSealed && !names(l) {
		return nil, true
	}
	if ref, err := l.blobRef(); l.ref != nil && err == nil {
		file, off = "blobs/"+ref.SHA256, 0
	}
	e, err := l.event(v.fetch)
	if err != nil {
		v.problem(l.seq, file, off, err)
		return nil, false
	}
	for _, sha := range named(e.Body) {
		if !v.there[sha] && v.gone(sha) {
			v.problem(l.seq, "blobs/"+sha, 0, fmt.Errorf("blob %s is gone", sha))
			return nil, false
		}
		v.there[sha] = true
	}
	return e.Body, true
}

// names reports whether the body of a line may name blobs.
func names(l line) bool {
	switch l.kind {
	case agent.ModelRequested{}.Kind():
		return true
	case agent.CallFinished{}.Kind():
		return l.ref != nil || bytes.Contains(l.data, []byte(`"spill":{`))
	}
	return false
}

// named returns the blobs that a body names: the parts of a request, and the whole of
// an output that was cut.
func named(b agent.Body) (list []string) {
	switch b := b.(type) {
	case agent.ModelRequested:
		list = []string{b.System, b.Tools, b.Input}
	case agent.CallFinished:
		if b.Result.Spill != nil {
			list = []string{b.Result.Spill.SHA256}
		}
	}
	return slices.DeleteFunc(list, func(sha string) bool { return !isHash(sha) })
}

// bad reports a line that is not what was written there.
func (v *verifier) bad(r *logReader, err error) {
	line, ok := errors.AsType[*badLine](err)
	if !ok { // a segment is missing
		v.problem(r.at.seq+1, path.Base(segmentName(v.dir, r.place().seg+1)), 0, err)
		return
	}
	v.problem(line.after+1, path.Base(r.segs[0].name), line.off, err)
	off, exact := v.locate(r, line)
	v.rep.Offset, v.rep.Exact = line.off+int64(off), exact
	if exact {
		return
	}
	if n := r.segs[0].n; line.off == 0 && n > 1 && firstSeq(r.file) > line.after+1 {
		v.rep.File, v.rep.Exact = path.Base(segmentName(v.dir, n-1)), true
		v.rep.Offset, _, _ = r.d.stat(segmentName(v.dir, n-1)) // the end of that was cut off
	}
}

func (v *verifier) locate(r *logReader, line *badLine) (int, bool) {
	text := make([]byte, max(0, min(maxLocated, v.size(r)-line.off)))
	n, err := r.file.ReadAt(text, line.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false
	}
	if n == 1 && len(r.segs) > 1 {
		next, err := r.d.open(r.segs[1].name, toRead)
		if err != nil {
			return 0, false
		}
		defer next.Close()
		return 0, firstSeq(next) == line.after+1 // nothing is missing in front of that
	}
	return locateLine(text[:n], r.at)
}

// firstSeq returns the number that the first line of a file claims, or 0.
func firstSeq(f file) int64 {
	raw := make([]byte, maxLine)
	n, err := f.ReadAt(raw, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	raw, _, _ = bytes.Cut(raw[:n], []byte("\n"))
	l, err := line{}.parseAny(raw)
	if err != nil {
		return 0
	}
	return l.seq
}

func (v *verifier) size(r *logReader) int64 {
	size, err := r.file.Size()
	if err != nil {
		return 0 // the report is less exact
	}
	return size
}

// ending looks at the end of a log, where a write that a crash cut short is no
// alteration.
func (v *verifier) ending(r *logReader, w witness) {
	file := path.Base(segmentName(v.dir, max(1, r.place().seg)))
	switch torn := r.torn; {
	case torn != nil && !errors.Is(torn, errUnfinished):
		v.bad(r, torn)
	case torn != nil:
		if off, ok := v.locate(r, torn); ok && (torn.off+int64(off) < v.size(r) || v.rep.Events < w.head) {
			v.bad(r, torn) // no write ends like that
			return
		}
		fallthrough
	default:
		switch {
		case v.rep.Events < w.head:
			off := r.off
			if torn != nil {
				off = v.size(r)
			}
			v.problem(v.rep.Events+1, file, off, fmt.Errorf("the log has had %d events, and ends behind event %d: its end was cut off", w.head, v.rep.Events))
		case torn != nil && v.rep.Events == w.head && v.total == w.bytes:
			v.problem(v.rep.Events+1, file, torn.off, fmt.Errorf("%d bytes stand behind the last event", v.rep.Torn))
		default:
			return
		}
		v.rep.Exact = true
	}
}

// verifyBlobs compares all blobs with their names.
func (s *Local) verifyBlobs(ctx context.Context, v *verifier) error {
	names, err := s.d.list(v.dir + "/blobs")
	if err != nil {
		return err
	}
	for _, sha := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := s.d.open(blobName(v.dir, sha), toRead)
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			err = checkBlob(f, sha, size)
		}
		err = errors.Join(err, f.Close())
		if errors.Is(err, ErrDamaged) {
			at, ferr := s.firstNaming(ctx, v, sha)
			v.problem(at, "blobs/"+sha, 0, err)
			return ferr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstNaming returns the first event of a good log that names a blob; 0 = none.
func (s *Local) firstNaming(ctx context.Context, v *verifier, sha string) (int64, error) {
	r, err := readFrom(s.d, v.dir, place{seg: 1})
	if err != nil {
		return 0, err
	}
	defer r.close()
	for r.step() && ctx.Err() == nil {
		if bytes.Contains(r.line.raw, []byte(sha)) {
			return r.line.seq, nil
		}
		if ref, err := r.line.blobRef(); r.line.ref != nil && err == nil {
			if data, err := v.fetch(ref); err == nil && bytes.Contains(data, []byte(sha)) {
				return r.line.seq, nil
			}
		}
	}
	return 0, ctx.Err()
}

// verifySnapshots compares the snapshots with their checksums. They are of this
// version, as the log is: whoever writes one has opened the log before.
func (s *Local) verifySnapshots(ctx context.Context, v *verifier) error {
	seqs, err := s.snapshots(v.dir)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := readAll(s.d, snapName(v.dir, seq), maxSnapshot+4096)
		if missing(err) {
			continue // a newer one has taken its place
		}
		if err != nil {
			return err
		}
		file := fmt.Sprintf("snap/%d.json", seq)
		if off, exact, ok := snapshotDamage(b, seq); !ok {
			v.problem(seq, file, off, fmt.Errorf("the snapshot is not as it was written: %w", errSum))
			v.rep.Exact = exact
			return nil
		}
	}
	return nil
}

// snapshotDamage says from which byte on a snapshot is not as it was written.
func snapshotDamage(b []byte, seq int64) (off int64, exact, ok bool) {
	first, state, _ := bytes.Cut(b, []byte("\n"))
	var h snapHead
	_ = json.Unmarshal(first, &h) // it may be what is wrong
	sum := crc32.Checksum(state, castagnoli())
	want, err := json.Marshal(snapHead{agent.Version, seq, len(state), sum})
	if err != nil {
		return 0, false, false
	}
	if want = append(want, '\n'); bytes.HasPrefix(b, want) {
		return 0, false, true
	}
	if oneByte(append(want, state...), b) { // in its head
		return int64(shared(want, b)), true, false
	}
	var found [][]byte
	if len(state) <= maxLocated {
		unedited(state, 0, h.Sum, func(was []byte) {
			if len(was) == h.Size && !slices.ContainsFunc(found, func(o []byte) bool { return bytes.Equal(o, was) }) {
				found = append(found, was)
			}
		})
	}
	if len(found) != 1 {
		return 0, false, false
	}
	return int64(len(first) + 1 + shared(found[0], state)), true, false
}
