package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif" // also registers the format, as the next two do
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

// Limits of images.
const (
	maxImage    = 20 << 20                // bytes of a file
	maxPixels   = 64 << 20                // of an image that is decoded: 64 megapixels
	maxSide     = 8_000                   // pixels of the longest side that is passed on as it is
	scaledSide  = 1_568                   // what a larger one is scaled down to
	longestSide = 65_535                  // pixels of a side of an image that is decoded
	decodeTime  = 20 * time.Second        // for one image or PDF
	sentImage   = (3 << 20) + (512 << 10) // base64 bytes of what is passed on
)

// stopped is a reader that ends with its context. What reads from it ends then
// too: none of the decoders goes on for long without reading.
type stopped struct {
	ctx context.Context
	r   io.Reader
}

func (s *stopped) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// imageType returns the media type of an image that models can see, by its
// first 16 bytes; "" for everything else.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 15 && bytes.HasPrefix(head, []byte("RIFF")) && bytes.HasPrefix(head[8:], []byte("WEBPVP8")):
		return "image/webp"
	}
	return ""
}

// base64Size is how large n bytes are in base64.
func base64Size(n int) int { return (n + 2) / 3 * 4 }

// picture is an image on its way to the model.
type picture struct {
	media         agent.Media
	width, height int // of the original
	shown         image.Point
}

// showImage passes an image on. It is decoded first: one that a provider would
// refuse would spoil the conversation for good.
func (f *files) showImage(ctx context.Context, name string, data []byte, _ readInput) (*view, error) {
	p, err := f.newPicture(ctx, data)
	if err != nil {
		if _, ok := errors.AsType[*agent.ToolError](err); ok || ctx.Err() != nil {
			return nil, err
		}
		return nil, kit.Refuse(ErrFileBinary, fmt.Sprintf("%s is %s and cannot be decoded: %s", kit.Name(name), (&binaryError{data[:min(len(data), 16)], int64(len(data))}).kind(), kit.Cut(err.Error(), 200)), "The file may be damaged; look at it with a command.")
	}
	original := imageType(data)
	text := fmt.Sprintf("[%s, %d bytes, %d x %d pixels", original, len(data), p.width, p.height)
	if p.shown != image.Pt(p.width, p.height) || p.media.Type != original {
		text += fmt.Sprintf("; shown as %s, %d x %d", p.media.Type, p.shown.X, p.shown.Y)
	}
	v := &view{text: text + "]", blocks: []agent.Block{{Type: agent.ImageBlock, Media: &p.media}}}
	type size struct {
		Width  int `json:"originalWidth"`
		Height int `json:"originalHeight"`
		X      int `json:"displayWidth"`
		Y      int `json:"displayHeight"`
	}
	v.output = kit.Structured(struct {
		Type string `json:"type"`
		File struct {
			Type string `json:"type"`
			Size int    `json:"originalSize"`
			Dim  size   `json:"dimensions"`
		} `json:"file"`
	}{"image", struct {
		Type string `json:"type"`
		Size int    `json:"originalSize"`
		Dim  size   `json:"dimensions"`
	}{p.media.Type, len(data), size{p.width, p.height, p.shown.X, p.shown.Y}}})
	return v, nil
}

// newPicture checks an image and makes it small enough.
func (f *files) newPicture(ctx context.Context, data []byte) (*picture, error) {
	kind := imageType(data)
	small := base64Size(len(data)) <= sentImage
	if kind == "image/webp" { // there is no decoder: as it is, or not at all
		w, h, err := webpSize(data)
		if err != nil {
			return nil, err
		}
		if !small || max(w, h) > maxSide {
			return nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("the WebP image of %d bytes, %d x %d pixels, is too large to be shown", len(data), w, h), "Convert it to a smaller PNG or JPEG with a command.")
		}
		return &picture{agent.Media{Type: kind, Data: data}, w, h, image.Pt(w, h)}, nil
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if c.Width <= 0 || c.Height <= 0 || int64(c.Width)*int64(c.Height) > maxPixels {
		return nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("the image has %d x %d pixels, more than %d megapixels", c.Width, c.Height, maxPixels>>20), "Scale it down with a command first.")
	}
	if max(c.Width, c.Height) > longestSide {
		return nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("the image is %d x %d pixels", c.Width, c.Height), "Cut it into parts with a command first.")
	}
	f.decoding.Lock()
	defer f.decoding.Unlock()
	ctx, cancel := context.WithTimeout(ctx, decodeTime)
	defer cancel()
	img, err := decodeImage(kind, &stopped{ctx, bytes.NewReader(data)})
	if err != nil {
		return nil, err
	}
	size := img.Bounds().Size()
	p := &picture{width: size.X, height: size.Y}
	if small && max(size.X, size.Y) <= maxSide {
		p.media, p.shown = agent.Media{Type: kind, Data: data}, size
		return p, nil
	}
	return p, p.shrink(ctx, img, kind)
}

