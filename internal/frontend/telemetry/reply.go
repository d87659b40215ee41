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

// field is one of a message of protobuf.
type field struct {
	number uint64
	wire   int
	num    uint64 // of wireVarint
	data   []byte // of wireBytes
}

// nextField reads the first field of a message, and returns what is behind it.
func nextField(data []byte) (f field, rest []byte, ok bool) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return f, nil, false
	}
	data = data[n:]
	f = field{number: tag >> 3, wire: int(tag & 7)}
	skip := 0
	switch f.wire {
	case wireVarint:
		if f.num, skip = binary.Uvarint(data); skip <= 0 {
			return f, nil, false
		}
	case wireBytes:
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return f, nil, false
		}
		skip = n + int(length)
		f.data = data[n:skip]
	case wire64:
		skip = 8
	case wire32:
		skip = 4
	default:
		return f, nil, false
	}
	if skip > len(data) {
		return f, nil, false
	}
	return f, data[skip:], true
}

// fieldOf finds a field of a message of protobuf: the bytes of one that has bytes, or a
// number.
func fieldOf(data []byte, want uint64, wire int) (v any, ok bool) {
	for len(data) > 0 {
		f, rest, ok := nextField(data)
		if !ok {
			return nil, false
		}
		if f.number == want && f.wire == wire {
			if wire == wireVarint {
				return f.num, true
			}
			return f.data, true
		}
		data = rest
	}
	return nil, false
}
