package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What the figures are compared with: the least that any program must do for the
// same outcome, done on the same machine in the same run.

// took is how long a reference needed.
type took struct {
	Millis float64 `json:"ms"`
}

// stepsChild does what a step of the loop comes down to, n times: a request that
// is answered in full, two writes that reach the disk, and a command.
func stepsChild(args []string) (any, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(args[0], "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var out took
	begun := time.Now()
	for range n {
		if err := ask(os.Getenv("ANTHROPIC_BASE_URL")+os.Getenv("BENCH_PATH"), discard); err != nil {
			return nil, err
		}
		if err := write(log); err != nil {
			return nil, err
		}
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			return nil, err
		}
		if err := write(log); err != nil {
			return nil, err
		}
	}
	out.Millis = time.Since(begun).Seconds() * 1000
	return out, nil
}

func discard(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func write(f *os.File) error {
	if _, err := f.WriteString(stepLine); err != nil {
		return err
	}
	return f.Sync()
}

// stepLine stands for the lines of one barrier.
var stepLine = prose(1, 1000)

// requestBody is a request of about the size that a first one has.
var requestBody = []byte(fmt.Sprintf(`{"model":"script","max_tokens":100,"stream":true,"messages":[{"role":"user","content":%q}]}`, prose(1, 10_000)))

// readChild reads a streamed answer as a plain client does: a line at a time,
// with the standard decoder, and keeps the text.
func readChild([]string) (any, error) {
	begun := time.Now()
	text, err := plainText(os.Getenv("ANTHROPIC_BASE_URL") + os.Getenv("BENCH_PATH"))
	out := took{time.Since(begun).Seconds() * 1000}
	if err == nil && len(text) != deltaCount*deltaBytes {
		err = fmt.Errorf("read %d bytes of text instead of %d", len(text), deltaCount*deltaBytes)
	}
	return out, err
}

func plainText(url string) (string, error) {
	var text strings.Builder
	err := ask(url, func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxKept)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok || string(data) == "[DONE]" {
				continue
			}
			var e plainEvent
			if err := json.Unmarshal(data, &e); err != nil {
				return err
			}
			text.WriteString(e.text())
		}
		return lines.Err()
	})
	return text.String(), err
}

// A plainEvent has the places where the wire formats put a piece of text.
type plainEvent struct {
	Type  string `json:"type"`
	Delta any    `json:"delta"` // the text, or an object with it

	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`

	Candidates []struct {
		Content struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
}

func (e plainEvent) text() string {
	switch d := e.Delta.(type) {
	case string:
		return d
	case map[string]any:
		text, _ := d["text"].(string)
		return text
	}
	if len(e.Choices) > 0 {
		return e.Choices[0].Delta.Content
	}
	if len(e.Candidates) > 0 && len(e.Candidates[0].Content.Parts) > 0 {
		return e.Candidates[0].Content.Parts[0].Text
	}
	return ""
}

// ask sends a request and has the answer read.
func ask(url string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(requestBody))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the scripted model answered with %s", resp.Status)
	}
	return read(resp.Body)
}

// hashChild reads files and hashes them.
func hashChild(args []string) (any, error) {
	var out took
	begun := time.Now()
	for _, pattern := range args {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := hashFile(name); err != nil {
				return nil, err
			}
		}
	}
	out.Millis = time.Since(begun).Seconds() * 1000
	return out, nil
}

func hashFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(sha256.New(), f)
	return err
}
