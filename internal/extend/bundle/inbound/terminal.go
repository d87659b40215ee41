package inbound

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"dure/internal/extend/bundle"
)

// LineEvent is the event of a line that is typed.
const LineEvent = "line"

// Terminal is a [Connector] that takes lines and writes the answers, one after the other.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	// Clean makes an answer harmless for Out; nil = it stays as it is.
	Clean func(string) string
	// SignIn says what a person has to do; nil = the answer alone does.
	SignIn func(SignIn) string
	// Well is called when a line was answered; nil = nobody wants to know.
	Well func()
}

// Run implements [Connector]. A line of more than 256 KiB ends it. The goroutine that reads
// ends with In: a reader cannot be called back.
func (t *Terminal) Run(ctx context.Context, sink Sink) error {
	type read struct {
		line string
		err  error
	}
	lines := make(chan read)
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	later := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(t.In)
		in.Buffer(nil, maxText)
		for in.Scan() {
			select {
			case lines <- read{line: in.Text()}:
			case <-ctx.Done():
				return
			}
		}
		if err := in.Err(); err != nil {
			select {
			case lines <- read{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	for {
		select {
		case r, ok := <-lines:
			switch {
			case !ok:
				return nil
			case r.err != nil:
				return fmt.Errorf("reading the terminal: %w", r.err)
			case strings.TrimSpace(r.line) == "":
				continue
			}
			d, err := t.answer(ctx, sink, r.line)
			if err != nil {
				return err
			}
			if d != nil && len(d.SignIns) > 0 {
				all.Go(func() {
					if text, ok := d.Later(ctx); ok {
						select {
						case later <- text:
						case <-ctx.Done():
						}
					}
				})
			}
		case text := <-later:
			if err := t.say(text); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// answer answers a line, and returns what became of it; nil = it was not delivered.
func (t *Terminal) answer(ctx context.Context, sink Sink, line string) (*Delivery, error) {
	d, err := sink(ctx, bundle.Message{Event: LineEvent, Text: line})
	text := ""
	if err == nil {
		text, err = d.Wait(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d != nil && t.SignIn != nil && err == nil {
		for _, s := range d.SignIns {
			if !strings.Contains(text, s.URL) {
				text = strings.TrimSpace(text + "\n" + t.SignIn(s))
			}
		}
	}
	if err != nil {
		text = strings.TrimSpace(text + "\n" + err.Error())
	}
	if err := t.say(text); err != nil {
		return nil, err
	}
	if t.Well != nil {
		t.Well()
	}
	return d, nil
}

// say writes a text.
func (t *Terminal) say(text string) error {
	if t.Clean != nil {
		text = t.Clean(text)
	}
	if _, err := fmt.Fprintln(t.Out, text); err != nil {
		return errors.Join(errWrite, err)
	}
	return nil
}

var errWrite = errors.New("the answer cannot be written")
