package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"strconv"
	"strings"

	"dure/agent"
)

const (
	maxSnapshot   = 64 << 20 // bytes of a snapshot
	keptSnapshots = 2
)

// snapHead is the first line of a snapshot's file; the state follows it.
type snapHead struct {
	V    int    `json:"v"` // version of the events that were folded
	Seq  int64  `json:"seq"`
	Size int    `json:"size"`
	Sum  uint32 `json:"crc"` // CRC-32C of the state
}

func snapName(dir string, seq int64) string { return fmt.Sprintf("%s/snap/%d.json", dir, seq) }

// snapshots lists the stored snapshots, newest first.
func (s *Local) snapshots(dir string) ([]int64, error) {
	names, err := s.d.list(dir + "/snap")
	if err != nil {
		return nil, err
	}
	var seqs []int64
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".json")
		if n, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && n > 0 {
			seqs = append(seqs, n)
		}
	}
	sort.Slice(seqs, func(i, j int) bool { return seqs[i] > seqs[j] })
	return seqs, nil
}

// Snapshot stores state. The log is on the disk before it, so that a snapshot
// never knows more than the log.
func (l *lease) Snapshot(_ context.Context, seq int64, state []byte) error {
	l.mu.Lock()
	err, head := l.dead, l.at.seq
	if err == nil && (seq < 1 || seq > head) {
		err = fmt.Errorf("the log ends at event %d", head)
	}
	if err == nil && len(state) > maxSnapshot {
		err = fmt.Errorf("it has %d bytes (at most %d)", len(state), maxSnapshot)
	}
	target := l.written
	l.mu.Unlock()
	if err == nil && l.s.durable() {
		err = l.sync(target)
	}
	if err == nil {
		err = l.s.writeSnapshot(l.dir, seq, state)
	}
	if err != nil {
		return fmt.Errorf("storing a snapshot of session %s at event %d: %w", l.id, seq, err)
	}
	return nil
}

func (s *Local) writeSnapshot(dir string, seq int64, state []byte) error {
	head, err := json.Marshal(snapHead{agent.Version, seq, len(state), crc32.Checksum(state, castagnoli())})
	if err != nil {
		return err
	}
	s.fault("snapshot.write")
	if err := ensureDir(s.d, dir+"/snap"); err != nil {
		return err
	}
	if err := replace(s.d, snapName(dir, seq), append(append(head, '\n'), state...), s.durable()); err != nil {
		return err
	}
	if s.durable() {
		if err := s.d.syncDir(dir + "/snap"); err != nil {
			return err
		}
	}
	s.fault("snapshot.written")
	seqs, err := s.snapshots(dir)
	if err != nil {
		return err
	}
	for _, old := range seqs[min(len(seqs), keptSnapshots):] {
		if err := s.d.remove(snapName(dir, old)); err != nil {
			return err
		}
	}
	return nil
}

// LastSnapshot skips snapshots that are damaged, of a later version, or of
// events that the log does not have.
func (l *lease) LastSnapshot(ctx context.Context) (int64, []byte, error) {
	head := l.Head()
	seqs, err := l.s.snapshots(l.dir)
	if err != nil {
		return 0, nil, fmt.Errorf("looking for snapshots of session %s: %w", l.id, err)
	}
	for _, seq := range seqs {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		if seq > head {
			continue
		}
		if state, err := l.s.readSnapshot(l.dir, seq); err == nil {
			return seq, state, nil
		}
	}
	return 0, nil, nil
}

func (s *Local) readSnapshot(dir string, seq int64) ([]byte, error) {
	b, err := readAll(s.d, snapName(dir, seq), maxSnapshot+4096)
	if err != nil {
		return nil, err
	}
	first, state, _ := bytes.Cut(b, []byte("\n"))
	var h snapHead
	if err := json.Unmarshal(first, &h); err != nil {
		return nil, err
	}
	if h.V < 1 || h.V > agent.Version || h.Seq != seq || h.Size != len(state) || h.Sum != crc32.Checksum(state, castagnoli()) {
		return nil, ErrDamaged
	}
	return state, nil
}

// dropSnapshots removes the snapshots of events that were cut off.
func (l *lease) dropSnapshots(head int64) error {
	seqs, err := l.s.snapshots(l.dir)
	for _, seq := range seqs {
		if seq > head {
			err = errors.Join(err, l.s.d.remove(snapName(l.dir, seq)))
		}
	}
	return err
}

// Snapshots returns the snapshots of a session that are whole, by the event that
// each is as of.
func (s *Local) Snapshots(ctx context.Context, id string) (map[int64][]byte, error) {
	dir, err := s.find(id)
	var seqs []int64
	if err == nil {
		seqs, err = s.snapshots(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the snapshots of session %s: %w", id, err)
	}
	all := map[int64][]byte{}
	for _, seq := range seqs {
		if state, err := s.readSnapshot(dir, seq); err == nil {
			all[seq] = state
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
