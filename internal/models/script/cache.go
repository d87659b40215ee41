package script

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"regexp"
	"slices"
	"sync"
)

const (
	maxPrefixes = 1 << 16 // prefixes that are remembered; then all are forgotten

	// A cache that works by itself keeps prompts of at least leastPrefix tokens,
	// in steps of prefixStep tokens.
	leastPrefix = 1024
	prefixStep  = 128
)

// usage is what a request costs to read, in tokens.
type usage struct{ input, read, write int }

func tokens(bytes int) int { return (bytes + 3) / 4 }

// cache remembers prefixes of prompts by their hashes.
type cache struct {
	seed     maphash.Seed
	prefixes map[uint64]bool
}

func (c *cache) reset() {
	if c.prefixes == nil || len(c.prefixes) > maxPrefixes {
		c.seed, c.prefixes = maphash.MakeSeed(), make(map[uint64]bool)
	}
}

// next returns the hash of a prefix that goes on with part.
func (c *cache) next(sum uint64, part []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, sum))
	_, _ = h.Write(part)
	return h.Sum64()
}

// markNames are in all marks; they are looked for before a pattern is.
var markNames = [][]byte{[]byte(`"cache_control"`), []byte(`"prompt_cache_breakpoint"`)}

// hasMark reports whether a part has a mark.
func hasMark(part []byte, pattern *regexp.Regexp) bool {
	named := func(name []byte) bool { return bytes.Contains(part, name) }
	return slices.ContainsFunc(markNames, named) && pattern.Match(part)
}

// withoutMarks returns a part without its marks, and without the comma and the space in front
// of each. A pattern that begins with these would be slow: it would have no literal to look for.
func withoutMarks(part []byte, pattern *regexp.Regexp) []byte {
	var rest []byte
	from := 0
	for _, at := range pattern.FindAllIndex(part, -1) {
		before := bytes.TrimRight(part[from:at[0]], " \t\n\f\r")
		rest = append(rest, bytes.TrimSuffix(before, []byte(","))...)
		from = at[1]
	}
	return append(rest, part[from:]...)
}

// marked counts as the APIs do that cache what marks ask for: the newest prefix
// that a mark finds, at most back parts in front of it, is read, and the rest up
// to the last mark is written.
func (c *cache) marked(parts []json.RawMessage, pattern *regexp.Regexp, back int) usage {
	c.reset()
	hashes, sizes := make([]uint64, len(parts)), make([]int, len(parts))
	var at []int // parts with a mark
	var sum uint64
	size := 0
	for i, part := range parts {
		if hasMark(part, pattern) {
			part = withoutMarks(part, pattern)
			at = append(at, i)
		}
		sum = c.next(sum, part)
		size += len(part)
		hashes[i], sizes[i] = sum, size
	}
	read, write := 0, 0
	for _, i := range at {
		for j := i; j >= max(0, i-back+1); j-- {
			if c.prefixes[hashes[j]] {
				read = max(read, sizes[j])
				break
			}
		}
		write = sizes[i]
	}
	for _, i := range at {
		c.prefixes[hashes[i]] = true
	}
	return usage{input: tokens(size - max(write, read)), read: tokens(read), write: tokens(max(write-read, 0))}
}

// breakPattern matches a mark of OpenAI's formats.
var breakPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"prompt_cache_breakpoint"\s*:\s*\{[^{}]*\}`)
})

// open counts as OpenAI does: by marks when it is told so, or by itself.
func (c *cache) open(r node, parts []json.RawMessage) usage {
	if r.get("prompt_cache_options").get("mode").v == "explicit" {
		return c.marked(parts, breakPattern(), 1)
	}
	return c.auto(parts)
}

// auto counts as the APIs do that cache by themselves: what is the same as in
// an earlier request, from the start, is read, and writing costs nothing.
func (c *cache) auto(parts []json.RawMessage) usage {
	c.reset()
	var sum uint64
	size, same := 0, 0
	going := true
	for _, part := range parts {
		sum = c.next(sum, part)
		size += len(part)
		if going = going && c.prefixes[sum]; going {
			same = size
		}
		c.prefixes[sum] = true
	}
	read := tokens(same) / prefixStep * prefixStep
	if read < leastPrefix {
		read = 0
	}
	return usage{input: tokens(size) - read, read: read}
}
