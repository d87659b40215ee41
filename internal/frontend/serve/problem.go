package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/auth"
)

// Problem is an error as clients see it, after RFC 9457. Code is stable: that of an
// [agent.Problem] or of the server's own (docs/server.md).
type Problem struct {
	Type   string            `json:"type"` // urn:dure:problem:CODE
	Title  string            `json:"title"`
	Status int               `json:"status"`
	Detail string            `json:"detail"` // what is wrong, in English
	Code   string            `json:"code"`
	Fix    string            `json:"fix,omitempty"`  // what to do next, in English
	Args   map[string]string `json:"args,omitempty"` // the names involved

	// Chat says the same to clients of OpenAI's API, which read nothing else.
	Chat *chatError `json:"error,omitempty"`
}

// chatError is an error as OpenAI's API has it.
type chatError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // always null
	Code    string  `json:"code"`
}

// chatPaths are those that clients of OpenAI's API ask, there or not.
var chatPaths = []string{"/v1/chat/", "/v1/models", "/v1/responses", "/v1/completions", "/v1/embeddings"}

// forChat reports whether an answer is one for clients of OpenAI's API.
func forChat(w http.ResponseWriter) bool {
	for {
		if p, ok := w.(*patient); ok {
			return slices.ContainsFunc(chatPaths, func(path string) bool { return strings.HasPrefix(p.path, path) })
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// chatErrorOf says a problem as OpenAI's API does.
func chatErrorOf(p Problem) *chatError {
	e := &chatError{Message: p.Detail, Type: "invalid_request_error", Code: p.Code}
	if p.Fix != "" {
		e.Message += "; " + p.Fix
	}
	switch {
	case p.Status == http.StatusTooManyRequests:
		e.Type = "rate_limit_error"
	case p.Status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	return e
}

// The codes of the server's own problems, beside those of the door.
const (
	noRoute     = "no-route"
	wrongMethod = "method"
	noJSON      = "media-type"
	badRequest  = "bad-request"
	tooSlow     = "timeout"
	forbidden   = "forbidden" // scope
	ending      = "draining"  // the server is about to end
	guarded     = "guarded"   // query
	localOnly   = "local"     // query, reason
	noFile      = "no-file"   // path
	noUser      = "no-user"
	badPath     = "path" // path
)

// cures are what helps whom the door does not let in.
var cures = map[string]string{
	auth.NoName:      "name this machine, or a name of the certificate",
	auth.NoOrigin:    "ask from a program, not from a page",
	auth.NoToken:     "send the header Authorization: Bearer TOKEN",
	auth.TooMany:     "wait as long as Retry-After says",
	auth.TooOften:    "wait as long as Retry-After says, and send the right token",
	auth.TooLarge:    "send less",
	auth.Incomplete:  "send it again, whole",
	auth.Unavailable: "report it",
}

// statuses are those of problems; all others are the fault of the request.
var statuses = map[agent.ProblemCode]int{
	agent.ProblemMissing: http.StatusNotFound, agent.ProblemNone: http.StatusNotFound, agent.ProblemEvent: http.StatusNotFound,
	agent.ProblemOwned: http.StatusConflict, agent.ProblemBusy: http.StatusConflict, agent.ProblemKept: http.StatusConflict,
	agent.ProblemAlive: http.StatusConflict, agent.ProblemGone: http.StatusConflict, agent.ProblemOver: http.StatusConflict,
	agent.ProblemUnclear: http.StatusConflict, agent.ProblemUndo: http.StatusConflict, agent.ProblemWhole: http.StatusConflict,
	agent.ProblemChange: http.StatusConflict, agent.ProblemNoPlan: http.StatusConflict, agent.ProblemPlan: http.StatusConflict, agent.ProblemPlans: http.StatusConflict,
	agent.ProblemTool: http.StatusConflict,
	agent.ProblemHook: http.StatusForbidden, agent.ProblemNoAI: http.StatusForbidden, agent.ProblemNetwork: http.StatusForbidden,
	agent.ProblemEndpoint: http.StatusBadGateway, agent.ProblemProvider: http.StatusBadGateway,
	agent.ProblemHome: http.StatusInternalServerError, agent.ProblemDamaged: http.StatusInternalServerError, agent.ProblemIndex: http.StatusInternalServerError,
	client.ProblemAnswered: http.StatusConflict, client.ProblemNoQuestion: http.StatusNotFound,
	agent.ProblemInternal: http.StatusInternalServerError, agent.ProblemDisk: http.StatusInsufficientStorage,
}

// problemOf makes a problem of an error.
func problemOf(err error) Problem {
	if p, ok := errors.AsType[*refused](err); ok {
		return Problem(*p)
	}
	if p := agent.ProblemOf(err); p != nil {
		status, ok := statuses[p.Code]
		if !ok {
			status = http.StatusBadRequest
		}
		return Problem{Status: status, Code: string(p.Code), Detail: p.Message, Fix: p.Fix, Args: p.Args}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Problem{Status: http.StatusGatewayTimeout, Code: tooSlow, Detail: "it took too long: " + err.Error(), Fix: "see whether the session hangs, and send it again"}
	}
	return Problem{Status: http.StatusInternalServerError, Code: string(agent.ProblemInternal), Detail: err.Error()}
}

// refused is a problem of the request itself.
type refused Problem

func (p *refused) Error() string { return p.Detail }

func bad(detail, fix string) error {
	return &refused{Status: http.StatusBadRequest, Code: badRequest, Detail: detail, Fix: fix}
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, err error) { write(w, problemOf(err)) }

// full fills in what follows from the rest.
func full(p Problem) Problem {
	p.Type, p.Title = "urn:dure:problem:"+p.Code, http.StatusText(p.Status)
	return p
}

func write(w http.ResponseWriter, p Problem) {
	if forChat(w) {
		p.Chat = chatErrorOf(p)
	}
	data, err := json.Marshal(full(p))
	if err != nil { // strings always encode
		data = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(data, '\n')) // whoever has gone does not read it
}
