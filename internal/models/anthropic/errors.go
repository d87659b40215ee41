package anthropic

import (
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// errorMessage is how the API explains itself.
type errorMessage struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Details struct {
		Code string `json:"error_code"`
	} `json:"details"`
}

// explain reads the body of an answer that is an error.
func explain(status int, body []byte) *agent.ModelError {
	var said struct {
		Error     errorMessage `json:"error"`
		RequestID string       `json:"request_id"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error.Type == "" {
		return nil
	}
	e := classify(status, said.Error)
	e.RequestID = said.RequestID
	return e
}

// classify turns an explanation of the API into an error. status is 0 inside a
// stream, where the type alone tells. What was said is still as it came.
func classify(status int, said errorMessage) *agent.ModelError {
	e := &agent.ModelError{Class: agent.FailInvalid, Code: said.Type, Message: said.Message}
	text := strings.ToLower(said.Message)
	switch said.Type {
	case "authentication_error", "permission_error":
		e.Class = agent.FailAuth
	case "billing_error":
		e.Class = agent.FailQuota
	case "not_found_error":
		e.Class = agent.FailNotFound
	case "rate_limit_error":
		e.Class = agent.FailRate
		if said.Details.Code == "enforced_spend_limit_reached" || wire.Holds(text, "spend limit") {
			e.Class = agent.FailQuota
		}
	case "request_too_large":
		e.Class = agent.FailContext
	case "overloaded_error", "api_error", "conflict_error":
		e.Class = agent.FailServer
	case "timeout_error":
		e.Class = agent.FailTimeout
	case "invalid_request_error":
		switch {
		case wire.Holds(text, "prompt is too long", "exceed context limit", "context window"):
			e.Class = agent.FailContext
		case wire.Holds(text, "credit balance", "spend limit", "usage limit"):
			e.Class = agent.FailQuota
		}
	default:
		e.Class = wire.ByStatus(status)
	}
	if said.Details.Code != "" {
		e.Code = said.Details.Code
	}
	return e
}
