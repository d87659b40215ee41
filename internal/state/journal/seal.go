package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"dure/agent"
)

const kindSealed = "log.sealed"

// sealing hashes a log while it grows. A seal's hash is the SHA-256 of the text
// of the previous seal's hash and of the lines since, each with its newline. The
// first of these is the previous seal itself, so that everything up to the last
// seal is covered.
type sealing struct {
	from int64  // the first line that no seal covers
	prev string // the last seal's hash
	hash hash.Cloner
}

func newSealing(from int64, prev string) sealing {
	s := sealing{from, prev, sha256.New().(hash.Cloner)}
	s.hash.Write([]byte(prev))
	return s
}

// open reports whether a log that ends at head has something to seal besides
// the last seal.
func (s *sealing) open(head int64) bool {
	return s.prev == "" && head >= s.from || head > s.from
}

// line takes the line of an event.
func (s *sealing) line(seq int64, b agent.Body, text []byte) {
	if seal, ok := b.(agent.LogSealed); ok {
		*s = newSealing(seq, seal.Hash)
	}
	s.hash.Write(text)
}

// body returns the seal of everything up to the event to, whose last lines have
// not been taken yet.
func (s *sealing) body(to int64, lines []byte) (agent.LogSealed, error) {
	h, err := s.hash.Clone()
	if err != nil {
		return agent.LogSealed{}, fmt.Errorf("sealing: %w", err)
	}
	h.Write(lines)
	return agent.LogSealed{From: s.from, To: to, Hash: hex.EncodeToString(h.Sum(nil)), Prev: s.prev}, nil
}
