package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// The bounds of what stays of a line that is too long.
const (
	maxShown = 1 << 10   // bytes of an image, in base64
	leastCut = 976       // bytes of a text: names of things are never so long that they are cut
	maxBare  = 48 << 10  // bytes of a member, where no cut of texts is enough
	maxParts = 300 << 10 // bytes of the parts of a message
	maxNote  = 4 << 10   // bytes of what is said of it
	maxDeep  = 3         // objects in each other
)

// shorten makes a line fit that does not: images and documents leave their places to a
// text that says so, and the longest texts keep their beginnings. Where that is not enough,
// because there is too much that is no text, its shape stays. What the model reads and what
// the log has stays as it is.
func shorten(data []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return []byte("{}\n")
	}
	v = without(v)
	if out, err := marshal(cut(v, leastCut)); err == nil && len(out) <= maxOut { // else no cut is enough
		for most := maxOut / 4; most > leastCut; most /= 4 {
			if longer, err := marshal(cut(v, most)); err == nil && len(longer) <= maxOut {
				return longer
			}
		}
		return out
	}
	m, _ := v.(map[string]any)
	out, _ := marshal(bare(m, len(data))) // it was read from JSON
	return out
}

// bare is a line of which only the shape can be shown: who it is from, what it belongs to and
// its numbers stay, and a text says how much does not.
func bare(line map[string]any, size int) map[string]any {
	note := fmt.Sprintf("[left out: %d bytes, which are more than a line may have]", size)
	if line["type"] == "control_response" {
		r, _ := line["response"].(map[string]any)
		return map[string]any{"type": "control_response", "response": map[string]any{
			"subtype": "error", "request_id": r["request_id"],
			"error": fmt.Sprintf("the answer has %d bytes, and a line has at most %d", size, maxOut),
		}}
	}
	out := members(line, maxOut-maxNote, func(k string, v any) any {
		switch m, _ := v.(map[string]any); {
		case k == "message" && m != nil:
			return bareMessage(m, note)
		case k == "permission_denials":
			return bareParts(v, maxBare)
		case k == "deferred_tool_use":
			return append(bareParts([]any{v}, maxBare), nil)[0]
		case k == "tool_use_result":
			return note
		case k == "structured_output":
			return nil // a part of it would be taken for all
		}
		return slim(v, maxDeep)
	})
	switch words, isText := out["result"].(string); {
	case isText:
		out["result"] = words + "\n" + note
	default:
		if _, says := out["message"].(map[string]any); says {
			break
		}
		out["content"] = note
	}
	return out
}

// bareMessage is a message with the names of its calls and results, and nothing else of them.
func bareMessage(m map[string]any, note string) map[string]any {
	return members(m, 2*maxParts, func(k string, v any) any {
		if k == "content" {
			return append(bareParts(v, maxParts), map[string]any{"type": "text", "text": note})
		}
		return slim(v, maxDeep)
	})
}

// bareParts are the calls and results of a list without what is in them, as many as fit.
func bareParts(v any, room int) []any {
	out := []any{}
	list, _ := v.([]any)
	for _, e := range list {
		p, _ := e.(map[string]any)
		var b map[string]any
		switch {
		case p["tool_name"] != nil:
			b = map[string]any{"tool_name": p["tool_name"], "tool_use_id": p["tool_use_id"], "tool_input": struct{}{}}
		case p["type"] == "tool_use":
			b = map[string]any{"type": "tool_use", "id": p["id"], "name": p["name"], "input": struct{}{}}
		case p["type"] == "tool_result":
			b = map[string]any{"type": "tool_result", "tool_use_id": p["tool_use_id"], "content": "[left out]"}
			if p["is_error"] != nil {
				b["is_error"] = p["is_error"]
			}
		default:
			continue
		}
		n := sizeOf(b)
		if n > room {
			break
		}
		room -= n
		out = append(out, b)
	}
	return out
}

// slim is a member that is not long: a text keeps its beginning, a list what fits of it, an
// object its members, and what is too deep in it is empty.
func slim(v any, deep int) any {
	switch v := v.(type) {
	case string:
		return cut(v, leastCut)
	case []any:
		out, room := []any{}, maxBare
		for _, e := range v {
			e = cut(e, leastCut)
			n := sizeOf(e)
			if n > room {
				break
			}
			room -= n
			out = append(out, e)
		}
		return out
	case map[string]any:
		if deep == 0 {
			return map[string]any{}
		}
		return members(v, maxBare, func(_ string, v any) any { return slim(v, deep-1) })
	}
	return v
}

// members are those of an object that fit, made by each, and first of all those by which
// others know it.
func members(m map[string]any, room int, each func(k string, v any) any) map[string]any {
	first := []string{"type", "subtype", "uuid", "session_id", "request_id", "parent_tool_use_id", "id", "role", "model", "message", "content"}
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(first, a) - rank(first, b) })
	out := map[string]any{}
	for _, k := range keys {
		v := each(k, m[k])
		if n := sizeOf(k) + sizeOf(v); n <= room {
			out[k], room = v, room-n
		}
	}
	return out
}

// rank is where a word stands in a list, and behind it if it does not.
func rank(list []string, word string) int {
	if i := slices.Index(list, word); i >= 0 {
		return i
	}
	return len(list)
}

// sizeOf is how many bytes a value takes in a line, and what stands beside it.
func sizeOf(v any) int {
	data, _ := marshal(v) // it was read from JSON
	return len(data) + 1
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
