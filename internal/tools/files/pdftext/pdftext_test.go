package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// made is a PDF file of objects, numbered from 1; the first is the catalog.
func made(objects ...string) []byte {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		if o != "" {
			fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
		}
	}
	b.WriteString("trailer\n<< /Root 1 0 R >>\n%%EOF\n")
	return []byte(b.String())
}

// drawn is a stream, of content as it is.
func drawn(content string) string {
	return fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content)
}

// packed is a stream that is deflated; more stands in its dictionary.
func packed(content, more string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(content))
	_ = w.Close()
	return fmt.Sprintf("<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream", b.Len(), more, b.String())
}

const (
	catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	onePage = "<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F 5 0 R >> >> >>"
	page    = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>"
	latin   = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)

func textOf(t *testing.T, data []byte) string {
	t.Helper()
	d, err := Open(t.Context(), data)
	if err != nil {
		return "error: " + err.Error()
	}
	var pages []string
	for i := range d.Pages() {
		s, err := d.Text(t.Context(), i+1, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, s)
	}
	return strings.Join(pages, "|")
}

func TestText(t *testing.T) {
	show := func(content, font string) []byte { return made(catalog, onePage, page, drawn(content), font) }
	objects := made(catalog, onePage, page, drawn("BT /F 10 Tf (old) Tj ET"), latin)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"plain", show("BT /F 12 Tf 72 700 Td (Hello, \\(world\\)\\041) Tj ET", latin), "Hello, (world)!"},
		{"lines", show("BT /F 12 Tf 14 TL 72 700 Td (one) Tj T* (two) Tj (three) ' 0 -40 Td (far) Tj ET", latin), "one\ntwo\nthree\n\nfar"},
		{"kerning and gaps", show("BT /F 10 Tf [(ke) -20 (rn) -600 (ed)] TJ ET", latin), "kern ed"},
		{"placed words", show("BT /F 10 Tf 1 0 0 1 10 10 Tm (a) Tj 1 0 0 1 40 10 Tm (b) Tj 1 0 0 1 10 30 Tm (c) Tj ET", latin), "a b\n\nc"},
		{"WinAnsi", show("BT /F 10 Tf (na\\357ve \\200) Tj ET", latin), "naïve €"},
		{"hex string", show("BT /F 10 Tf <48 69 2> Tj ET", latin), "Hi"},
		{"differences", show("BT /F 10 Tf (abd) Tj ET", "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [97 /eacute /fi /uni B300 100 /uniB450] >> >>"), "éfi두"},
		{"inherited state", show("q 2 0 0 2 0 0 cm BT /F 10 Tf (a) Tj ET Q BT /F 10 Tf 100 0 Td (b) Tj ET", latin), "a b"},
		{"inline image", show("BI /W 1 /H 1 ID \x01(EI)\xff EI BT /F 10 Tf (after) Tj ET", latin), "after"},
		{"ToUnicode", made(catalog, onePage, page, drawn("BT /F 10 Tf <000100020005> Tj ET"), "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>",
			packed("1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0001> <B450> endbfchar 2 beginbfrange <0002> <0004> <B808> <0005> <0006> [<00660069> <0021>] endbfrange", "")), "두레fi"},
		{"Korean map", show("BT /F 10 Tf <b5ceb7b9> Tj ET", "<< /Type /Font /Subtype /Type0 /Encoding /KSCms-UHC-H >>"), "두레"},
		{"UTF-16 map", show("BT /F 10 Tf <B450B808> Tj ET", "<< /Type /Font /Subtype /Type0 /Encoding /UniKS-UTF16-H >>"), "두레"},
		{"no map", show("BT /F 10 Tf <00010002> Tj ET", "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H >>"), ""},
		{"deflated", made(catalog, onePage, page, packed("BT /F 10 Tf (small) Tj ET", ""), latin), "small"},
		{"several streams", made(catalog, onePage, "<< /Type /Page /Contents [4 0 R 6 0 R] >>", drawn("BT /F 10 Tf"), latin, drawn("(joined) Tj ET")), "joined"},
		{"form", made(catalog, onePage, "<< /Contents 4 0 R /Resources << /XObject << /X 6 0 R >> /Font << /F 5 0 R >> >> >>", drawn("/X Do"), latin,
			"<< /Subtype /Form /Length 27 >>\nstream\nBT /F 10 Tf (in form) Tj ET\nendstream"), "in form"},
		{"length elsewhere", made(catalog, onePage, page, "<< /Length 6 0 R >>\nstream\nBT /F 10 Tf (x) Tj ET\nendstream", latin, "21"), "x"},
		{"wrong length", made(catalog, onePage, page, "<< /Length 3 >>\nstream\nBT /F 10 Tf (x) Tj ET\nendstream", latin), "x"},
		{"changed later", append(objects, "4 0 obj\n"+drawn("BT /F 10 Tf (new) Tj ET")+"\nendobj\n"...), "new"},
		{"object stream", []byte("%PDF-1.7\n6 0 obj\n" + packed("1 0 2 34 3 114 5 162 "+fmt.Sprintf("%-34s%-80s%-48s%s", catalog, onePage, page, latin), "/Type /ObjStm /N 4 /First 21") +
			"\nendobj\n4 0 obj\n" + drawn("BT /F 10 Tf (hidden) Tj ET") + "\nendobj\n7 0 obj\n<< /Type /XRef /Root 1 0 R /Length 0 >>\nstream\n\nendstream\nendobj\n"), "hidden"},
		{"two pages", made(catalog, "<< /Type /Pages /Kids [3 0 R 6 0 R] /Resources << /Font << /F 5 0 R >> >> >>", page, drawn("BT /F 10 Tf (one) Tj ET"), latin, "<< /Type /Page /Contents 7 0 R >>", drawn("BT /F 10 Tf (two) Tj ET")), "one|two"},

		{"encrypted", bytes.Replace(objects, []byte("/Root 1 0 R"), []byte("/Root 1 0 R /Encrypt 9 0 R"), 1), "error: the document is encrypted"},
		{"nothing", []byte("%PDF-1.7\n"), "error: the document has no pages that can be found"},
		{"pages in a circle", made(catalog, "<< /Type /Pages /Kids [2 0 R 2 0 R] >>"), "error: the document has no pages that can be found"},
	} {
		if got := textOf(t, c.data); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFilters(t *testing.T) {
	var a85 bytes.Buffer
	w := ascii85.NewEncoder(&a85)
	_, _ = w.Write([]byte("text"))
	_ = w.Close()
	d := &Document{left: maxUnpacked}
	for _, c := range []struct {
		name, filter, params, raw, want string
	}{
		{"LZW", "/LZWDecode", "", "\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01", "-----A---B"},
		{"ASCII hex", "/ASCIIHexDecode", "", "74 65 78 7>", "texp"},
		{"ASCII 85", "/ASCII85Decode", "", "<~" + a85.String() + "~>", "text"},
		{"run length", "/RunLengthDecode", "", "\x02abc\xfed\x80", "abcddd"},
		{"two", "[/ASCIIHexDecode /RunLengthDecode]", "", "fe6480>", "ddd"},
		{"picture", "/DCTDecode", "", "\xff\xd8", ""},
		{"unknown", "/Other", "", "x", ""},
	} {
		l := &lexer{data: []byte("<< /Filter " + c.filter + " " + c.params + ">>")}
		if got := d.unpack(stream{l.object(0).(dict), []byte(c.raw)}); string(got) != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	rows := "\x00ab\x01ab\x02\x01\x01\x03\x00\x00\x04\x01\x01"
	params := dict{"Predictor": 12.0, "Columns": 2.0}
	if got := predicted(d, []byte(rows), params); !bytes.Equal(got, []byte("aba\xc3b\xc41\x7a\x32\x7b")) {
		t.Errorf("%q", got)
	}
}

// Hostile files end soon, with what there is or nothing.
func TestHostile(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	bomb := packed(strings.Repeat("BT /F 10 Tf (x) Tj ET ", maxStream/16), "") // 44 MiB
	for name, data := range map[string][]byte{
		"deep in the file":        made(catalog, onePage, deep, drawn(""), latin),
		"deep dictionaries":       made(catalog, onePage, page, drawn(strings.Repeat("<</a", 1<<20)), latin),
		"deep in a packed stream": made(catalog, onePage, page, packed(deep, ""), latin),
		"much unpacked":           made(catalog, onePage, page, bomb, latin),
		"unpacked many times":     made(catalog, onePage, "<< /Contents ["+strings.Repeat("4 0 R ", 10_000)+"] >>", bomb, latin),
		"form in itself":          made(catalog, onePage, "<< /Contents 4 0 R /Resources << /XObject << /X 6 0 R >> >> >>", drawn(strings.Repeat("/X Do ", 100)), latin, "<< /Subtype /Form /Length 12 /Resources << /XObject << /X 6 0 R >> >> >>\nstream\n/X Do /X Do \nendstream"),
		"length is itself":        made(catalog, onePage, page, "<< /Length 4 0 R >>\nstream\nx\nendstream", latin),
		"reference to itself":     made("1 0 R", "2 0 R"),
		"object numbers":          []byte("%PDF-1.7\n99999999999 0 obj\n1\nendobj\n-1 0 obj 1 endobj"),
		"wide ranges":             made(catalog, onePage, page, drawn("BT /F 10 Tf <00000001> Tj ET"), "<< /Subtype /Type0 /ToUnicode 6 0 R /DescendantFonts [<< /W [0 99999999 1 0 999999999 2] >>] >>", drawn("beginbfrange <00000000> <ffffffff> <0041> endbfrange")),
		"predictor":               made(catalog, onePage, page, packed(strings.Repeat("x", 1000), "/DecodeParms << /Predictor 15 /Columns 99999999 /Colors 65536 >>"), latin),
		"no end":                  []byte("%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages << /Kids ["),
		"many streams":            []byte("%PDF-1.7\n" + strings.Repeat("1 0 obj<<>>stream ", 100_000)),
		"many objects":            []byte("%PDF-1.7\n" + strings.Repeat("obj trailer ", 100_000)),
		"inline images":           made(catalog, onePage, page, drawn("BI "+strings.Repeat("EI", 1<<20)), latin),
		"fonts made anew":         made(catalog, "<< /Kids [3 0 R] /Resources << /Font << /F << /Subtype /Type1 /Encoding << /Differences ["+strings.Repeat("/a ", 10_000)+"] >> >> >> >> >>", page, drawn(strings.Repeat("/F 1 Tf ", 1<<20)), latin),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		d, err := Open(ctx, data)
		if err == nil {
			_, err = d.Text(ctx, 1, 10_000)
		}
		if took := time.Since(start); took > 60*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(made(catalog, onePage, page, drawn("BT /F 10 Tf (x) Tj [(a) -600 <62>] TJ T* /X Do BI ID x EI ET"), latin))
	f.Add(made(catalog, onePage, page, packed("BT /F 10 Tf <0001> Tj ET", "/DecodeParms << /Predictor 12 >>"), "<< /Subtype /Type0 /ToUnicode 6 0 R /DescendantFonts [<< /W [1 [2 3] 4 5 6] >>] >>", drawn("beginbfrange <00> <ff> <0041> endbfrange")))
	f.Add([]byte("%PDF-1.7\n6 0 obj << /Type /ObjStm /N 1 /First 4 /Filter [/LZWDecode /RunLengthDecode /A85] >> stream\n1 0 << >> endstream"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d, err := Open(ctx, data)
		if err != nil {
			return
		}
		for i := range min(d.Pages(), 3) {
			if s, _ := d.Text(ctx, i+1, 1000); len(s) > 1100 {
				t.Fatalf("%d bytes", len(s))
			}
		}
	})
}
