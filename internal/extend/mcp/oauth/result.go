package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"dure/agent"
	"dure/agent/query"
)

// A Secret is a text that prints as nothing of its own: not by fmt, nor as JSON,
// nor in a log. [Secret.Reveal] is the only way to it.
type Secret struct{ text string }

const hidden = "[hidden]"

// Conceal makes a Secret of a text.
func Conceal(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format prints no secret, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText keeps a secret out of JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue keeps a secret out of a log.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Result is how a request for a token came out: exactly one of its fields is set.
type Result struct {
	Ready    *Ready
	Required *query.SignInRequired
	Error    *Error
}

// Ready has a token.
type Ready struct {
	AccessToken Secret    `json:"accessToken"`
	TokenType   string    `json:"tokenType"`
	ExpiresAt   time.Time `json:"expiresAt,omitzero"` // zero = it is not known to expire
	Scopes      []string  `json:"scopes"`
}

// Error says why there is no token. Its message holds no secret, and nothing of a
// server's that could be taken for more than a text.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	err     error
}

// Codes of errors beside those that servers use (RFC 6749, 7591, 8628).
const (
	CodeApp       = "invalid_app"       // what the app says cannot be
	CodeScope     = "invalid_scope"     // more than the app may ask for
	CodeClient    = "invalid_client"    // who we are is not known there
	CodeDiscovery = "discovery_failed"  // what the server says of itself cannot be used
	CodeNetwork   = "unreachable"       // no answer; another try may help
	CodeReply     = "invalid_reply"     // an answer that is none
	CodeStore     = "store_unavailable" // grants cannot be read or kept
	CodeShort     = "token_too_short"   // new tokens are not good for the time that was asked for
	CodeCallback  = "callback_failed"   // nothing can listen for the browser
	CodeState     = "invalid_state"     // an answer that belongs to no open sign-in
	CodeExpired   = "session_expired"   // nobody agreed in time
	CodeDenied    = "access_denied"     // the person, or the server, said no
	CodeGrant     = "invalid_grant"     // a code or a grant that is good no more
	CodeRevoke    = "revocation_failed" // forgotten here, but perhaps not there
	CodeIssuer    = "issuer_mismatch"   // an answer from another server than was asked
	CodeStopped   = "stopped"           // the caller, or the Desk, ended first
)

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) Unwrap() error { return e.err }

// over reports whether an error says that a grant is good no more, so that a
// person has to agree again.
func over(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == CodeGrant || e.Code == CodeScope || e.Code == CodeClient || e.Code == "unauthorized_client")
}

func isCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

func failed(err error) Result { return Result{Error: asError(err)} }

func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: CodeStore, Message: err.Error(), err: err}
	}
	return e
}

// MarshalJSON gives a result its status: ready, authorization_required or error.
func (r Result) MarshalJSON() ([]byte, error) {
	switch {
	case r.Ready != nil:
		return json.Marshal(struct {
			Status string `json:"status"`
			*Ready
		}{"ready", r.Ready})
	case r.Required != nil:
		return json.Marshal(struct {
			Status string `json:"status"`
			*query.SignInRequired
		}{"authorization_required", r.Required})
	}
	return json.Marshal(struct {
		Status string `json:"status"`
		Error  *Error `json:"error"`
	}{"error", r.Error})
}

// Refusal returns what a call answers that needs a token and got none: the model
// reads whom to ask for what, and a program the same as JSON. A result that is
// ready has no refusal.
func (r Result) Refusal() agent.Result {
	var res agent.Result
	switch {
	case r.Ready != nil:
		return agent.Failure(agent.ErrTool, "there is a token", "")
	case r.Required != nil:
		res = agent.Failure(agent.ErrOAuthRequired, r.Required.Message, "tell the user to open "+r.Required.URL+typed(*r.Required)+", and call the tool again when they have agreed")
	default:
		res = agent.Failure(agent.ErrTool, "signing in failed: "+r.Error.Error(), "")
	}
	res.Output, _ = json.Marshal(r) // texts and times
	return res
}

func typed(q query.SignInRequired) string {
	if q.UserCode == "" {
		return ""
	}
	return " and to type " + q.UserCode
}

// plain returns a text of a server as one short line, without what is in hide.
func plain(s string, hide ...string) string {
	for _, h := range hide {
		if len(h) >= 4 {
			s = strings.ReplaceAll(s, h, hidden)
		}
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return strings.TrimSpace(s)
}
