package oracle_test

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"dure/agent"
)

// openAI returns the options of OpenAI's clients for a server on loopback. The
// clients of single APIs read no environment.
func openAI(baseURL string) []option.RequestOption {
	return []option.RequestOption{option.WithBaseURL(baseURL + "/v1/"), option.WithAPIKey("key"), option.WithMaxRetries(0)}
}

func readChat(ctx context.Context, baseURL string) (said, error) {
	client := sdk.NewChatCompletionService(openAI(baseURL)...)
	stream := client.NewStreaming(ctx, sdk.ChatCompletionNewParams{
		Model: "gpt-5.4", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hello")},
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	})
	defer stream.Close()
	var acc sdk.ChatCompletionAccumulator
	var usage sdk.CompletionUsage // the library's sum leaves out what was written to the cache
	thinking := ""
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			return chatSaid(acc.ChatCompletion, usage, thinking), errors.New("the library cannot add up the chunks")
		}
		if chunk.JSON.Usage.Valid() {
			usage = chunk.Usage
		}
		for _, c := range chunk.Choices {
			// The library has no name for what compatible servers think, but keeps it.
			for _, name := range []string{"reasoning_content", "reasoning"} {
				var piece string
				_ = json.Unmarshal([]byte(c.Delta.JSON.ExtraFields[name].Raw()), &piece) // or there is none
				thinking += piece
			}
		}
	}
	return chatSaid(acc.ChatCompletion, usage, thinking), stream.Err()
}

// chatStops are the reasons that the API documents.
var chatStops = map[string]agent.StopReason{
	"stop": agent.StopEnd, "length": agent.StopLength, "tool_calls": agent.StopCalls,
	"function_call": agent.StopCalls, "content_filter": agent.StopRefusal,
}

func chatSaid(c sdk.ChatCompletion, u sdk.CompletionUsage, thinking string) said {
	read, written := u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
	s := said{
		ID: c.ID, Model: c.Model,
		Usage: agent.Usage{
			Input: int(u.PromptTokens - read - written), Output: int(u.CompletionTokens),
			CacheRead: int(read), CacheWrite: int(written),
		},
	}
	if thinking != "" {
		s.Blocks = append(s.Blocks, block{Kind: "thinking", Text: thinking})
	}
	if len(c.Choices) == 0 {
		return s
	}
	m := c.Choices[0].Message
	if text := m.Content + m.Refusal; text != "" {
		s.Blocks = append(s.Blocks, block{Kind: "text", Text: text})
	}
	for _, c := range m.ToolCalls {
		s.Blocks = append(s.Blocks, call(c.ID, c.Function.Name, c.Function.Arguments))
	}
	s.Stop = c.Choices[0].FinishReason
	if known, ok := chatStops[s.Stop]; ok {
		s.Stop = string(known)
	}
	switch { // what came says more than the reason does
	case m.Refusal != "":
		s.Stop, s.Detail = string(agent.StopRefusal), m.Refusal
	case s.Stop == string(agent.StopEnd) && len(m.ToolCalls) > 0:
		s.Stop = string(agent.StopCalls)
	}
	return s
}

// chatUntold takes out the form of thinking that goes back to some servers.
func chatUntold(ours *said, _ said) {
	for i := range ours.Blocks {
		ours.Blocks[i].Raw = ""
	}
}

// sendChat has the library read and send a request.
func sendChat(ctx context.Context, baseURL string, body []byte) error {
	var p sdk.ChatCompletionNewParams
	if err := decode(body, &p); err != nil {
		return err
	}
	client := sdk.NewChatCompletionService(openAI(baseURL)...)
	stream := client.NewStreaming(ctx, p)
	stream.Next()
	return errors.Join(stream.Err(), stream.Close())
}
