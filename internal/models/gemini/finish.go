package gemini

import (
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// Finish emits the whole answer, or says why there is none.
func (a *answer) Finish() error {
	stop, err := a.stop()
	if err != nil {
		return err
	}
	if err := a.Count(a.usage); err != nil {
		return err
	}
	detail := ""
	if stop != agent.StopEnd && stop != agent.StopCalls && stop != agent.StopLength {
		detail = wire.Bound(a.detail(), wire.MaxMessage)
	}
	var blocks []agent.Block
	for _, b := range a.Blocks {
		blocks = append(blocks, finish(b, a.Provider))
	}
	a.ID, a.Model = wire.Bound(a.ID, wire.MaxID), wire.Bound(a.Model, wire.MaxID)
	return a.Final(blocks, stop, detail)
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
		if tool == "" || a.Request.NoTools {
			return "", a.lost()
		}
		c := agent.InvalidInput(a.callID(""), tool, a.message, "the call could not be read")
		return agent.StopCalls, a.made(c, "")
	default:
		if len(a.Blocks) == 0 {
			return "", a.lost()
		}
		return agent.StopReason(wire.Bound(a.reason, wire.MaxCode)), nil
	}
	for _, b := range a.Blocks {
		if b.Kind == agent.CallBlock {
			return agent.StopCalls, nil
		}
	}
	return agent.StopEnd, nil
}

// named returns the tool that the message names, the one with the longest name.
func (a *answer) named() string {
	tool, longest := "", 0
	for _, t := range a.Request.Tools {
		if name := toolName(a.Request, t.Name); len(name) > longest && strings.Contains(a.message, name) {
			tool, longest = t.Name, len(name)
		}
	}
	return tool
}

// lost is the error of an answer that came to nothing; another attempt may
// succeed.
func (a *answer) lost() error {
	return &agent.ModelError{Class: agent.FailServer, Code: a.reason, RequestID: a.In.RequestID, Message: "the model gave no usable answer: " + a.detail()}
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

func finish(b *wire.Block, provider string) agent.Block {
	done := agent.Block{Type: b.Kind, Text: b.Text.String(), Signature: b.Signature, Call: b.Call, Raw: b.Raw}
	if b.Signature != "" || b.Kind == agent.RawBlock || b.Kind == agent.ThinkingBlock {
		done.Provider = provider
	}
	return done
}
