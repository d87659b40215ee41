package sdk

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// What an answer has in one is shown in pieces that lines can hold, and nothing of them is cut.
func TestLongPiece(t *testing.T) {
	t.Parallel()
	input := `{"content":"` + strings.Repeat("한\\n", maxOut/2) + strings.Repeat("\x01", maxOut) + `"}`
	var out bytes.Buffer
	h := New(Config{})
	h.out = newOutbox(t.Context(), &out)
	h.stream().delta(&part{kind: agent.CallBlock}, input)
	if err := h.out.close(time.Minute); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range bytes.Lines(out.Bytes()) {
		var e struct {
			Event struct {
				Delta struct {
					Part string `json:"partial_json"`
				}
			}
		}
		if err := json.Unmarshal(line, &e); err != nil || len(line) > maxOut+1 {
			t.Fatalf("%d bytes, %v", len(line), err)
		}
		got.WriteString(e.Event.Delta.Part)
	}
	if got.String() != input {
		t.Errorf("%d bytes of %d, and not the same", got.Len(), len(input))
	}
}
