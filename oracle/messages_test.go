package oracle_test

import (
	"context"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"dure/agent"
)

// messagesClient returns Anthropic's client for a server on loopback.
func messagesClient(baseURL string) sdk.Client {
	return sdk.NewClient(
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(),
		option.WithBaseURL(baseURL), option.WithAPIKey("key"), option.WithMaxRetries(0),
	)
}

func readMessages(ctx context.Context, baseURL string) (said, error) {
	client := messagesClient(baseURL)
	stream := client.Messages.NewStreaming(ctx, sdk.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 100,
		Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hello"))},
	})
	defer stream.Close()
	var m sdk.Message
	inputs := map[int64]string{} // of calls: the library's sum drops one that is no JSON
	for stream.Next() {
		e := stream.Current()
		inputs[e.Index] += e.Delta.PartialJSON
		if err := m.Accumulate(e); err != nil {
			return messagesSaid(m, inputs), err
		}
	}
	return messagesSaid(m, inputs), stream.Err()
}

func messagesSaid(m sdk.Message, inputs map[int64]string) said {
	u := m.Usage
	s := said{
		ID: m.ID, Model: m.Model, Stop: string(m.StopReason), Detail: m.StopSequence,
		Usage: agent.Usage{
			Input: int(u.InputTokens), Output: int(u.OutputTokens), CacheRead: int(u.CacheReadInputTokens),
			CacheWrite: int(u.CacheCreationInputTokens), CacheHour: int(u.CacheCreation.Ephemeral1hInputTokens),
		},
	}
	if s.Detail == "" {
		s.Detail = m.StopDetails.Explanation
	}
	if s.Detail == "" {
		s.Detail = string(m.StopDetails.Category)
	}
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			if b.Text != "" {
				s.Blocks = append(s.Blocks, block{Kind: "text", Text: b.Text})
			}
		case "thinking":
			s.Blocks = append(s.Blocks, block{Kind: "thinking", Text: b.Thinking, Signature: b.Signature})
		case "redacted_thinking":
			s.Blocks = append(s.Blocks, block{Kind: "thinking", Raw: canonical(b.RawJSON(), false)})
		case "tool_use":
			input := inputs[int64(i)]
			if input == "" {
				input = string(b.Input)
			}
			s.Blocks = append(s.Blocks, call(b.ID, b.Name, input))
		default:
			s.Blocks = append(s.Blocks, block{Kind: "raw", Raw: canonical(b.RawJSON(), false)})
		}
	}
	return s
}

// sendMessages has the library read and send a request.
func sendMessages(ctx context.Context, baseURL string, body []byte) error {
	var p sdk.MessageNewParams
	if err := decode(body, &p); err != nil {
		return err
	}
	client := messagesClient(baseURL)
	stream := client.Messages.NewStreaming(ctx, p)
	stream.Next()
	return errors.Join(stream.Err(), stream.Close())
}

// sendBetaMessages does so with what is still behind a header of its own.
func sendBetaMessages(ctx context.Context, baseURL string, body []byte) error {
	var p sdk.BetaMessageNewParams
	if err := decode(body, &p); err != nil {
		return err
	}
	p.Betas = []sdk.AnthropicBeta{sdk.AnthropicBetaThinkingBindingControls2026_08_01}
	client := messagesClient(baseURL)
	stream := client.Beta.Messages.NewStreaming(ctx, p)
	stream.Next()
	return errors.Join(stream.Err(), stream.Close())
}
