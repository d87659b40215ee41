package completions

import (
	"encoding/json"
	"errors"
	"net/http"

	"dure/agent"
)

// refusal is an error as the API says it.
type refusal struct {
	status int

	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`

	// final says that the same request would have effects again: clients that try by
	// themselves are told not to.
	final bool
}

func (r *refusal) Error() string { return r.Message }

// refuse returns an error about a part of a request; param "" = it is about none.
func refuse(status int, code, param, message string) *refusal {
	r := &refusal{status: status, Message: message, Type: "invalid_request_error", Code: &code}
	if param != "" {
		r.Param = &param
	}
	switch {
	case status == http.StatusTooManyRequests:
		r.Type = "rate_limit_error"
	case status >= http.StatusInternalServerError:
		r.Type = "server_error"
	}
	return r
}

// refusalOf is an error of a session in the terms of the API.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	p := agent.ProblemOf(err)
	if p == nil {
		return refuse(http.StatusInternalServerError, "internal", "", "the session could not do it")
	}
	message := p.Message
	if p.Fix != "" {
		message += "; " + p.Fix
	}
	switch p.Code {
	case agent.ProblemModel:
		return refuse(http.StatusNotFound, "model_not_found", "model", message)
	case agent.ProblemMissing, agent.ProblemUnclear, agent.ProblemNone:
		return refuse(http.StatusNotFound, "session_not_found", "metadata.session", "there is no such session")
	case agent.ProblemOwned, agent.ProblemBusy:
		return refuse(http.StatusConflict, string(p.Code), "metadata.session", message)
	case agent.ProblemBudget:
		return refuse(http.StatusTooManyRequests, "insufficient_quota", "", message)
	case agent.ProblemUsage, agent.ProblemHook:
		return refuse(http.StatusBadRequest, string(p.Code), "", message)
	case agent.ProblemNoKey, agent.ProblemAuth, agent.ProblemNoAI, agent.ProblemNetwork:
		return refuse(http.StatusServiceUnavailable, string(p.Code), "", message)
	}
	return refuse(http.StatusInternalServerError, string(p.Code), "", message)
}

// failures are those of models in the terms of the API. Where the model's provider refuses
// dure's key, the client's token is not to blame.
var failures = map[agent.FailureClass]struct {
	status int
	code   string
}{
	agent.FailRate:     {http.StatusTooManyRequests, "rate_limit_exceeded"},
	agent.FailQuota:    {http.StatusTooManyRequests, "insufficient_quota"},
	agent.FailContext:  {http.StatusBadRequest, "context_length_exceeded"},
	agent.FailNotFound: {http.StatusNotFound, "model_not_found"},
	agent.FailTimeout:  {http.StatusGatewayTimeout, "timeout"},
}

// helps is what helps where it is not the client's to mend.
var helps = map[agent.FailureClass]string{
	agent.FailAuth:     "the provider of the model refuses the key that the server has for it, not your token: whoever runs the server stores another one with dure login",
	agent.FailNotFound: "see GET /v1/models, or whether whoever runs the server has set the provider's address and model right",
}

// failed is a turn that failed, in the terms of the API.
func failed(end agent.TurnEnded) *refusal {
	f, ok := failures[end.Fail]
	switch {
	case ok:
	case end.Reason == agent.EndInterrupted:
		f.status, f.code = http.StatusServiceUnavailable, "interrupted"
	case end.Fail == "":
		f.status, f.code = http.StatusInternalServerError, "turn_failed"
	default:
		f.status, f.code = http.StatusBadGateway, "model_failed"
	}
	message := end.Error
	if message == "" {
		message = "the turn has not come to its end"
	}
	if help := helps[end.Fail]; help != "" {
		message += "; " + help
	}
	r := refuse(f.status, f.code, "", message)
	r.final = true
	return r
}

// write answers with the error.
func (r *refusal) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if r.final {
		h.Set("X-Should-Retry", "false")
	} else if r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body()) // a client that is gone needs no error
}

func (r *refusal) body() []byte {
	data, err := json.Marshal(map[string]*refusal{"error": r})
	if err != nil { // strings cannot fail
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal"}}`)
	}
	return data
}
