package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"dure/client/ahead"
	"dure/client/protocol"
)

const (
	maxIn   = 32 << 20  // bytes of a line that is read
	maxOut  = 1_000_000 // bytes of a line that is written: hosts give up at 1 MiB
	maxSent = 256       // lines that wait for a slow reader
	maxWait = 8 << 20   // bytes of them
)

// errGone is what a host is asked that does not answer any more.
var errGone = errors.New("the host is gone")

// line is a line of the input, or what is wrong with it.
type line struct {
	data []byte
	envelope
	wrong string
}

// envelope is what every line begins with.
type envelope struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
}

// read takes the input apart. What the host answers is handed to whoever has asked at once:
// they may be what the loop waits for.
func (h *Host) read(in io.Reader) {
	defer close(h.lines)
	r := protocol.NewReader(in, maxIn)
	for {
		data, err := r.Next()
		l := line{data: data}
		switch {
		case errors.Is(err, protocol.ErrTooLong):
			l.wrong = "it is longer than 32 MiB"
		case err != nil:
			return
		default:
			if err := json.Unmarshal(data, &l.envelope); err != nil {
				l.wrong = err.Error()
			}
		}
		if l.wrong == "" && l.Type == "control_response" {
			h.calls.answer(l.Response)
			continue
		}
		select {
		case h.lines <- l:
		case <-h.ctx.Done():
			return
		}
	}
}

// outbox writes lines, one after another. It is safe for concurrent use.
type outbox struct {
	ctx   context.Context
	send  chan []byte
	room  *ahead.Room   // of what waits
	over  chan struct{} // closed when nothing more is to be written
	done  chan struct{} // closed when nothing more is written
	gone  chan struct{} // closed when nobody reads
	mum   atomic.Bool   // nothing is written any more
	waits atomic.Int32  // lines that somebody waits with until there is room
	err   error         // once done is closed

	life context.Context // of what is kept: it ends when nobody reads, and with close
	end  context.CancelFunc
}

func newOutbox(ctx context.Context, w io.Writer) *outbox {
	o := &outbox{ctx: ctx, send: make(chan []byte, maxSent), room: ahead.New(maxWait), over: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{})}
	o.life, o.end = context.WithCancel(context.WithoutCancel(ctx))
	go o.write(w) // ends with close, or with the program where nobody reads
	return o
}

func (o *outbox) write(w io.Writer) {
	defer close(o.done)
	b := bufio.NewWriterSize(w, 64<<10)
	put := func(data []byte) {
		defer o.room.Give(int64(len(data)))
		if o.err == nil {
			_, o.err = b.Write(data)
		}
		if o.err == nil && len(o.send) == 0 {
			o.err = b.Flush()
		}
		if o.err != nil {
			select {
			case <-o.gone:
			default:
				close(o.gone)
				o.end()
			}
		}
	}
	for {
		select {
		case data := <-o.send:
			put(data)
		case <-o.over:
			for {
				select {
				case data := <-o.send:
					put(data)
				default:
					return
				}
			}
		}
	}
}

// put writes a value as a line. It waits for a slow reader, but not when the host ends.
func (o *outbox) put(v any) {
	if !o.mum.Load() {
		o.line(encode(v))
	}
}

// line writes a line, and waits as put does.
func (o *outbox) line(data []byte) {
	if o.mum.Load() {
		return
	}
	if o.room.Try(int64(len(data))) {
		select {
		case o.send <- data:
			return
		default:
		}
	} else {
		o.waits.Add(1)
		has := o.room.Take(o.ctx, int64(len(data)))
		o.waits.Add(-1)
		if !has {
			return
		}
	}
	o.waits.Add(1)
	defer o.waits.Add(-1)
	select {
	case o.send <- data:
	case <-o.gone:
	case <-o.ctx.Done():
	}
}

// mute has nothing more written than waits already.
func (o *outbox) mute() { o.mum.Store(true) }

// close writes what is left, and returns when that is done or the time is over.
func (o *outbox) close(limit time.Duration) error {
	close(o.over)
	defer o.end()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.done:
		return o.err
	case <-timer.C:
		return errors.New("nobody reads them")
	}
}

// marshal is JSON as hosts expect it.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// encode is a value as a line that every host reads: one that would be too long has its
// longest parts shortened. A request to the host is none of those, see [Host.Ask].
func encode(v any) []byte {
	data, err := marshal(v)
	if r, ok := v.(replied); ok && err != nil && r.Response.Response != nil {
		return encode(replied{r.Type, answered{Subtype: "error", RequestID: r.Response.RequestID, Error: err.Error()}})
	}
	if err != nil {
		data, _ = marshal(map[string]string{"type": "system", "subtype": "informational", "level": "error", "content": err.Error()})
		return data
	}
	if len(data) > maxOut {
		return shorten(data)
	}
	return data
}
