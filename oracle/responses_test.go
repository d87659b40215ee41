package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	sdk "github.com/openai/openai-go/v3/responses"

	"dure/agent"
)

func readResponses(ctx context.Context, baseURL string) (said, error) {
	client := sdk.NewResponseService(openAI(baseURL)...)
	stream := client.NewStreaming(ctx, sdk.ResponseNewParams{
		Model: "gpt-6-sol", Input: sdk.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	})
	defer stream.Close()
	var last sdk.Response
	items := map[int64]sdk.ResponseOutputItemUnion{}
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case sdk.ResponseCreatedEvent:
			last = e.Response
		case sdk.ResponseOutputItemDoneEvent:
			items[e.OutputIndex] = e.Item
		case sdk.ResponseErrorEvent:
			return responsesSaid(last, items), errors.New(e.Message)
		case sdk.ResponseFailedEvent:
			return responsesSaid(e.Response, items), errors.New(e.Response.Error.Message)
		case sdk.ResponseCompletedEvent:
			last = e.Response
		case sdk.ResponseIncompleteEvent:
			last = e.Response
		}
	}
	return responsesSaid(last, items), stream.Err()
}

// responsesSaid takes the items as the last event has them, or as they were done.
func responsesSaid(r sdk.Response, items map[int64]sdk.ResponseOutputItemUnion) said {
	u := r.Usage
	read, written := u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens
	s := said{
		ID: r.ID, Model: r.Model,
		Usage: agent.Usage{
			Input: int(u.InputTokens - read - written), Output: int(u.OutputTokens),
			CacheRead: int(read), CacheWrite: int(written),
		},
	}
	if len(r.Output) == 0 {
		for _, i := range slices.Sorted(maps.Keys(items)) {
			r.Output = append(r.Output, items[i])
		}
	}
	calls := false
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			text := ""
			for _, part := range item.Content {
				text += part.Text + part.Refusal
				if part.Refusal != "" {
					s.Detail = part.Refusal
				}
			}
			if text != "" {
				s.Blocks = append(s.Blocks, block{Kind: "text", Text: text})
			}
		case "reasoning":
			var parts []string
			for _, part := range item.Summary {
				parts = append(parts, part.Text)
			}
			if parts == nil { // a model that shows all of its reasoning
				for _, part := range item.Content {
					parts = append(parts, part.Text)
				}
			}
			s.Blocks = append(s.Blocks, block{Kind: "thinking", Text: strings.Join(parts, "\n\n"), Raw: canonical(item.RawJSON(), false)})
		case "function_call":
			calls = true
			s.Blocks = append(s.Blocks, call(item.CallID, item.Name, item.Arguments.OfString))
		default:
			s.Blocks = append(s.Blocks, block{Kind: "raw", Raw: canonical(item.RawJSON(), false)})
		}
	}
	s.Stop = string(responsesStop(r, calls, s.Detail != ""))
	if s.Stop == string(agent.StopRefusal) && s.Detail == "" {
		s.Detail = r.IncompleteDetails.Reason
	}
	return s
}

func responsesStop(r sdk.Response, calls, refused bool) agent.StopReason {
	switch {
	case r.Status == sdk.ResponseStatusIncomplete:
		switch reason := r.IncompleteDetails.Reason; reason {
		case "max_output_tokens":
			return agent.StopLength
		case "content_filter":
			return agent.StopRefusal
		default:
			return agent.StopReason(reason)
		}
	case r.Status != sdk.ResponseStatusCompleted:
		return agent.StopReason(r.Status)
	case calls:
		return agent.StopCalls
	case refused:
		return agent.StopRefusal
	}
	return agent.StopEnd
}

// sendResponses has the library read and send a request. An item of a type that
// the library does not know would be kept as it is: that is a failure.
func sendResponses(ctx context.Context, baseURL string, body []byte) error {
	var p sdk.ResponseNewParams
	if err := decode(body, &p); err != nil {
		return err
	}
	for i, item := range p.Input.OfInputItemList {
		if _, raw := item.Overrides(); raw {
			return fmt.Errorf("item %d is of a type that the library does not know", i)
		}
	}
	client := sdk.NewResponseService(openAI(baseURL)...)
	stream := client.NewStreaming(ctx, p)
	stream.Next()
	return errors.Join(stream.Err(), stream.Close())
}
