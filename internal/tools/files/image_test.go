package files

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"dure/agent"
)

// noise is an image that does not compress.
func noise(w, h int) *image.RGBA {
	rng := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(rng.Uint32())
	}
	return m
}

func encoded(t *testing.T, kind string, m image.Image) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 100})
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// webp is the beginning of a WebP image of a size.
func webp(w, h int) string {
	body := []byte("VP8X\x0a\x00\x00\x00\x00\x00\x00\x00")
	for _, n := range []int{w - 1, h - 1} {
		body = append(body, byte(n), byte(n>>8), byte(n>>16))
	}
	data := append([]byte("RIFF\x00\x00\x00\x00WEBP"), body...)
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	return string(data)
}

// bomb is a PNG image that says it is large.
func bomb(t *testing.T, w, h int) string {
	data := []byte(encoded(t, "png", image.NewGray(image.Rect(0, 0, 1, 1))))
	binary.BigEndian.PutUint32(data[16:], uint32(w))
	binary.BigEndian.PutUint32(data[20:], uint32(h))
	binary.BigEndian.PutUint32(data[29:], crc(data[12:29]))
	return string(data)
}

func crc(data []byte) uint32 {
	c := ^uint32(0)
	for _, b := range data {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0xedb88320&-(c&1)
		}
	}
	return ^c
}

func TestReadImage(t *testing.T) {
	small := noise(30, 20)
	for _, c := range []struct {
		name, data, want string
		kind             string // what the model is given; "" = nothing
	}{
		{"small PNG", encoded(t, "png", small), "[image/png, N bytes, 30 x 20 pixels]", "image/png"},
		{"small JPEG", encoded(t, "jpeg", small), "[image/jpeg, N bytes, 30 x 20 pixels]", "image/jpeg"},
		{"small GIF", encoded(t, "gif", small), "[image/gif, N bytes, 30 x 20 pixels]", "image/gif"},
		{"WebP", webp(640, 480), "[image/webp, N bytes, 640 x 480 pixels]", "image/webp"},
		{"large WebP", webp(9000, 480), "E_FILE_TOO_LARGE: the WebP image of 30 bytes, 9000 x 480 pixels, is too large to be shown", ""},
		{"long", encoded(t, "png", image.NewGray(image.Rect(0, 0, 9000, 10))), "[image/png, N bytes, 9000 x 10 pixels; shown as image/png, 1568 x 1]", "image/png"},
		{"heavy PNG", encoded(t, "png", noise(900, 800)), "[image/png, N bytes, 900 x 800 pixels; shown as image/jpeg, 900 x 800]", "image/jpeg"},
		{"heavy JPEG", encoded(t, "jpeg", noise(1600, 1000)), "[image/jpeg, N bytes, 1600 x 1000 pixels; shown as image/jpeg, 1568 x 980]", "image/jpeg"},
		{"bomb", bomb(t, 30_000, 30_000), "E_FILE_TOO_LARGE: the image has 30000 x 30000 pixels, more than 64 megapixels", ""},
		{"lying", bomb(t, 3000, 3000), "E_FILE_BINARY: WS/f.txt is a PNG image of N bytes and cannot be decoded: png: invalid format: not enough pixel data", ""},
		{"half", encoded(t, "png", small)[:200], "E_FILE_BINARY: WS/f.txt is a PNG image of N bytes and cannot be decoded: png: invalid format: not enough pixel data", ""},
		{"needle", bomb(t, 100_000, 1), "E_FILE_TOO_LARGE: the image is 100000 x 1 pixels", ""},
	} {
		d := newDesk(t)
		d.put("f.txt", c.data) // the content decides, not the name
		r := d.do("read", in{"file_path": "f.txt"})
		got, _, _ := strings.Cut(r.Text, "\n")
		if r.Failed() {
			got = string(r.Error.Code) + ": " + got
		}
		got = strings.NewReplacer(d.ws, "WS", fmt.Sprint(len(c.data))+" bytes", "N bytes").Replace(got)
		if got != strings.ReplaceAll(c.want, "30 bytes", "N bytes") {
			t.Errorf("%s: %s", c.name, got)
		}
		if c.kind == "" {
			if len(r.Blocks) != 0 {
				t.Errorf("%s: %d blocks", c.name, len(r.Blocks))
			}
			continue
		}
		m := r.Blocks[0].Media
		if len(r.Blocks) != 1 || r.Blocks[0].Type != agent.ImageBlock || m.Type != c.kind || base64Size(len(m.Data)) > sentImage || imageType(m.Data) != c.kind {
			t.Errorf("%s: %s of %d bytes", c.name, m.Type, len(m.Data))
		}
		if !json.Valid(r.Output) || len(r.Output) > 300 {
			t.Errorf("%s: %s", c.name, r.Output)
		}
	}
	d := newDesk(t)
	d.put("f.png", "GIF89a is how a text may begin\n")
	d.want("read", in{"file_path": "f.png", "encoding": "utf-8"}, "1\tGIF89a is how a text may begin")
}

// Each pixel of a scaled image is the mean of what it stands for.
func TestScale(t *testing.T) {
	m := image.NewNRGBA(image.Rect(5, 7, 5+4, 7+4))
	for y := range 4 {
		for x := range 4 {
			m.Set(5+x, 7+y, color.Gray{uint8(40 * (y/2*2 + x/2))})
		}
	}
	m.Set(5, 7, color.Gray{80}) // 80, 0, 0, 0
	got, err := scale(t.Context(), m, 2)
	if err != nil {
		t.Fatal(err)
	}
	var values []uint8
	for i := 0; i < len(got.Pix); i += 4 {
		values = append(values, got.Pix[i])
	}
	if want := []uint8{20, 40, 80, 120}; !bytes.Equal(values, want) || got.Bounds() != image.Rect(0, 0, 2, 2) {
		t.Errorf("%v %v", values, got.Bounds())
	}
}

func FuzzImage(f *testing.F) {
	f.Add([]byte(webp(3, 4)))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"))
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10JFIF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := (&files{}).newPicture(t.Context(), data)
		if err == nil && (base64Size(len(p.media.Data)) > sentImage || max(p.shown.X, p.shown.Y) > maxSide || imageType(p.media.Data) != p.media.Type) {
			t.Fatalf("%+v", p.shown)
		}
	})
}
