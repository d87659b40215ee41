package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/client"
)

// Events yields the stored events after seq, and then stored and live ones as they happen. A
// connection that is lost is [client.ErrDisconnected]; a server that does not come back in
// time is an error.
func (r *Remote) Events(ctx context.Context, session string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		res, err := r.connect(reading, session, after)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			yield(agent.Event{}, err)
			return
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusNoContent {
			return
		}
		watch := time.AfterFunc(r.cfg.Silence, cancel)
		defer watch.Stop()
		progress, stopped := false, false
		err = messages(res.Body, func() { watch.Reset(r.cfg.Silence) }, func(m message) error {
			switch m.event {
			case "end":
				return errEnd
			case "error":
				return problemOf([]byte(m.data), "an error")
			case "":
			default:
				return nil // about the stream itself
			}
			var e agent.Event
			if err := json.Unmarshal([]byte(m.data), &e); err != nil {
				return fmt.Errorf("reading an event: %w", err)
			}
			progress = true
			if stopped = !yield(e, nil); stopped {
				return errEnd
			}
			return nil
		})
		switch {
		case stopped || errors.Is(err, errEnd) || ctx.Err() != nil:
		case errors.Is(err, errLost):
			if !progress { // who asks again at once would ask for ever
				wait(ctx, firstWait)
			}
			if ctx.Err() == nil {
				yield(agent.Event{}, client.ErrDisconnected)
			}
		default:
			yield(agent.Event{}, err)
		}
	}
}

var (
	errEnd  = errors.New("the stream is over")
	errLost = errors.New("the stream is lost")
)

// connect begins a stream, which ends with ctx. A server that does not answer, or has no room,
// is asked again.
func (r *Remote) connect(ctx context.Context, session string, after int64) (*http.Response, error) {
	until := time.Now().Add(r.cfg.Patience)
	for pause := firstWait; ; pause = min(2*pause, longWait) {
		res, again, err := r.attempt(ctx, session, after)
		if err == nil {
			return res, nil
		}
		if !again || ctx.Err() != nil || time.Now().Add(pause).After(until) {
			if p := agent.ProblemOf(err); p != nil {
				p.Err = nil // it is over: nobody is to ask again
			}
			return nil, err
		}
		wait(ctx, pause)
	}
}

// attempt asks for a stream once, and reports whether it is worth to be asked for again. A
// server that does not say in time whether there is one does not answer.
func (r *Remote) attempt(ctx context.Context, session string, after int64) (stream *http.Response, again bool, err error) {
	try, stop := context.WithCancelCause(ctx) // ends with ctx if there is a stream
	late := time.AfterFunc(r.cfg.Silence, func() { stop(fmt.Errorf("nothing was heard for %v", r.cfg.Silence)) })
	defer late.Stop()
	req, err := r.request(try, http.MethodGet, sessionPath(session, "/events"), nil)
	if err != nil {
		stop(nil)
		return nil, false, err
	}
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	res, err := r.http.Do(req)
	if err == nil && (res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNoContent) {
		return res, false, nil
	}
	again = err != nil
	if err != nil {
		err = r.unreachable(ctx, err)
	} else {
		again = res.StatusCode == http.StatusServiceUnavailable
		err = problemIn(res)
		res.Body.Close()
	}
	if try.Err() != nil && ctx.Err() == nil {
		again, err = true, r.unreachable(ctx, context.Cause(try))
	}
	stop(nil)
	return nil, again, err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// message is what came of a stream.
type message struct{ event, data string }

// messages reads messages until f returns an error, or they end: errLost. alive is called
// with each sign of life.
func messages(from interface{ Read([]byte) (int, error) }, alive func(), f func(message) error) error {
	scan := bufio.NewScanner(from)
	scan.Buffer(make([]byte, 0, 4<<10), maxLine)
	var m message
	var data strings.Builder // its lines, put together once: there may be millions
	for scan.Scan() {
		alive()
		name, value, _ := strings.Cut(scan.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			m.event = value
		case "data":
			if data.Len() > 0 {
				data.WriteByte('\n')
			}
			data.WriteString(value)
			if data.Len() > maxLine {
				return bufio.ErrTooLong
			}
		case "":
			if scan.Text() != "" { // a remark
				continue
			}
			if m.data = data.String(); m.data != "" {
				if err := f(m); err != nil {
					return err
				}
			}
			m = message{}
			data.Reset()
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return scan.Err()
	}
	return errLost
}
