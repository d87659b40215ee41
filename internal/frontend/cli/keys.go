package cli

import (
	"bytes"
	"unicode/utf8"
)

// keyCode names what a key asks for.
type keyCode uint8

// The keys that the editor knows.
const (
	keyText keyCode = iota // text
	keyPaste
	keyEnter
	keyNewline
	keyBackspace
	keyDelete
	keyLeft
	keyRight
	keyUp
	keyDown
	keyHome
	keyEnd
	keyWordLeft
	keyWordRight
	keyTurnBack
	keyTurnOn
	keyKillEnd
	keyKillStart
	keyKillWord
	keyYank
	keyRedraw
	keySuspend
	keyInterrupt
	keyEOF
	keyTab
)

type key struct {
	code keyCode
	text string // of keyText and keyPaste
}

// Bounds of input, in bytes. What is longer is cut, respectively dropped.
const (
	maxPaste    = 1 << 20
	maxSequence = 64
)

// controls are the keys of single control characters.
var controls = map[byte]keyCode{
	'\r': keyEnter, '\n': keyNewline, 0x7f: keyBackspace, 0x08: keyBackspace,
	0x01: keyHome, 0x02: keyLeft, 0x03: keyInterrupt, 0x04: keyEOF, 0x05: keyEnd, 0x06: keyRight,
	0x09: keyTab, 0x0b: keyKillEnd, 0x0c: keyRedraw, 0x0e: keyDown, 0x10: keyUp, 0x15: keyKillStart, 0x17: keyKillWord, 0x19: keyYank, 0x1a: keySuspend,
}

// sequences are the keys of escape sequences, written without the escape. Of a
// CSI sequence only the first parameter and the final byte count, unless a
// modifier is listed.
var sequences = map[string]keyCode{
	"[A": keyUp, "[B": keyDown, "[C": keyRight, "[D": keyLeft, "[H": keyHome, "[F": keyEnd,
	"OA": keyUp, "OB": keyDown, "OC": keyRight, "OD": keyLeft, "OH": keyHome, "OF": keyEnd,
	"[1~": keyHome, "[4~": keyEnd, "[7~": keyHome, "[8~": keyEnd, "[3~": keyDelete,
	"[1;5C": keyWordRight, "[1;5D": keyWordLeft, "[1;3C": keyWordRight, "[1;3D": keyWordLeft,
	"[1;2D": keyTurnBack, "[1;2C": keyTurnOn,
	"b": keyWordLeft, "f": keyWordRight, "\x7f": keyKillWord, "\r": keyNewline, "\n": keyNewline,
}

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// keyReader turns the bytes of a terminal into keys. Sequences and characters
// may arrive in pieces.
type keyReader struct {
	rest    []byte // the beginning of something
	pasting bool
	paste   []byte
}

// feed returns the keys that are complete with b.
func (k *keyReader) feed(b []byte) []key {
	k.rest = append(k.rest, b...)
	var keys []key
	for len(k.rest) > 0 {
		n := 0
		if k.pasting {
			n = k.inPaste(&keys)
		} else {
			n = k.one(&keys)
		}
		if n == 0 {
			break
		}
		k.rest = k.rest[n:]
	}
	return keys
}

// one takes one key off the rest and returns its length; 0 = it is not complete.
func (k *keyReader) one(keys *[]key) int {
	b := k.rest
	switch c := b[0]; {
	case c == 0x1b:
		return k.escape(keys)
	case c < ' ' || c == 0x7f:
		if code, ok := controls[c]; ok {
			*keys = append(*keys, key{code: code})
		}
		return 1
	case !utf8.FullRune(b):
		return 0
	}
	n := 0
	for n < len(b) && b[n] >= ' ' && b[n] != 0x7f && utf8.FullRune(b[n:]) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	if n == 0 {
		return 1 // no UTF-8
	}
	*keys = append(*keys, key{keyText, string(b[:n])})
	return n
}

// escape takes an escape sequence off the rest.
func (k *keyReader) escape(keys *[]key) int {
	b := k.rest
	if len(b) < 2 {
		return 0
	}
	n := 2
	switch b[1] {
	case '[':
		for n < len(b) && (b[n] < 0x40 || b[n] > 0x7e) {
			n++
		}
		if n == len(b) {
			if n > maxSequence {
				return n
			}
			return 0
		}
		n++
	case 'O':
		if len(b) < 3 {
			return 0
		}
		n = 3
	}
	if bytes.Equal(b[:n], pasteStart) {
		k.pasting, k.paste = true, nil
		return n
	}
	if code, ok := sequences[string(b[1:n])]; ok {
		*keys = append(*keys, key{code: code})
		return n
	}
	if n == 2 {
		return 1 // an escape by itself; what follows is a key of its own
	}
	return n
}

// inPaste takes pasted text off the rest.
func (k *keyReader) inPaste(keys *[]key) int {
	b := k.rest
	n := bytes.IndexByte(b, 0x1b)
	switch {
	case n < 0:
		n = len(b)
	case bytes.HasPrefix(b[n:], pasteEnd):
		k.add(b[:n])
		*keys = append(*keys, key{keyPaste, string(k.paste)})
		k.pasting, k.paste = false, nil
		return n + len(pasteEnd)
	case n == 0 && bytes.HasPrefix(pasteEnd, b):
		return 0
	case n == 0:
		n = 1
	}
	k.add(b[:n])
	return n
}

func (k *keyReader) add(b []byte) {
	k.paste = append(k.paste, b[:min(len(b), maxPaste-len(k.paste))]...)
}
