// Package protocol is the native control protocol in Go types: what a host sends, what
// it is sent, and the lines that carry both.
//
// A host starts dure, or connects to it, and both sides write messages: JSON objects with
// a type, an ID and a payload, one a line or one a frame of a socket. The package owns the
// shapes and the bounds. It imports the standard library alone, starts no goroutines and
// knows no session: any host can use it.
package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Version is the version of the protocol. It is raised when something that is here goes, or
// means something else; what is added does not raise it.
const Version = 1

// The bounds of both sides.
const (
	MaxMessage = 10 << 20 // bytes of a message, without its line end
	MaxID      = 128      // bytes of an ID
)

// The times that are waited for a host, in milliseconds.
const (
	DefaultAskTime = 30_000  // unless Initialize says otherwise
	MaxAskTime     = 600_000 // the most it may say
)

// Type is the type of a message.
type Type string

// The requests, which a host sends. Each is answered by exactly one message with its ID: an
// InitializeResult, a SessionResult, a Notification of the kind "reply", or an Error.
const (
	TypeInitialize         Type = "Initialize"
	TypeUserMessage        Type = "UserMessage"
	TypeSetPermissionMode  Type = "SetPermissionMode"
	TypeSetModel           Type = "SetModel"
	TypeInterrupt          Type = "Interrupt"
	TypeGetContextUsage    Type = "GetContextUsage"
	TypeRewindFiles        Type = "RewindFiles"
	TypeCanUseToolResponse Type = "CanUseToolResponse"
	TypeHookCallback       Type = "HookCallback"
	TypeTerminate          Type = "Terminate"
)

// The messages, which a host is sent.
const (
	TypeInitializeResult Type = "InitializeResult"
	TypeAssistantToken   Type = "AssistantToken"
	TypeAssistantMessage Type = "AssistantMessage"
	TypeToolUseStart     Type = "ToolUseStart"
	TypeToolProgress     Type = "ToolProgress"
	TypeToolResult       Type = "ToolResult"
	TypeSessionResult    Type = "SessionResult"
	TypeHookEvent        Type = "HookEvent"
	TypeCanUseTool       Type = "CanUseTool"
	TypeNotification     Type = "Notification"
	TypeError            Type = "Error"
)

// Message is a message of either side.
type Message struct {
	Type Type `json:"type"`

	// ID is chosen by whoever sends a request, and comes back with its answer. CanUseTool
	// and HookEvent have one of dure's own, which the host's answer carries. Elsewhere
	// it is missing: the message answers nothing.
	ID string `json:"id,omitempty"`

	// Session is the ID of the session that the message is about. In a request it may be
	// missing: the first session of the connection is meant then.
	Session string `json:"session,omitempty"`

	Payload json.RawMessage `json:"payload,omitempty"`
}

// Code is a stable name of an error. Beside those below, an Error has the codes of problems
// of sessions and settings (docs/errors.md).
type Code string

// The errors of the protocol itself.
const (
	CodeMalformed      Code = "malformed"           // no JSON object with a type, or an ID that is too long
	CodeTooLong        Code = "too-long"            // longer than a message may be
	CodeUnknownType    Code = "unknown-type"        // no request
	CodePayload        Code = "bad-payload"         // a payload that is none of its type
	CodeVersion        Code = "protocol-version"    // none that both sides speak
	CodeNotInitialized Code = "not-initialized"     // the first request has to be Initialize
	CodeInitialized    Code = "already-initialized" // and it comes once
	CodeDuplicateID    Code = "duplicate-id"        // a request with the ID is not answered yet
	CodeBusy           Code = "busy"                // too many requests are not answered yet
	CodeNoSession      Code = "no-session"          // none is open by that ID on this connection
	CodeManySessions   Code = "too-many-sessions"   // as many as one connection may have
	CodeLate           Code = "late"                // somebody else has answered, or the time was over
	CodeUnknownAsk     Code = "unknown-ask"         // the ID is none that was asked
	CodeClosing        Code = "closing"             // the connection ends
	CodeEnded          Code = "session-ended"       // the session ended before the request was carried out
	CodeInternal       Code = "internal"
)

// Error is an error of the protocol, of which the other side is told.
type Error struct {
	Code    Code
	Message string
	Fix     string // what to do next; "" = nothing to say
}

func (e *Error) Error() string { return e.Message }

// ErrTooLong is a message that is longer than a message may be. What follows it can be read.
var ErrTooLong = &Error{Code: CodeTooLong, Message: fmt.Sprintf("the message is longer than %d bytes", MaxMessage), Fix: "send large content by the path of a file"}

// Decode reads a message. Its errors are *Error; the message has then what could be read.
func Decode(data []byte) (Message, error) {
	var m Message
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return m, &Error{Code: CodeMalformed, Message: "the message is no JSON object", Fix: "send one object a line"}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		m.Payload = nil
		if len(m.ID) > MaxID {
			m.ID = ""
		}
		return m, &Error{Code: CodeMalformed, Message: "the message cannot be read: " + err.Error()}
	}
	switch {
	case m.Type == "":
		return m, &Error{Code: CodeMalformed, Message: "the message has no type"}
	case len(m.ID) > MaxID:
		m.ID = ""
		return m, &Error{Code: CodeMalformed, Message: fmt.Sprintf("the ID of the message is longer than %d bytes", MaxID)}
	case len(m.Session) > MaxID:
		m.Session = ""
		return m, &Error{Code: CodeMalformed, Message: fmt.Sprintf("the session's ID is longer than %d bytes", MaxID)}
	}
	return m, nil
}

// Payload reads the payload of a message; a missing one is the zero value. Fields that it does
// not know are passed over, so that later hosts can speak to earlier programs.
func Payload[T any](m Message) (T, error) {
	var v T
	data := bytes.TrimSpace(m.Payload)
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return v, nil
	}
	if data[0] != '{' {
		return v, &Error{Code: CodePayload, Message: fmt.Sprintf("the payload of %s is no JSON object", m.Type)}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, &Error{Code: CodePayload, Message: fmt.Sprintf("the payload of %s: %v", m.Type, err)}
	}
	return v, nil
}

// Encode writes a message with a payload, nil = none, without a line end. Characters of HTML stay as they
// are.
func Encode(t Type, id, session string, payload any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Type    Type   `json:"type"`
		ID      string `json:"id,omitempty"`
		Session string `json:"session,omitempty"`
		Payload any    `json:"payload,omitempty"`
	}{t, id, session, payload})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", t, err)
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(data) > MaxMessage {
		return nil, ErrTooLong
	}
	return data, nil
}

// CodeOf is the code of an error that this package has made, or CodeInternal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
