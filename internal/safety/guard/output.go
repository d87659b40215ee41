package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of a structured output, in bytes.
const (
	maxOutput = 32 << 10
	hugeJSON  = 16 << 20 // not even read in order to shorten it
)

// cleanOutput returns a structured output with its strings cleaned, numbers that
// are secrets too, and, when it is long, shortened. Anything that is no JSON is an error.
func cleanOutput(raw json.RawMessage, clean func(string) string) (json.RawMessage, error) {
	if len(raw) == 0 {
		return raw, nil
	}
	if len(raw) > hugeJSON {
		return leftOut(len(raw)), nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is no valid JSON")
	}
	text := string(raw)
	if bytes.IndexByte(raw, '\\') >= 0 || clean(text) != text {
		var err error
		if raw, err = cleanStrings(raw, clean); err != nil {
			return nil, err
		}
		if raw, err = cleanMembers(raw, clean); err != nil {
			return nil, err
		}
	}
	if len(raw) > maxOutput {
		return shorten(raw)
	}
	return raw, nil
}

// MaskJSON returns valid JSON with the secrets in its strings masked, and what its
// name makes one. All else stays as it is, for a record has to say what there was.
func MaskJSON(raw json.RawMessage) (json.RawMessage, error) {
	mask := func(s string) string {
		out, kinds := Eval(s, "")
		if len(kinds) == 0 {
			return s
		}
		return out
	}
	masked, err := cleanStrings(raw, mask)
	if err != nil {
		return nil, err
	}
	return cleanMembers(masked, mask)
}

// MaskValue returns a record with the secrets in it masked, as [MaskJSON] does.
func MaskValue[T any](v T) (shown T, err error) {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = MaskJSON(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &shown)
	}
	if err != nil {
		return shown, fmt.Errorf("masking secrets in decisions: %w", err)
	}
	return shown, nil
}

// cleanStrings cleans each string of valid JSON and leaves everything else as it
// stands, names and their order too.
func cleanStrings(raw []byte, clean func(string) string) (json.RawMessage, error) {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		from := bytes.IndexByte(raw, '"')
		if from < 0 {
			break
		}
		end := from + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end++
		out = append(out, raw[:from]...)
		var s string
		if err := json.Unmarshal(raw[from:end], &s); err != nil {
			return nil, err
		}
		if c := clean(s); c != s {
			out = append(out, encode(c)...)
		} else {
			out = append(out, raw[from:end]...)
		}
		raw = raw[end:]
	}
	return append(out, raw...), nil
}

// cleanMembers masks what its name makes a secret, and numbers, which become
// strings.
func cleanMembers(raw []byte, clean func(string) string) (json.RawMessage, error) {
	text := string(raw)
	cleaned := []byte(clean(text))
	if string(cleaned) == text {
		return raw, nil
	}
	out := make([]byte, 0, len(cleaned)+8)
	inString := false
	for i := 0; i < len(cleaned); i++ {
		n := maskLength(cleaned[i:])
		switch {
		case n > 0 && !inString:
			out = append(append(append(out, '"'), cleaned[i:i+n]...), '"')
			i += n - 1
			continue
		case cleaned[i] == '\\' && inString && i+1 < len(cleaned):
			out = append(out, cleaned[i])
			i++
		case cleaned[i] == '"':
			inString = !inString
		}
		out = append(out, cleaned[i])
	}
	if !json.Valid(out) {
		return leftOut(len(raw)), nil
	}
	return out, nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("guard: " + err.Error()) // what was decoded can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// shorten cuts long strings and lists until the output fits.
func shorten(raw json.RawMessage) (json.RawMessage, error) {
	for _, most := range []struct{ text, items int }{{16 << 10, 1000}, {8 << 10, 500}, {2 << 10, 100}, {512, 40}, {128, 10}} {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		if short := encode(shortened(v, most.text, most.items)); len(short) <= maxOutput {
			return short, nil
		}
	}
	return leftOut(len(raw)), nil
}

func leftOut(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d}`, n))
}

func shortened(v any, text, items int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= text {
			return v
		}
		head, tail := strings.ToValidUTF8(v[:text/2], ""), strings.ToValidUTF8(v[len(v)-text/2:], "")
		return head + fmt.Sprintf("\n[%d bytes left out]\n", len(v)-len(head)-len(tail)) + tail
	case []any:
		for i := range v[:min(len(v), items)] {
			v[i] = shortened(v[i], text, items)
		}
		if len(v) > items {
			return append(v[:items:items], fmt.Sprintf("[%d items left out]", len(v)-items))
		}
		return v
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		for i, name := range names {
			if i >= items {
				delete(v, name)
				continue
			}
			v[name] = shortened(v[name], text, items)
		}
		if len(names) > items {
			v["truncated"] = true
		}
		return v
	}
	return v
}
