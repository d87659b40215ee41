package gemini

import (
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// finish emits the whole answer, or says why there is none.
func (a *answer) finish() error {
	a.complete = true
	stop, err := a.stop()
	if err != nil {
		return err
	}
	if err := a.showUsage(); err != nil {
		return err
	}
	final := &agent.Answer{
		Message: agent.Message{Role: agent.Assistant},
		Stop:    stop, Usage: a.usage,
		ID: wire.Bound(a.id, wire.MaxID), Model: wire.Bound(a.model, wire.MaxID), RequestID: a.in.RequestID,
	}
	if stop != agent.StopEnd && stop != agent.StopCalls && stop != agent.StopLength {
		final.Detail = wire.Bound(a.detail(), wire.MaxMessage)
	}
	for _, b := range a.blocks {
		final.Message.Blocks = append(final.Message.Blocks, b.finish(a.provider))
	}
	return a.emit(agent.Delta{Kind: agent.DeltaFinal, Final: final})
}

// stop says what the reason to end means. A call that the API could not read
// becomes one that the model gets to read again, if it can be told which tool
// it was for; else the answer is lost.
func (a *answer) stop() (agent.StopReason, error) {
	if a.blocked {
		return agent.StopRefusal, nil
	}
	switch a.reason {
	case "STOP":
	case "MAX_TOKENS", "CONTINUATION":
		return agent.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return agent.StopRefusal, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		tool := a.named()
		if tool == "" || a.req.NoTools {
			return "", a.lost()
		}
		c := agent.InvalidInput(a.callID(""), tool, a.message, "the call could not be read")
		return agent.StopCalls, a.made(c, "")
	default:
		if len(a.blocks) == 0 {
			return "", a.lost()
		}
		return agent.StopReason(wire.Bound(a.reason, wire.MaxCode)), nil
	}
	for _, b := range a.blocks {
		if b.kind == agent.CallBlock {
			return agent.StopCalls, nil
		}
	}
	return agent.StopEnd, nil
}

// named returns the tool that the message names, the one with the longest name.
func (a *answer) named() string {
	tool, longest := "", 0
	for _, t := range a.req.Tools {
		if name := toolName(a.req, t.Name); len(name) > longest && strings.Contains(a.message, name) {
			tool, longest = t.Name, len(name)
		}
	}
	return tool
}

// lost is the error of an answer that came to nothing; another attempt may
// succeed.
func (a *answer) lost() error {
	return &agent.ModelError{Class: agent.FailServer, Code: a.reason, RequestID: a.in.RequestID, Message: "the model gave no usable answer: " + a.detail()}
}

// detail returns the reason as the API gave it.
func (a *answer) detail() string {
	said := a.reason
	if a.blocked {
		said = "the prompt was blocked: " + said
	}
	if a.message != "" {
		said += ": " + a.message
	}
	return said
}

func (b *block) finish(provider string) agent.Block {
	done := agent.Block{Type: b.kind, Text: b.text.String(), Signature: b.signature, Raw: b.raw}
	if b.kind == agent.CallBlock {
		done.Call = &b.call
	}
	if b.signature != "" || b.kind == agent.RawBlock || b.kind == agent.ThinkingBlock {
		done.Provider = provider
	}
	return done
}
