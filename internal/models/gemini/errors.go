package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/models/wire"
)

// apiError is how the API explains itself.
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Type       string `json:"@type"`
		Reason     string `json:"reason"`     // of an ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a RetryInfo
		Violations []struct {
			QuotaID    string `json:"quotaId"`
			QuotaValue string `json:"quotaValue"`
		} `json:"violations"` // of a QuotaFailure
	} `json:"details"`
}

// explain reads the body of an answer that is an error: an object, or a list of
// one.
func explain(status int, body []byte) *agent.ModelError {
	type answer struct {
		Error *apiError `json:"error"`
	}
	var said answer
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		var list []answer
		if !readable(body, &list) || len(list) == 0 {
			return nil
		}
		said = list[0]
	} else if !readable(body, &said) {
		return nil
	}
	if said.Error == nil || said.Error.Status == "" && said.Error.Code == 0 && said.Error.Message == "" {
		return nil
	}
	return classify(status, *said.Error)
}

// readable decodes an explanation; details of another form are left out.
func readable(body []byte, to any) bool {
	err := json.Unmarshal(body, to)
	_, odd := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || odd
}

// classify turns an explanation of the API into an error. Where status is none
// of an error, as inside a stream, the explanation has it. What was said is still
// as it came.
func classify(status int, said apiError) *agent.ModelError {
	if status < 400 {
		status = max(said.Code, 0)
	}
	e := &agent.ModelError{Class: wire.ByStatus(status), Code: said.Status, Message: said.Message}
	text := strings.ToLower(said.Message)
	reason := said.reason()
	switch said.Status {
	case "INVALID_ARGUMENT":
		e.Class = agent.FailInvalid
		switch {
		case strings.HasPrefix(reason, "API_KEY_") || wire.Holds(text, "api key not valid", "api key expired"):
			e.Class = agent.FailAuth
		case wire.Holds(text, "exceeds the maximum number of tokens", "input token count", "request payload size exceeds", "context window"):
			e.Class = agent.FailContext
		}
	case "FAILED_PRECONDITION":
		e.Class = agent.FailInvalid
		if wire.Holds(text, "billing") {
			e.Class = agent.FailQuota
		}
	case "UNAUTHENTICATED":
		e.Class = agent.FailAuth
	case "PERMISSION_DENIED":
		e.Class = agent.FailAuth
		if reason == "BILLING_DISABLED" {
			e.Class = agent.FailQuota
		}
	case "NOT_FOUND":
		e.Class = agent.FailNotFound
	case "RESOURCE_EXHAUSTED":
		e.Class = agent.FailRate
		if said.spent() || wire.Holds(text, "spending cap", "prepayment", "credits are depleted") {
			e.Class = agent.FailQuota
		}
	case "DEADLINE_EXCEEDED":
		e.Class = agent.FailTimeout
	case "UNAVAILABLE", "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS":
		e.Class = agent.FailServer
	case "OUT_OF_RANGE", "UNIMPLEMENTED", "ALREADY_EXISTS":
		e.Class = agent.FailInvalid
	}
	e.Code = wire.Or(reason, e.Code)
	e.RetryAfter = said.delay()
	return e
}

// reason returns the reason of the ErrorInfo.
func (e apiError) reason() string {
	for _, d := range e.Details {
		if strings.HasSuffix(d.Type, "google.rpc.ErrorInfo") {
			return d.Reason
		}
	}
	return ""
}

// spent reports whether waiting a moment is no help: a quota of a day is used
// up, or there is none.
func (e apiError) spent() bool {
	for _, d := range e.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") || v.QuotaValue == "0" {
				return true
			}
		}
	}
	return strings.Contains(e.Message, "limit: 0,")
}

// delay returns how long the API asks to wait: in a RetryInfo, or in words.
func (e apiError) delay() time.Duration {
	for _, d := range e.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
			return delay
		}
	}
	_, said, _ := strings.Cut(e.Message, "Please retry in ")
	said, _, _ = strings.Cut(said, " ")
	said, _, _ = strings.Cut(said, "\n")
	delay, err := time.ParseDuration(strings.TrimSuffix(said, "."))
	if err != nil || delay < 0 {
		return 0
	}
	return delay
}