// decodeImage decodes an image, of an animation its first frame.
func decodeImage(kind string, r io.Reader) (image.Image, error) {
	switch kind {
	case "image/png":
		return png.Decode(r)
	case "image/jpeg":
		return jpeg.Decode(r)
	}
	return gif.Decode(r)
}

// shrink scales an image down and encodes it anew: a photograph as JPEG, others
// as PNG if that is small enough.
func (p *picture) shrink(ctx context.Context, img image.Image, kind string) error {
	for side := scaledSide; side >= 196; side /= 2 {
		scaled, err := scale(ctx, img, side)
		if err != nil {
			return err
		}
		p.shown = scaled.Bounds().Size()
		var b bytes.Buffer
		if kind != "image/jpeg" {
			if err := png.Encode(&b, scaled); err != nil {
				return err
			}
			if base64Size(b.Len()) <= sentImage {
				p.media = agent.Media{Type: "image/png", Data: b.Bytes()}
				return nil
			}
			b.Reset()
		}
		draw.Draw(scaled, scaled.Bounds(), onWhite(scaled), image.Point{}, draw.Src)
		if err := jpeg.Encode(&b, scaled, &jpeg.Options{Quality: 85}); err != nil {
			return err
		}
		if base64Size(b.Len()) <= sentImage {
			p.media = agent.Media{Type: "image/jpeg", Data: b.Bytes()}
			return nil
		}
	}
	return kit.Refuse(ErrFileLarge, "the image cannot be made small enough", "Scale it down with a command first.")
}

// onWhite returns an image on a white ground: JPEG has no transparency.
func onWhite(img *image.RGBA) *image.RGBA {
	flat := image.NewRGBA(img.Bounds())
	draw.Draw(flat, flat.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	return flat
}

// scale returns an image whose longest side is at most side pixels. Each pixel
// is the mean of those that it stands for. Of the original no more is converted
// at a time than the rows of one new row.
func scale(ctx context.Context, img image.Image, side int) (*image.RGBA, error) {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	if longest := max(w, h); longest > side {
		w, h = max(w*side/longest, 1), max(h*side/longest, 1)
	}
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	strip := image.NewRGBA(image.Rect(0, 0, from.Dx(), from.Dy()/h+1))
	for y := range h {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		top, bottom := y*from.Dy()/h, max((y+1)*from.Dy()/h, y*from.Dy()/h+1)
		rows := image.Rect(0, 0, from.Dx(), bottom-top)
		draw.Draw(strip, rows, img, from.Min.Add(image.Pt(0, top)), draw.Src)
		for x := range w {
			left, right := x*from.Dx()/w, max((x+1)*from.Dx()/w, x*from.Dx()/w+1)
			copy(to.Pix[to.PixOffset(x, y):], mean(strip, left, right, bottom-top))
		}
	}
	return to, nil
}

// mean returns the mean colour of the first rows of a strip, between columns.
func mean(strip *image.RGBA, left, right, rows int) []byte {
	var sum [4]uint64
	for y := range rows {
		line := strip.Pix[y*strip.Stride+4*left : y*strip.Stride+4*right]
		for i, v := range line {
			sum[i&3] += uint64(v)
		}
	}
	n := uint64((right - left) * rows)
	out := make([]byte, 4)
	for i := range out {
		out[i] = byte((sum[i] + n/2) / n)
	}
	return out
}

// webpSize reads the size of a WebP image from its first chunk: lossy, lossless
// or extended (RFC 9649). The length that the file states has to be there.
func webpSize(data []byte) (w, h int, err error) {
	bad := errors.New("not a whole WebP image")
	if len(data) < 30 || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
		return 0, 0, bad
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8 ":
		if body[3] != 0x9d || body[4] != 0x01 || body[5] != 0x2a {
			return 0, 0, bad
		}
		w, h = int(binary.LittleEndian.Uint16(body[6:])&0x3fff), int(binary.LittleEndian.Uint16(body[8:])&0x3fff)
	case "VP8L":
		if body[0] != 0x2f {
			return 0, 0, bad
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		w, h = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		w = 1 + int(body[4]) + int(body[5])<<8 + int(body[6])<<16
		h = 1 + int(body[7]) + int(body[8])<<8 + int(body[9])<<16
	default:
		return 0, 0, bad
	}
	if w == 0 || h == 0 {
		return 0, 0, bad
	}
	return w, h, nil
}
