package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// shorten makes a line fit that does not: images and documents leave their places to a
// text that says so, and the longest texts keep their beginnings. What the model reads and
// what the log has stays as it is.
func shorten(data []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return []byte("{}\n")
	}
	v = without(v)
	for most := maxOut / 4; ; most /= 4 {
		out, err := marshal(cut(v, most))
		if err == nil && len(out) <= maxOut {
			return out
		}
		if most < 16 {
			break
		}
	}
	m, _ := v.(map[string]any)
	out, _ := marshal(map[string]any{ // a line of which nothing can be shown
		"type": m["type"], "subtype": m["subtype"], "uuid": m["uuid"], "session_id": m["session_id"],
		"content": fmt.Sprintf("left out: %d bytes", len(data)), "level": "warning",
	})
	return out
}

// without returns v with what stands for media in the place of its bytes.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if source, ok := v["source"].(map[string]any); ok {
			if data, ok := source["data"].(string); ok && len(data) > maxShown {
				return map[string]any{"type": "text", "text": fmt.Sprintf("[%v %v left out: %d bytes of base64]", v["type"], source["media_type"], len(data))}
			}
		}
		for k := range v {
			v[k] = without(v[k])
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

// maxShown is how long an image may be, in base64, in a line that is too long.
const maxShown = 1 << 10

// cut returns v with no text in it that is longer than most bytes.
func cut(v any, most int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= most {
			return v
		}
		end := most
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return v[:end] + fmt.Sprintf("\n[… %d bytes left out]", len(v)-end)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cut(e, most)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cut(e, most)
		}
		return out
	}
	return v
}
