package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
)

// mirrorLine are lines of a conversation that were written to its file, for the store that
// the host keeps of sessions.
type mirrorLine struct {
	Type    string            `json:"type"`
	File    string            `json:"filePath"`
	Entries []json.RawMessage `json:"entries"`
}

// mirrorWrong says that what follows in a conversation does not come to the store.
type mirrorWrong struct {
	head
	Error string   `json:"error"`
	Key   storeKey `json:"key"`
}

// storeKey is how stores name a conversation.
type storeKey struct {
	Project string `json:"projectKey"`
	Session string `json:"sessionId"`
	Below   string `json:"subpath,omitempty"`
}

// keyOf names the conversation of a file: that of a session stands in the folder of its
// project, that of an agent in a folder named after its session there.
func keyOf(file string) storeKey {
	name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	dir := filepath.Dir(file)
	if filepath.Base(dir) != "subagents" {
		return storeKey{Project: filepath.Base(dir), Session: name}
	}
	session := filepath.Dir(dir)
	return storeKey{filepath.Base(filepath.Dir(session)), filepath.Base(session), "subagents/" + name}
}

// Mirrored hands on what was written to the file of a conversation: whole lines, or why there
// will be no more of them. It waits for a slow reader, and is safe for concurrent use by the
// writers of several files; the lines of one file come in order.
func (h *Host) Mirrored(file string, lines []byte, err error) {
	for _, data := range mirrorLines(file, lines, h.c.Whole) {
		h.out.keep(data)
	}
	if err != nil {
		key := keyOf(file)
		h.out.keep(encode(mirrorWrong{head{"system", "mirror_error", newUUID(), key.Session}, err.Error(), key}))
	}
}

// mirrorLines are the messages with lines of a file: as few as there can be where none is longer
// than hosts read. A line that is too long by itself is a message of its own: whole where the
// host reads any length, else with its longest parts shortened.
func mirrorLines(file string, lines []byte, whole bool) (out [][]byte) {
	empty := len(encode(mirrorLine{"transcript_mirror", file, []json.RawMessage{}}))
	var list []json.RawMessage
	size := empty
	flush := func() {
		if len(list) == 0 {
			return
		}
		m := mirrorLine{"transcript_mirror", file, list}
		data, err := marshal(m)
		if err != nil || len(data) > maxOut && !whole {
			data = encode(m)
		}
		out, list, size = append(out, data), nil, empty
	}
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if size+len(line)+1 > maxOut {
			flush()
		}
		list, size = append(list, line), size+len(line)+1
	}
	flush()
	return out
}

// mirrored waits until what an event says has been handed on to the host's store: it takes in
// what it has got once a turn is over.
func (h *Host) mirrored(seq int64) {
	if h.prog.Mirrored == nil {
		return
	}
	ctx, done := context.WithTimeout(h.ctx, closeTime)
	defer done()
	h.prog.Mirrored(ctx, h.session, seq)
}

// keep writes a line that is not to be lost: also when the host is told to end. It waits for a
// slow reader for as long as anything is written.
func (o *outbox) keep(data []byte) {
	if !o.room.Take(o.life, int64(len(data))) {
		return
	}
	select {
	case o.send <- data:
	case <-o.life.Done():
	}
}
