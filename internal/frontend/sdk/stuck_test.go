package sdk

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

// A host that is there and does not read cannot keep the program from ending: a signal to end
// holds at once, and so does a second interrupt, or a first that nobody takes for long.
func TestSignalsPastAHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signals     []os.Signal
		least, most time.Duration
	}{
		"told to end":       {[]os.Signal{syscall.SIGTERM}, 0, 2 * cutTime},
		"interrupted":       {[]os.Signal{os.Interrupt}, drainTime, drainTime + 2*cutTime},
		"interrupted twice": {[]os.Signal{os.Interrupt, os.Interrupt}, 0, 2 * cutTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, len(tt.signals))
				d := newDeskOn(t, newWorld(), agent.Open{}, func(c *Config) { c.Signals = signals })
				d.request("1", `{"subtype":"initialize"}`)
				d.next("control_response")
				d.w.emit(agent.TurnStarted{Turn: "t"})
				for range 40 {
					d.w.emit(agent.ModelAnswered{Turn: "t", Answer: agent.Answer{Message: agent.Message{
						Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: strings.Repeat("x", 900_000)}},
					}}})
				}
				synctest.Wait() // until nothing is left to do but to wait for who reads
				began := time.Now()
				for _, s := range tt.signals {
					signals <- s
					synctest.Wait()
				}
				code := <-d.code
				if took := time.Since(began); code != codeTerminated || took < tt.least || took > tt.most {
					t.Errorf("it ends with %d after %v", code, took)
				}
				d.code <- code
			})
		})
	}
}

// An interrupt ends no program whose host reads, however many come.
func TestInterruptsOfAHostThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 3)
		d := newDeskOn(t, newWorld(), agent.Open{}, func(c *Config) { c.Signals = signals })
		d.request("1", `{"subtype":"initialize"}`)
		d.next("control_response")
		for range cap(signals) {
			signals <- os.Interrupt
		}
		synctest.Wait()
		time.Sleep(2 * drainTime)
		d.request("2", `{"subtype":"get_binary_version"}`)
		d.next("control_response")
		if c := d.commands(1)[0]; c != (agent.Interrupt{}) {
			t.Errorf("%+v", c)
		}
	})
}
