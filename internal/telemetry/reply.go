package telemetry

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// rejectedJSON reads the JSON of an answer. Numbers of 64 bits come as texts, or as numbers.
func rejectedJSON(reply []byte) int {
	var said struct {
		Partial map[string]json.RawMessage `json:"partialSuccess"`
	}
	if json.Unmarshal(reply, &said) != nil {
		return 0
	}
	for _, name := range []string{"rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"} {
		raw := said.Partial[name]
		if len(raw) == 0 {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return int(min(n, math.MaxInt32))
		}
	}
	return 0
}

// fieldOf finds a field of a message of protobuf: the bytes of one that has bytes, or a
// number.
func fieldOf(data []byte, want uint64, wire int) (v any, ok bool) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, false
		}
		data = data[n:]
		skip := 0
		switch tag & 7 {
		case wireVarint:
			num, n := binary.Uvarint(data)
			if n <= 0 {
				return nil, false
			}
			if tag>>3 == want && wire == wireVarint {
				return num, true
			}
			skip = n
		case wireBytes:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return nil, false
			}
			if tag>>3 == want && wire == wireBytes {
				return data[n : n+int(length)], true
			}
			skip = n + int(length)
		case wire64:
			skip = 8
		case wire32:
			skip = 4
		default:
			return nil, false
		}
		if skip > len(data) {
			return nil, false
		}
		data = data[skip:]
	}
	return nil, false
}
