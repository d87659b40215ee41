package control

import (
	"sync"
	"time"
)

// How much may wait to be written before who has more to say waits, or leaves it unsaid, in
// bytes. What answers a host may wait longest: one that reads no answers while it sends
// requests would else be stuck.
const (
	liveRoom  = 256 << 10
	eventRoom = 1 << 20
	replyRoom = 16 << 20
)

// outbox holds messages until they are written. It is safe for concurrent use.
type outbox struct {
	gone chan struct{} // closed when nothing can be written any more

	mu    sync.Mutex
	cond  *sync.Cond
	queue [][]byte // guarded by mu
	size  int      // of queue, in bytes; guarded by mu
	wrote int      // messages that are written; guarded by mu
	over  bool     // nothing more comes; guarded by mu
	err   error    // why nothing can be written any more; guarded by mu
}

func newOutbox() *outbox {
	o := &outbox{gone: make(chan struct{})}
	o.cond = sync.NewCond(&o.mu)
	return o
}

// put has a message written, as soon as no more than room bytes wait before it. It is dropped
// when nothing can be written any more.
func (o *outbox) put(data []byte, room int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > room && o.err == nil && !o.over {
		o.cond.Wait()
	}
	o.add(data)
}

// offer has a message written unless too much waits already.
func (o *outbox) offer(data []byte, room int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size <= room {
		o.add(data)
	}
}

// add is called with mu held.
func (o *outbox) add(data []byte) {
	if o.err != nil || o.over {
		return
	}
	o.queue, o.size = append(o.queue, data), o.size+len(data)
	o.cond.Broadcast()
}

// next returns the next message to be written.
func (o *outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.over && o.err == nil {
		o.cond.Wait()
	}
	if len(o.queue) == 0 || o.err != nil {
		return nil, false
	}
	data := o.queue[0]
	o.queue[0] = nil
	o.queue, o.size = o.queue[1:], o.size-len(data)
	o.cond.Broadcast()
	return data, true
}

// drain writes messages until there are no more.
func (o *outbox) drain(rw Conn) {
	for {
		data, ok := o.next()
		if !ok {
			return
		}
		if err := rw.Write(data); err != nil {
			o.fail(err)
			return
		}
		o.mu.Lock()
		o.wrote++
		o.mu.Unlock()
	}
}

// await waits until done is closed, as long as within each time a message is written. When
// none is, nothing can be written any more.
func (o *outbox) await(done <-chan struct{}, each time.Duration) {
	late := time.NewTimer(each)
	defer late.Stop()
	most := time.NewTimer(finishTime) // a host that reads a message now and then does not hold it up for ever
	defer most.Stop()
	for before := o.written(); ; {
		select {
		case <-done:
			return
		case <-o.gone:
			return
		case <-most.C:
			o.fail(errGone)
			return
		case <-late.C:
		}
		now := o.written()
		if now == before {
			o.fail(errGone)
			return
		}
		before = now
		late.Reset(each)
	}
}

func (o *outbox) written() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrote
}

// finish says that nothing more comes. What waits is written.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.cond.Broadcast()
}

// fail says that nothing can be written any more.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		close(o.gone)
	}
	o.queue, o.size = nil, 0
	o.cond.Broadcast()
}

// broken is closed when nothing can be written any more.
func (o *outbox) broken() <-chan struct{} { return o.gone }
