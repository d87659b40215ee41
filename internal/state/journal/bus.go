package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// busQueue is how many messages a slow subscriber of a [LocalBus] may be behind.
// What comes beyond is lost to it.
const busQueue = 256

// LocalBus is a bus within one process. Every subscription has a goroutine,
// which ends with it.
type LocalBus struct {
	mu   sync.Mutex
	next int
	subs map[int]*subscription
	ans  map[string]func(context.Context, []byte) ([]byte, error)
}

type subscription struct {
	subject string
	queue   chan notice
}

type notice struct {
	subject string
	b       []byte
}

// NewBus returns a bus without subscribers.
func NewBus() *LocalBus {
	return &LocalBus{
		subs: map[int]*subscription{},
		ans:  map[string]func(context.Context, []byte) ([]byte, error){},
	}
}

// Publish hands b to all who subscribed to its subject. It never waits. b must
// not be changed afterwards.
func (b *LocalBus) Publish(subject string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		if !matches(s.subject, subject) {
			continue
		}
		select {
		case s.queue <- notice{subject, data}:
		default: // the subscriber catches up from the log
		}
	}
}

// matches knows subjects, and subjects that end in ".>" for all that begin so.
func matches(pattern, subject string) bool {
	prefix, many := strings.CutSuffix(pattern, ">")
	if many && strings.HasSuffix(prefix, ".") {
		return strings.HasPrefix(subject, prefix)
	}
	return pattern == subject
}

// Subscribe calls f, one message after the other, until stop is called. stop
// waits for f to return; f must not call it.
func (b *LocalBus) Subscribe(subject string, f func(subject string, b []byte)) (stop func(), err error) {
	if subject == "" {
		return nil, errors.New("subscribing: a subject is needed")
	}
	s := &subscription{subject, make(chan notice, busQueue)}
	b.mu.Lock()
	id := b.next
	b.next++
	b.subs[id] = s
	b.mu.Unlock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range s.queue {
			f(n.subject, n.b)
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			b.mu.Lock()
			delete(b.subs, id)
			close(s.queue) // Publish holds the lock while it sends
			b.mu.Unlock()
		})
		<-done
	}, nil
}

// Respond answers requests to a subject until stop is called. There is one who
// answers for each subject.
func (b *LocalBus) Respond(subject string, f func(ctx context.Context, b []byte) ([]byte, error)) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ans[subject] != nil {
		return nil, fmt.Errorf("answering %s: somebody does already", subject)
	}
	b.ans[subject] = f
	var once sync.Once
	return func() {
		once.Do(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.ans, subject)
		})
	}, nil
}

// Request asks whoever answers a subject. The answer is made on the goroutine of
// the caller.
func (b *LocalBus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	f := b.ans[subject]
	b.mu.Unlock()
	if f == nil {
		return nil, fmt.Errorf("asking %s: %w", subject, ErrNoPeer)
	}
	return f(ctx, data)
}
