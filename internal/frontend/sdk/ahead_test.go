package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
	"dure/client/ahead"
)

// A host that reads nothing has a bounded number of bytes made for it, however long its lines
// are; once it reads, all of them come, in their order.
func TestSlowHostIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, size = 40, 900_000
		d := newDesk(t)
		d.request("1", `{"subtype":"initialize"}`)
		d.next("control_response")
		d.say(`{"type":"user","uuid":"` + newUUID() + `","message":{"role":"user","content":"go"}}`)
		prompt, ok := d.commands(1)[0].(agent.Prompt)
		if !ok {
			t.Fatal("no prompt has come")
		}
		long := strings.Repeat("x", size)
		d.w.emit(agent.InputAdded{Input: prompt.ID, Text: prompt.Text}, agent.TurnStarted{Turn: "t"})
		synctest.Wait()
		for i := range events {
			d.w.emit(agent.ModelAnswered{Turn: "t", Answer: agent.Answer{Message: agent.Message{
				Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: fmt.Sprintf("%d %s", i, long)}},
			}}})
		}
		synctest.Wait()
		taken := events - len(d.w.events)
		if most := (ahead.Most+maxWait)/size + 4; taken > most || taken < most/2 { // and what is in between
			t.Errorf("%d lines of %d bytes are ahead of who reads none, and not about %d", taken, size, most)
		}
		for i := range events {
			var said struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(d.next("assistant")["message"], &said); err != nil || len(said.Content) != 1 || said.Content[0].Text != fmt.Sprintf("%d %s", i, long) {
				t.Fatalf("answer %d: %v, %.80v", i, err, said)
			}
		}
	})
}
