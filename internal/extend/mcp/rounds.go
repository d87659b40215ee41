package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// rounds makes one request, and makes it again with answers as long as the server
// asks something before it answers.
func (l *live) rounds(ctx context.Context, try func(sdk.InputResponseMap, string) (sdk.InputRequestMap, string, error)) error {
	var answers sdk.InputResponseMap
	state, opened := "", false
	for range maxRounds {
		asked, next, err := try(answers, state)
		if visits, ok := wanted(err); ok && !opened {
			opened = true
			if err := l.visit(ctx, visits); err != nil {
				return err
			}
			continue
		}
		if err != nil || asked == nil {
			return err
		}
		if len(asked) > maxAsks {
			return fmt.Errorf("it asked %d questions before it answered; at most %d are put", len(asked), maxAsks)
		}
		if answers, err = l.answers(ctx, asked); err != nil {
			return err
		}
		state = next
	}
	return fmt.Errorf("it asked again and again, and did not answer")
}

// answers answers what a server asks in place of an answer, in the order of the names.
func (l *live) answers(ctx context.Context, asked sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	out := sdk.InputResponseMap{}
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		var err error
		switch p := asked[id].(type) {
		case *sdk.ElicitParams:
			if p != nil {
				out[id], err = l.elicit(ctx, p)
			}
		case *sdk.CreateMessageWithToolsParams: //nolint:staticcheck // SA1019: servers of today still ask for it
			if p != nil {
				out[id], err = l.sample(ctx, p)
			}
		case *sdk.CreateMessageParams: //nolint:staticcheck // SA1019: servers of today still ask for it
			if p != nil {
				out[id], err = l.sample(ctx, withTools(p))
			}
		case *sdk.ListRootsParams: //nolint:staticcheck // SA1019: servers of today still ask for it
			out[id], err = l.roots()
		}
		if err != nil {
			return nil, fmt.Errorf("what it asked before it answered: %w", err)
		}
		if out[id] == nil {
			return nil, errors.New("it asked something that cannot be understood before it answered")
		}
	}
	return out, nil
}

// withTools is the newer form of a question to the model.
func withTools(p *sdk.CreateMessageParams) *sdk.CreateMessageWithToolsParams { //nolint:staticcheck // SA1019: servers of today still ask for it
	out := &sdk.CreateMessageWithToolsParams{MaxTokens: p.MaxTokens, SystemPrompt: p.SystemPrompt} //nolint:staticcheck // SA1019: servers of today still ask for it
	for _, m := range p.Messages {
		if m != nil {
			out.Messages = append(out.Messages, &sdk.SamplingMessageV2{Role: m.Role, Content: []sdk.Content{m.Content}}) //nolint:staticcheck // SA1019: servers of today still ask for it
		}
	}
	return out
}

// wanted returns the addresses that a person has to open before a request is served.
func wanted(err error) ([]*sdk.ElicitParams, bool) {
	var said *jsonrpc.Error
	if !errors.As(err, &said) || said.Code != sdk.CodeURLElicitationRequired {
		return nil, false
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(said.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxAsks {
		return nil, false
	}
	return data.Elicitations, !slices.ContainsFunc(data.Elicitations, func(p *sdk.ElicitParams) bool { return p == nil || p.Mode != "url" || p.ElicitationID == "" })
}

// visit has a person open addresses, and waits until the server says that what they
// did there is finished.
func (l *live) visit(ctx context.Context, list []*sdk.ElicitParams) error {
	for _, p := range list {
		over, forget := l.await(p.ElicitationID)
		r, err := l.elicit(ctx, p)
		if err == nil && r.Action != Accept {
			err = errors.New("the person did not open the address that the server asks for")
		}
		if err == nil && over != nil {
			late := time.NewTimer(waitFinished)
			select {
			case <-over:
			case <-late.C:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			late.Stop()
		}
		forget()
		if err != nil {
			return err
		}
	}
	return nil
}
