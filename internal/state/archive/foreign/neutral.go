package foreign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dure/internal/state/archive/repair"
)

// Neutral is no product but the form in which sessions of ours are exported: one
// record of id, role and content a line. The log of a session is read as such, too.
const Neutral Source = "jsonl"

// readNeutral reads a transcript, damaged or not. Its ID is that of the session that
// its records name, or else made of what it says, so that the same transcript has
// the same ID always.
func readNeutral(r io.Reader, b *builder) error {
	rep, err := repair.Check(r, -1, repair.Options{Loose: true})
	if err != nil {
		return err
	}
	if rep.Load == repair.Refused {
		return errors.New(rep.Reason)
	}
	if len(rep.Entries) > maxEntries {
		return errTooLarge
	}
	sum := sha256.New()
	for _, e := range rep.Entries {
		raw, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("reading record %s: %w", short(e.ID), err)
		}
		sum.Write(raw)
		b.records = append(b.records, raw)
		b.seen(e.Time())
		if e.Role == "user" && b.prompt == "" {
			for _, x := range e.Content {
				b.said(object(x.Raw).str("text"))
			}
		}
	}
	b.s.ID = rep.Session
	if b.s.ID == "" {
		b.s.ID = hex.EncodeToString(sum.Sum(nil))
	}
	b.warn(rep.Warnings...)
	return nil
}

// Sniff tells by the beginning of a file whose session it holds; "" when that cannot
// be told.
func Sniff(head []byte) Source {
	head = bytes.TrimPrefix(bytes.TrimSpace(head), []byte("\xef\xbb\xbf"))
	var found Source
	for line := range bytes.Lines(head) {
		f := object(json.RawMessage(bytes.TrimSpace(line)))
		switch {
		case f["payload"] != nil && f["type"] != nil, f.str("type") == "message" && f["role"] != nil, f["instructions"] != nil && f["id"] != nil:
			return Codex
		case f["uuid"] != nil || f["sessionId"] != nil && f["type"] != nil || f["leafUuid"] != nil:
			return ClaudeCode
		case f["info"] != nil && f["messages"] != nil:
			return OpenCode
		case f["role"] != nil && f["content"] != nil, f["seq"] != nil && f["k"] != nil:
			found = Neutral
		}
	}
	if found == "" && bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"info"`)) && bytes.Contains(head, []byte(`"sessionID"`)) {
		return OpenCode // one object on many lines
	}
	return found
}
