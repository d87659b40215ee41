package foreign_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/internal/state/archive/foreign"
)

// What is left out is said, also what nobody has heard of.
func TestNothingLeftOutUnsaid(t *testing.T) {
	for _, c := range []struct {
		source foreign.Source
		data   string
		want   []string
	}{
		{foreign.ClaudeCode, strings.Join([]string{
			`{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}`,
			`{"type":"attachment","uuid":"2","parentUuid":"1","sessionId":"s","attachment":{"type":"file"}}`,
			`{"type":"dream","sessionId":"s"}`, `{"type":"dream","sessionId":"s"}`,
			`{"type":"tag","sessionId":"s","tag":"x"}`,
			`{"type":"assistant","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"yes"}]}}`,
		}, "\n"), []string{
			"1 attachments were left out: files and reminders that the product has added by itself",
			`2 of the kind "dream" were left out: it is not known`,
		}},
		{foreign.Codex, strings.Join([]string{
			`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c"}}`,
			`{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`,
			`{"timestamp":"2026-01-01T00:00:02Z","type":"world_state","payload":{"x":1}}`,
		}, "\n"), []string{`1 of the kind "world_state" were left out: it is not known`}},
		{
			foreign.OpenCode, `{"info":{"id":"o"},"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"hi"},{"type":"hologram"}]},` +
				`{"info":{"id":"n","role":"assistant"},"parts":[{"type":"step-start"},{"type":"text","text":"yes"},{"type":"hologram"}]}]}`,
			[]string{`2 of the kind "hologram" were left out: it is not known`},
		},
	} {
		s, err := foreign.Config{Source: c.source}.Read(strings.NewReader(c.data))
		if err != nil || !slices.Equal(s.Warnings, c.want) {
			t.Errorf("%s: %v, %q", c.source, err, s.Warnings)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `{"type":"kind-%d","sessionId":"s"}`+"\n", i)
	}
	many.WriteString(`{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}`)
	if s, err := (foreign.Config{Source: foreign.ClaudeCode}).Read(strings.NewReader(many.String())); err != nil || len(s.Warnings) != 21 {
		t.Error(err, len(s.Warnings))
	}
}
