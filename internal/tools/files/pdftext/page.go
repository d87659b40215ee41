package pdftext

import (
	"bytes"
	"context"
	"math"
	"strings"
	"unicode"
)

// The limits of one page.
const (
	maxOperations = 5_000_000
	maxOperands   = 1_000
	maxForms      = 8 // pages inside pages
	maxSaved      = 256
)

// matrix maps points: x' = a x + c y + e, y' = b x + d y + f.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// after returns the matrix that does m first, and then n.
func (m matrix) after(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// state is the graphics state, as far as text needs it.
type state struct {
	ctm                  matrix
	font                 *font
	size                 float64
	chars, words         float64 // spacing
	scale, leading, rise float64
}

// interpreter runs the operators of a page and writes the text that they show,
// in their order. Where the text goes decides on line ends and blanks.
type interpreter struct {
	ctx   context.Context
	doc   *Document
	most  int
	out   strings.Builder
	steps int

	state
	saved    []state
	tm, line matrix

	x, y, height float64 // where the last character ended, and its size
	any          bool
}

// run runs a content stream.
func (in *interpreter) run(content []byte, resources dict, ctm matrix, depth int) {
	if depth == 0 {
		in.state = state{ctm: ctm, scale: 1}
	}
	l := &lexer{data: content}
	var args []any
	for in.out.Len() < in.most {
		v := l.object(0)
		op, ok := v.(keyword)
		if !ok {
			if len(args) < maxOperands {
				args = append(args, v)
			}
			continue
		}
		if in.steps++; op == end || in.steps > maxOperations || in.steps%1024 == 0 && in.ctx.Err() != nil {
			return
		}
		if op == "BI" {
			skipImage(l)
		} else if op == "Do" {
			in.form(args, resources, depth)
		} else {
			in.do(string(op), args, resources)
		}
		args = args[:0]
	}
}

// skipImage passes over the bytes of an inline image, to the EI between spaces.
func skipImage(l *lexer) {
	for {
		i := bytes.Index(l.data[l.at:], []byte("EI"))
		if i < 0 {
			l.at = len(l.data)
			return
		}
		from := l.at + i
		l.at = from + 2
		if from > 0 && space(l.data[from-1]) && (l.at == len(l.data) || space(l.data[l.at])) {
			return
		}
	}
}

// form runs a page inside the page.
func (in *interpreter) form(args []any, resources dict, depth int) {
	if len(args) == 0 || depth >= maxForms {
		return
	}
	key, _ := args[0].(name)
	s, ok := in.doc.resolve(in.doc.dict(resources["XObject"])[key]).(stream)
	if !ok || s.dict["Subtype"] != name("Form") {
		return
	}
	before := in.state
	if m, ok := in.matrix(in.doc.list(s.dict["Matrix"])); ok {
		in.ctm = m.after(in.ctm)
	}
	inner := in.doc.dict(s.dict["Resources"])
	if inner == nil {
		inner = resources
	}
	in.run(in.doc.unpack(s), inner, in.ctm, depth+1)
	in.state = before
}

func (in *interpreter) matrix(args []any) (m matrix, ok bool) {
	if len(args) < 6 {
		return m, false
	}
	for i := range m {
		m[i], _ = in.doc.number(args[i])
	}
	return m, true
}

// do runs one operator.
func (in *interpreter) do(op string, args []any, resources dict) {
	n := func(i int) float64 {
		if i < len(args) {
			v, _ := args[i].(float64)
			return v
		}
		return 0
	}
	switch op {
	case "q":
		if len(in.saved) < maxSaved {
			in.saved = append(in.saved, in.state)
		}
	case "Q":
		if k := len(in.saved); k > 0 {
			in.state, in.saved = in.saved[k-1], in.saved[:k-1]
		}
	case "cm":
		if m, ok := in.matrix(args); ok {
			in.ctm = m.after(in.ctm)
		}
	case "BT":
		in.tm, in.line = identity, identity
	case "Tm":
		if m, ok := in.matrix(args); ok {
			in.tm, in.line = m, m
		}
	case "TD":
		in.leading = -n(1)
		in.move(n(0), n(1))
	case "Td":
		in.move(n(0), n(1))
	case "T*":
		in.move(0, -in.leading)
	case "TL":
		in.leading = n(0)
	case "Tc":
		in.chars = n(0)
	case "Tw":
		in.words = n(0)
	case "Tz":
		in.scale = n(0) / 100
	case "Ts":
		in.rise = n(0)
	case "Tf":
		if len(args) > 1 {
			key, _ := args[0].(name)
			in.font, in.size = in.doc.font(in.doc.dict(resources["Font"])[key]), n(1)
		}
	case "Tj":
		in.show(args)
	case "'":
		in.move(0, -in.leading)
		in.show(args)
	case "\"":
		in.words, in.chars = n(0), n(1)
		in.move(0, -in.leading)
		in.show(args[min(2, len(args)):])
	case "TJ":
		if len(args) > 0 {
			parts, _ := args[0].(array)
			in.show(parts)
		}
	}
}

func (in *interpreter) move(x, y float64) {
	in.line = matrix{1, 0, 0, 1, x, y}.after(in.line)
	in.tm = in.line
}

// show writes strings; numbers between them move on.
func (in *interpreter) show(parts []any) {
	if in.font == nil {
		return
	}
	for _, p := range parts {
		switch p := p.(type) {
		case float64:
			in.advance(-p / 1000 * in.size * in.scale)
		case text:
			for _, g := range in.font.glyphs(string(p)) {
				in.put(g.text)
				w := g.width/1000*in.size + in.chars
				if g.space {
					w += in.words
				}
				in.advance(w * in.scale)
				in.x, in.y = in.at()
			}
		}
	}
}

func (in *interpreter) advance(x float64) { in.tm = matrix{1, 0, 0, 1, x, 0}.after(in.tm) }

// at returns where the next character goes, in the space of the page.
func (in *interpreter) at() (x, y float64) {
	m := in.tm.after(in.ctm)
	return m[4], m[5]
}

// put writes a character, behind a line end or a blank when it is not next to
// the one before.
func (in *interpreter) put(s string) {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, s)
	if s == "" || in.out.Len() >= in.most {
		return
	}
	x, y := in.at()
	m := in.tm.after(in.ctm)
	height := math.Abs(in.size) * math.Hypot(m[2], m[3])
	if in.any {
		em := max(in.height, height, 0.1)
		dx, dy := x-in.x, y-in.y
		if m[1] != 0 && math.Abs(m[1]) > math.Abs(m[0]) { // turned by a quarter
			dx, dy = dy, dx
		}
		switch text := in.out.String(); {
		case math.Abs(dy) > 1.8*em:
			in.separate(text, "\n\n")
		case math.Abs(dy) > 0.5*em, dx < -2*em:
			in.separate(text, "\n")
		case dx > 0.18*em && s != " ":
			in.separate(text, " ")
		}
	}
	in.out.WriteString(s)
	in.any, in.height = true, height
}

// separate writes as much of a separator as is not there already.
func (in *interpreter) separate(text, sep string) {
	if sep == " " && (strings.HasSuffix(text, " ") || strings.HasSuffix(text, "\n")) || strings.HasSuffix(text, sep) {
		return
	}
	if sep == "\n\n" && strings.HasSuffix(text, "\n") {
		sep = "\n"
	}
	in.out.WriteString(sep)
}
