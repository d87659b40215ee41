package pdftext

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"encoding/hex"
	"io"
)

// unpack decodes a stream, as far as it is sound and not too large. Pictures
// stay packed: there is no text in them.
func (d *Document) unpack(s stream) []byte {
	filters, params := d.list(s.dict["Filter"]), d.list(s.dict["DecodeParms"])
	data := s.raw
	for i, f := range filters {
		if i == 8 {
			return nil
		}
		var p dict
		if i < len(params) {
			p = d.dict(params[i])
		}
		most := min(maxStream, d.left)
		switch kind, _ := d.resolve(f).(name); kind {
		case "FlateDecode", "Fl":
			data = predicted(d, inflate(data, most), p)
		case "LZWDecode", "LZW":
			early, told := d.number(p["EarlyChange"])
			data = predicted(d, unLZW(data, most, !told || early != 0), p)
		case "ASCII85Decode", "A85":
			data = un85(data)
		case "ASCIIHexDecode", "AHx":
			data = unHex(data)
		case "RunLengthDecode", "RL":
			data = unRun(data, most)
		default:
			return nil
		}
		d.left -= len(data)
	}
	return data
}

// list returns a value that may stand alone as a list of one.
func (d *Document) list(v any) array {
	switch v := d.resolve(v).(type) {
	case nil:
		return nil
	case array:
		return v
	default:
		return array{v}
	}
}

// inflate decodes the zlib format. Its header and checksum do not matter: what
// was decoded before an error counts.
func inflate(data []byte, most int) []byte {
	if len(data) < 2 {
		return nil
	}
	r := flate.NewReader(bytes.NewReader(data[2:]))
	out, _ := io.ReadAll(io.LimitReader(r, int64(most)))
	return out
}

// predicted undoes the PNG predictors, with which rows are stored as
// differences.
func predicted(d *Document, data []byte, p dict) []byte {
	value := func(key name, usual int) int {
		n, ok := d.number(p[key])
		if !ok || n < 1 || n > 1<<16 {
			return usual
		}
		return int(n)
	}
	if value("Predictor", 1) < 10 {
		return data
	}
	bits := value("Colors", 1) * value("BitsPerComponent", 8)
	size, row := (bits+7)/8, (bits*value("Columns", 1)+7)/8
	if row > 1<<20 {
		return nil
	}
	out := make([]byte, 0, len(data))
	before := make([]byte, row)
	for len(data) > row {
		kind, now := data[0], bytes.Clone(data[1:row+1])
		data = data[row+1:]
		for i := range now {
			var left, above, corner byte
			above = before[i]
			if i >= size {
				left, corner = now[i-size], before[i-size]
			}
			switch kind {
			case 1:
				now[i] += left
			case 2:
				now[i] += above
			case 3:
				now[i] += byte((int(left) + int(above)) / 2)
			case 4:
				now[i] += paeth(left, above, corner)
			}
		}
		out = append(out, now...)
		before = now
	}
	return out
}

// paeth is the predictor of that name (PNG, 9.4).
func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	da, db, dc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	switch {
	case da <= db && da <= dc:
		return a
	case db <= dc:
		return b
	}
	return c
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// unLZW decodes the variant of LZW that TIFF and PDF use: codes of 9 to 12 bits,
// the highest bit first, which grow one code early as a rule.
func unLZW(data []byte, most int, early bool) []byte {
	const clear, stop = 256, 257
	type entry struct {
		prefix int
		last   byte
		size   int
	}
	table := make([]entry, 258, 4096)
	for i := range 256 {
		table[i] = entry{-1, byte(i), 1}
	}
	var out []byte
	width, prev := 9, -1
	bits, have := 0, 0
	for _, c := range data {
		bits, have = bits<<8|int(c), have+8
		if have < width {
			continue
		}
		code := bits >> (have - width) & (1<<width - 1)
		have -= width
		bits &= 1<<have - 1
		if code == stop || len(out) >= most {
			break
		}
		if code == clear {
			table, width, prev = table[:258], 9, -1
			continue
		}
		if code > len(table) || code == len(table) && prev < 0 {
			break
		}
		at := code
		if code == len(table) {
			at = prev
		}
		from := len(out)
		out = append(out, make([]byte, table[at].size)...)
		for i, e := len(out)-1, at; i >= from; i, e = i-1, table[e].prefix {
			out[i] = table[e].last
		}
		if code == len(table) {
			out = append(out, out[from])
		}
		if prev >= 0 && len(table) < 4096 {
			table = append(table, entry{prev, out[from], table[prev].size + 1})
		}
		prev = code
		grown := len(table)
		if early {
			grown++
		}
		for width < 12 && grown >= 1<<width {
			width++
		}
	}
	return out[:min(len(out), most)]
}

func un85(data []byte) []byte {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~"))
	if i := bytes.IndexByte(data, '~'); i >= 0 {
		data = data[:i]
	}
	out, _ := io.ReadAll(ascii85.NewDecoder(bytes.NewReader(data)))
	return out
}

func unHex(data []byte) []byte {
	var digits []byte
	for _, c := range data {
		if c == '>' {
			break
		}
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' {
			digits = append(digits, c)
		}
	}
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	out := make([]byte, len(digits)/2)
	n, _ := hex.Decode(out, digits) // only digits are left
	return out[:n]
}

func unRun(data []byte, most int) []byte {
	var out []byte
	for len(data) > 1 && data[0] != 128 && len(out) < most {
		n := int(data[0])
		if n < 128 {
			n = min(n+1, len(data)-1)
			out = append(out, data[1:n+1]...)
			data = data[n+1:]
			continue
		}
		out = append(out, bytes.Repeat(data[1:2], 257-n)...)
		data = data[2:]
	}
	return out
}
