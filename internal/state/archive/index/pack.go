package index

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

// How a text is stored: as it is behind packRaw, or compressed behind packFlate.
const (
	packRaw   = 0
	packFlate = 1

	worthPacking = 256 // bytes
)

// A packer packs one text after the other.
type packer struct {
	buf bytes.Buffer
	w   *flate.Writer
}

// pack returns what unpack takes, until it is called again.
func (p *packer) pack(text string) []byte {
	p.buf.Reset()
	if len(text) >= worthPacking {
		p.buf.WriteByte(packFlate)
		if p.w == nil {
			p.w, _ = flate.NewWriter(&p.buf, flate.BestSpeed) // the level is a good one
		} else {
			p.w.Reset(&p.buf)
		}
		io.WriteString(p.w, text) //nolint:errcheck // a buffer takes everything
		p.w.Close()
		if p.buf.Len() <= len(text) {
			return p.buf.Bytes()
		}
		p.buf.Reset()
	}
	p.buf.WriteByte(packRaw)
	p.buf.WriteString(text)
	return p.buf.Bytes()
}

// unpack reads a stored text. More than a piece may have is damage.
func unpack(data []byte) (string, error) {
	if len(data) == 0 {
		return "", fmt.Errorf("a text without form: %w", ErrDamaged)
	}
	form, data := data[0], data[1:]
	if form == packRaw {
		return string(data), nil
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxPiece+1))
	if err != nil || n > maxPiece || form != packFlate {
		return "", fmt.Errorf("a text that cannot be read: %w", ErrDamaged)
	}
	return b.String(), nil
}
