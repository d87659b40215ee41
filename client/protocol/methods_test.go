package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// generated stands at the head of what TestSchemasArePublished writes.
const generated = "// Generated from docs/protocol by: go test ./client/protocol -run Schemas -update\n"

// answeredBy says which messages answer a request when nothing goes wrong.
var answeredBy = map[Type][]Type{
	TypeInitialize:         {TypeInitializeResult},
	TypeUserMessage:        {TypeSessionResult, TypeNotification},
	TypeSetPermissionMode:  {TypeNotification},
	TypeSetModel:           {TypeNotification},
	TypeInterrupt:          {TypeNotification},
	TypeGetContextUsage:    {TypeNotification},
	TypeRewindFiles:        {TypeNotification},
	TypeCanUseToolResponse: {TypeNotification},
	TypeHookCallback:       {TypeNotification},
	TypeTerminate:          {TypeNotification},
}

// answering are the requests that have the ID of what they answer.
var answering = []Type{TypeCanUseToolResponse, TypeHookCallback}

// methods are the requests for which the client in TypeScript has a method each, in order. It
// makes the first one of a connection itself.
func methods() []Type {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(Requests())), func(t Type) bool { return t == TypeInitialize })
}

func methodName(t Type) string { return strings.ToLower(string(t[:1])) + string(t[1:]) }

// methodTable is the table of methods that the client in TypeScript has, with the bounds of
// the protocol.
func methodTable() string {
	var b strings.Builder
	b.WriteString(generated)
	fmt.Fprintf(&b, "\nexport const version = %d;\nexport const maxMessage = %d;\n", Version, MaxMessage)
	b.WriteString("\n/** The types of requests, by the names of methods. */\nexport const methods = Object.freeze({\n")
	for _, t := range methods() {
		fmt.Fprintf(&b, "  %s: %q,\n", methodName(t), t)
	}
	b.WriteString("});\n\n/** The requests that have the ID of what they answer. */\nexport const answering = Object.freeze([")
	for i, t := range answering {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", t)
	}
	b.WriteString("]);\n")
	return b.String()
}

// methodTypes are the types of those methods.
func methodTypes(t *testing.T, request map[string]any) string {
	t.Helper()
	defs := request["$defs"].(map[string]any)
	uses, list := map[string]bool{}, strings.Builder{}
	for _, name := range methods() {
		payload := string(name) + "Payload"
		def, ok := defs[payload].(map[string]any)
		if !ok || len(answeredBy[name]) == 0 {
			t.Fatalf("%s: no payload of its name, or nothing says what answers it", name)
		}
		uses[payload] = true
		var answers []string
		for _, a := range answeredBy[name] {
			uses[string(a)] = true
			answers = append(answers, string(a))
		}
		given, options := "payload", "options?: RequestOptions"
		if len(def["required"].([]string)) == 0 {
			given += "?"
		}
		if slices.Contains(answering, name) {
			given, options = "payload", "options: AnswerOptions"
		}
		fmt.Fprintf(&list, "  /** %s */\n  %s(%s: %s, %s): Promise<%s>;\n", def["description"], methodName(name), given, payload, options, strings.Join(answers, " | "))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nimport type {\n  %s,\n} from \"./protocol.js\";\n", generated, strings.Join(slices.Sorted(maps.Keys(uses)), ",\n  "))
	b.WriteString("import type { AnswerOptions, RequestOptions } from \"./control.js\";\n")
	b.WriteString("\n/** A method for each request. Each promises the message that answers it, and rejects with a ControlError for an Error. */\n")
	fmt.Fprintf(&b, "export interface Methods {\n%s}\n", list.String())
	return b.String()
}
