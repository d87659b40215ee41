package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

const (
	// maxStdin bounds what standard input adds to a task, in bytes.
	maxStdin = 10 << 20

	// patience is how long a task that was given as an argument waits for the
	// first byte of a pipe: whoever starts us may have left one open for good.
	patience = 3 * time.Second
)

// withInput returns the task with what standard input holds behind it.
func (p *program) withInput(prompt string) (string, error) {
	if cli.IsTerminal(p.in) {
		return prompt, nil
	}
	info, err := p.in.Stat()
	if err != nil { // closed
		return prompt, nil
	}
	wait := time.Duration(0)
	if prompt != "" && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		wait = patience
	}
	data, err := readAll(p.in, wait)
	if err != nil {
		return "", p.usage(err.Error(), "")
	}
	switch {
	case len(data) > maxStdin:
		return "", p.usage(p.text.Say(text.TooMuchInput, "limit", "10 MB"), p.text.Say(text.FixTooMuchInput))
	case bytes.IndexByte(data, 0) >= 0:
		return "", p.usage(p.text.Say(text.BadInput, "what", "NUL"), p.text.Say(text.FixTooMuchInput))
	}
	piped := strings.TrimSpace(strings.ToValidUTF8(string(data), "\ufffd"))
	if prompt == "" || piped == "" {
		return prompt + piped, nil
	}
	return prompt + "\n\n" + piped, nil
}

// readAll reads up to a byte more than the limit. With wait, it gives up when
// nothing at all comes for that long.
func readAll(r io.Reader, wait time.Duration) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	started, all := make(chan struct{}), make(chan read, 1)
	go func() { // ends with its input, or with the program
		var first [1]byte
		n, err := r.Read(first[:])
		close(started)
		if err != nil || n == 0 {
			if err == io.EOF {
				err = nil
			}
			all <- read{first[:n], err}
			return
		}
		rest, err := io.ReadAll(io.LimitReader(r, maxStdin))
		all <- read{append(first[:1], rest...), err}
	}()
	if wait > 0 {
		select {
		case <-started:
		case <-time.After(wait):
			return nil, nil
		}
	}
	got := <-all
	return got.data, got.err
}

// historyFile is where line mode keeps what was typed; "" = nowhere.
func (p *program) historyFile() string {
	if p.flags.scratch {
		return ""
	}
	return filepath.Join(p.opened.Config().Data, "history")
}
