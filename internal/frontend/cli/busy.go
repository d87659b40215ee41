package cli

import (
	"sync"
	"time"

	"dure/internal/frontend/text"
)

// busyAfter is how long something may take before it is said what goes on.
const busyAfter = time.Second

// busy says on standard error what goes on, once that has taken a while, until
// stop is called. Where no line may come and go it says nothing.
func (c *CLI) busy(what text.Key) (stop func()) {
	if !c.Progress {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began := c.Now()
		tick := time.NewTicker(busyAfter)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-tick.C:
				shown = true
				line := c.Text.Say(what) + " · " + took(c.Now().Sub(began).Truncate(time.Second))
				c.Err.Write([]byte("\r\x1b[K" + text.Cut(line, c.lineWidth()))) //nolint:errcheck // nothing depends on it
			case <-done:
				if shown {
					c.Err.Write([]byte("\r\x1b[K")) //nolint:errcheck // nothing depends on it
				}
				return
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(done) })
		<-ended
	}
}

// Busy is for what commands do themselves: it says what goes on, once that has
// taken a while, until stop is called.
func (c *CLI) Busy(what text.Key) (stop func()) { return c.busy(what) }

// lineWidth is how wide a line on the terminal may be; one column stays free.
func (c *CLI) lineWidth() int {
	const usual = 80
	if n := c.columns(); n > 1 {
		return n - 1
	}
	return usual - 1
}

// columns is the width of the terminal; 0 = there is none, or it is not known.
func (c *CLI) columns() int {
	if c.Columns == nil {
		return 0
	}
	return c.Columns()
}
