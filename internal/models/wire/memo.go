package wire

import (
	"bytes"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"unsafe"

	"dure/agent"
)

// keptTalks is how many conversations stay encoded; a session and its children
// that run side by side are a few.
const keptTalks = 6

// A Memo keeps the encoded form of the conversations that were sent last.
// Messages are immutable, so what the previous request of the same conversation
// had is used again; a conversation is recognised by its first message. What it
// gives out is never written to again: a request that is still being sent may
// read it. The zero value is empty. It is safe for concurrent use.
type Memo[T any] struct {
	mu    sync.Mutex
	talks []*talk[T] // most recently used first, at most keptTalks
}

// talk is one conversation, encoded.
type talk[T any] struct {
	names    map[string]string
	tools    []agent.Spec
	system   []agent.Section
	head     []byte
	messages []entry[T]
}

type entry[T any] struct {
	blocks *agent.Block // first block; keeps the address from being used again
	n      int
	role   agent.Role
	value  T
}

// Encode returns the head of a request, which depends on its tools and its
// system prompt, and its messages, encoding what is new.
func (m *Memo[T]) Encode(r agent.Request, head func() ([]byte, error), message func(agent.Message) T) ([]byte, []T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.talk(r)
	if t.head == nil || !slices.Equal(t.system, r.System) || !slices.EqualFunc(t.tools, r.Tools, sameTool) {
		b, err := head()
		if err != nil {
			return nil, nil, err
		}
		t.head, t.tools, t.system = append([]byte{}, b...), slices.Clone(r.Tools), slices.Clone(r.System)
	}
	t.encode(r, message)
	values := make([]T, len(t.messages))
	for i, e := range t.messages {
		values[i] = e.value
	}
	return t.head, values, nil
}

// talk returns the conversation that r continues, or a new one.
func (m *Memo[T]) talk(r agent.Request) *talk[T] {
	i := slices.IndexFunc(m.talks, func(t *talk[T]) bool { return t.continued(r) })
	var t *talk[T]
	if i >= 0 {
		t = m.talks[i]
		m.talks = slices.Delete(m.talks, i, i+1)
	} else {
		t = &talk[T]{names: maps.Clone(r.Names)}
	}
	if len(m.talks) == keptTalks {
		m.talks[keptTalks-1] = nil
		m.talks = m.talks[:keptTalks-1]
	}
	m.talks = slices.Insert(m.talks, 0, t)
	return t
}

// continued reports whether r is a later request of the same conversation.
func (t *talk[T]) continued(r agent.Request) bool {
	return len(t.messages) > 0 && len(r.Messages) > 0 &&
		t.messages[0].is(r.Messages[0]) && maps.Equal(t.names, r.Names)
}

func (e entry[T]) is(m agent.Message) bool {
	return e.blocks == unsafe.SliceData(m.Blocks) && e.n == len(m.Blocks) && e.role == m.Role
}

// encode brings t.messages in line with r.
func (t *talk[T]) encode(r agent.Request, message func(agent.Message) T) {
	same := 0
	for same < len(t.messages) && same < len(r.Messages) && t.messages[same].is(r.Messages[same]) {
		same++
	}
	t.messages = t.messages[:same]
	for _, m := range r.Messages[same:] {
		t.messages = append(t.messages, entry[T]{unsafe.SliceData(m.Blocks), len(m.Blocks), m.Role, message(m)})
	}
}

func sameTool(a, b agent.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Input, b.Input)
}

// Payload is a request body in parts, which are not copied together.
type Payload struct {
	parts [][]byte
	size  int64
}

// Add adds a part, which is not changed any more.
func (p *Payload) Add(part []byte) {
	p.parts = append(p.parts, part)
	p.size += int64(len(part))
}

// Grow makes room for n more parts.
func (p *Payload) Grow(n int) { p.parts = slices.Grow(p.parts, n) }

// Size returns the number of bytes.
func (p *Payload) Size() int64 { return p.size }

// Reader reads the body from its start.
func (p *Payload) Reader() io.ReadCloser {
	b := net.Buffers(slices.Clone(p.parts)) // Buffers drops parts as it is read
	return io.NopCloser(&b)
}

// Bytes returns the body in one piece.
func (p *Payload) Bytes() []byte {
	body := make([]byte, 0, p.size)
	for _, part := range p.parts {
		body = append(body, part...)
	}
	return body
}
