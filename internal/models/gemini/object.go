package gemini

import (
	"encoding/json"
	"slices"

	"dure/internal/models/wire"
)

// parseList reads a list; nil for everything else.
func parseList(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// text returns a JSON string, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// reference returns a list of a schema that is only a reference.
func reference(ref json.RawMessage) []byte {
	return append(append([]byte{'['}, wire.Members{{Name: "$ref", Value: ref}}.Bytes()...), ']')
}

// joined returns the elements of two lists as one.
func joined(a, b json.RawMessage) json.RawMessage {
	list := []byte{'['}
	for _, raw := range append(parseList(a), parseList(b)...) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, raw...)
	}
	return append(list, ']')
}

// drop returns an object without one of its members.
func drop(raw []byte, name string) []byte {
	o, _ := wire.ParseMembers(raw)
	return slices.DeleteFunc(o, func(m wire.Member) bool { return m.Name == name }).Bytes()
}

// separated returns an object's members and its end, behind other members.
func separated(raw []byte) []byte {
	if len(raw) == len(`{}`) {
		return raw[1:]
	}
	return append([]byte{','}, raw[1:]...)
}

// number reports whether raw, which is valid JSON, is a number.
func number(raw json.RawMessage) bool {
	return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
}
