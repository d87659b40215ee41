package guard

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Guarded is a text as it would be shown to a model.
type Guarded struct {
	ID       json.RawMessage `json:"id"`
	Text     string          `json:"text"`
	Redacted []string        `json:"redacted"` // what was masked, by kind
	Changed  bool            `json:"changed"`
}

// EvalLine is [Eval] of one line of JSON: {"id","text","group"}. The ID is known also with an
// error.
func EvalLine(line []byte) (g Guarded, err error) {
	var in struct {
		ID    json.RawMessage `json:"id"`
		Text  *string         `json:"text"`
		Group string          `json:"group"`
	}
	err = json.Unmarshal(line, &in)
	if g.ID = in.ID; len(g.ID) == 0 {
		g.ID = json.RawMessage("null")
	}
	if err == nil && in.Text == nil {
		err = errors.New("there is no text in it")
	}
	if err != nil {
		return g, fmt.Errorf("reading a text to guard: %w", err)
	}
	out, kinds := Eval(*in.Text, in.Group)
	g.Text, g.Redacted, g.Changed = out, append([]string{}, kinds...), out != *in.Text
	return g, nil
}
