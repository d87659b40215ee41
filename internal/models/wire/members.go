package wire

import (
	"bytes"
	"encoding/json"
)

// Members is a JSON object in its order; each name is there once.
type Members []Member

// Member is a name and its value, which is valid JSON.
type Member struct {
	Name  string
	Value json.RawMessage
}

// ParseMembers reads an object, and reports false for everything else. Of two
// members of one name the last is kept, at the place of the first.
func ParseMembers(raw json.RawMessage) (Members, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	o, at := Members{}, map[string]int{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, false
		}
		name := token.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		if i, ok := at[name]; ok {
			o[i].Value = value
			continue
		}
		at[name] = len(o)
		o = append(o, Member{name, value})
	}
	return o, true
}

// Get returns a member's value, nil when there is none.
func (o Members) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Set adds a member, or replaces the one of that name.
func (o *Members) Set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member{name, value})
}

// Bytes writes the object in canonical form.
func (o Members) Bytes() []byte {
	d := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			d = append(d, ',')
		}
		d = append(Quote(d, m.Name), ':')
		if whole, ok := Canonical(d, m.Value); ok {
			d = whole
		} else {
			d = append(d, "null"...)
		}
	}
	return append(d, '}')
}
