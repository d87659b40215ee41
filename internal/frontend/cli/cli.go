// Package cli is the command line as people and scripts see it: line mode,
// print mode, and the commands that show something.
//
// It draws what the events of a session say and sends commands; it keeps no
// state of a session beyond what the screen needs, decides nothing, and knows
// no session but through [client.Client]. All that it prints of a model or a
// tool has been made harmless for a terminal. One goroutine follows the events
// of the session on show and is waited for; one reads the terminal in line mode
// and ends with its input, which for a terminal is the end of the process.
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/ahead"
	"dure/internal/frontend/text"
)

// Config is what the commands need. All fields from Client to
// Err, and Now, are required.
type Config struct {
	Client client.Client
	Text   text.Catalog
	In     io.Reader
	Out    io.Writer // answers, lists, JSON: what a script reads
	Err    io.Writer // progress and errors

	// Signals has os.Interrupt and SIGTERM. nil = there are none.
	Signals <-chan os.Signal

	Now func() time.Time

	// Progress says that Err is a terminal on which a line may come and go, Plain
	// that only ASCII is sure to be shown.
	Progress bool
	Plain    bool

	// Columns is the width of the terminal that Out is; it returns 0, or is nil,
	// where Out is none.
	Columns func() int
}

// CLI runs commands, one at a time.
type CLI struct {
	Config
}

// New returns a CLI.
func New(cfg Config) *CLI {
	return &CLI{Config: cfg}
}

// encode writes v as indented JSON.
func (c *CLI) encode(v any) error {
	e := json.NewEncoder(c.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// tell asks a query and writes the answer, as JSON or as write does.
func tell[T any](ctx context.Context, c *CLI, q agent.Query, asJSON bool, write func(*bufio.Writer, T)) error {
	v, err := client.Query[T](ctx, c.Client, q)
	if err != nil {
		return err
	}
	return c.put(v, asJSON, func(w *bufio.Writer) { write(w, v) })
}

// wait asks a query that may take long, and says meanwhile what goes on.
func wait[T any](ctx context.Context, c *CLI, what text.Key, q agent.Query) (T, error) {
	defer c.busy(what)()
	return client.Query[T](ctx, c.Client, q)
}

// put writes v, as JSON or as write does.
func (c *CLI) put(v any, asJSON bool, write func(*bufio.Writer)) error {
	if asJSON {
		return c.encode(v)
	}
	return c.text(write)
}

// found is an event, or the error that ended the events.
type found struct {
	event agent.Event
	err   error

	size int64
	room *ahead.Room // that it takes
}

// taken gives back the room of an event that is not ahead any more.
func (f found) taken() {
	if f.room != nil {
		f.room.Give(f.size)
	}
}

// follow hands the events of s after seq to the returned channel, which is
// closed behind the last of them. Each that is received has to be taken: of
// those that were not, there are [ahead.Most] bytes at most, and the others
// stay where they are kept. stop ends it and waits for that.
func follow(ctx context.Context, s *client.Session, after int64) (events <-chan found, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	// As many as one burst of fragments may be ahead of the screen.
	const most = 256
	out, room := make(chan found, most), ahead.New(ahead.Most)
	go func() {
		defer close(out)
		for e, err := range s.Events(ctx, after) {
			if err != nil && ctx.Err() != nil {
				return
			}
			f := found{e, err, ahead.Weight(e), room}
			if !room.Take(ctx, f.size) {
				return
			}
			select {
			case out <- f:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() {
		cancel()
		for range out { // until the goroutine has closed it
		}
	}
}

// isTerm reports whether a signal asks the program to end rather than the turn.
func isTerm(s os.Signal) bool { return s != os.Interrupt }

// buffered runs f with a buffer before Out.
func (c *CLI) buffered(f func(w *bufio.Writer) error) error {
	w := bufio.NewWriterSize(c.Out, 64<<10)
	if err := f(w); err != nil {
		w.Flush()
		return err
	}
	return w.Flush()
}

// text writes what write does.
func (c *CLI) text(write func(*bufio.Writer)) error {
	return c.buffered(func(w *bufio.Writer) error {
		write(w)
		return nil
	})
}

// writeLines writes lines that have been made harmless.
func writeLines(w *bufio.Writer, lines []string) {
	for _, l := range lines {
		w.WriteString(l + "\n")
	}
}

// Lines writes what there is, one a line, or as a JSON list.
func Lines(w io.Writer, lines []string, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(lines)
	}
	for _, l := range lines {
		if _, err := io.WriteString(w, l+"\n"); err != nil {
			return err
		}
	}
	return nil
}
