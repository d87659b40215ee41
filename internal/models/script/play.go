package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
)

const (
	defaultChunk = 32
	defaultEvery = 10 * time.Millisecond
	flushAt      = 32 << 10 // bytes that are written at once
)

// errOver ends a reply early.
var errOver = errors.New("the reply is over")

// types are the error types of the API by status.
var types = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
	504: "timeout_error", 529: "overloaded_error",
}

// status returns the HTTP status of an answer with fault f.
func status(f *Fault) int {
	switch {
	case f == nil:
		return http.StatusOK
	case f.Kind == Status && f.Status == 0:
		return http.StatusInternalServerError
	case (f.Kind == Status || f.Kind == HTML) && f.Status != 0:
		return f.Status
	}
	return http.StatusOK
}

// answer plays a reply, or what goes wrong with it.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, req Request, reply Reply, fault *Fault, count usage) {
	header := w.Header()
	if fault != nil {
		for name, value := range fault.Header {
			header.Set(name, value)
		}
		switch fault.Kind {
		case Status:
			f := &failure{status(fault), fault.Type, fault.Message}
			if f.kind == "" {
				f.kind = types[f.status]
			}
			if f.message == "" {
				f.message = "the script says so"
			}
			if fault.RetryAfter != "" {
				header.Set("Retry-After", fault.RetryAfter)
			}
			refuse(w, f)
			return
		case HTML:
			header.Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status(fault))
			_, _ = w.Write([]byte("<!doctype html><title>Sign in</title><p>This is no API."))
			return
		case Slow:
			if !wait(r.Context(), time.Duration(fault.ForMS)*time.Millisecond) {
				return
			}
		}
	}
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-cache")
	p := &player{
		ctx: r.Context(), w: w, rc: http.NewResponseController(w), fault: fault,
		delay: time.Duration(reply.DelayMS) * time.Millisecond, chunk: reply.Chunk,
	}
	if p.chunk <= 0 {
		p.chunk = defaultChunk
	}
	if fault != nil && fault.Kind == Garbage {
		p.buf = append(p.buf, "\x00\x01\x02 this is\nno stream of events\n\n{\"choices\":[]}\n\n"...)
		_ = p.flush()
		return
	}
	p.play(req, reply, count)
	_ = p.flush()
}

// player writes one stream. After err it writes nothing more.
type player struct {
	ctx   context.Context
	w     http.ResponseWriter
	rc    *http.ResponseController
	fault *Fault
	delay time.Duration
	chunk int

	buf    []byte
	sent   int // bytes
	events int
	err    error
}

// play writes the events of a reply.
func (p *player) play(req Request, reply Reply, count usage) {
	said := len(reply.Thinking) + len(reply.Text)
	for _, c := range reply.Calls {
		said += len(c.Tool) + len(c.input())
	}
	u := reply.Usage
	if u == nil {
		u = &agent.Usage{Input: count.input, CacheRead: count.read, CacheWrite: count.write, Output: tokens(said) + 2}
	}
	sum := requestID(req.Body)
	p.event("message_start", `{"type":"message_start","message":{"id":"msg_%s","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":1}}}`,
		sum[4:], quoted(model(req)), u.Input, u.CacheWrite, u.CacheRead, u.CacheWrite-u.CacheHour, u.CacheHour)
	p.event("ping", `{"type": "ping"}`)
	p.blocks(req, reply, sum)

	detail := `"stop_sequence":null`
	switch {
	case reply.stop() == agent.StopSequence:
		detail = `"stop_sequence":` + quoted(reply.StopText)
	case reply.StopText != "":
		detail += `,"stop_details":{"type":"refusal","explanation":` + quoted(reply.StopText) + `}`
	}
	p.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%s,%s},"usage":{"output_tokens":%d}}`, quoted(string(reply.stop())), detail, u.Output)
	p.event("message_stop", `{"type":"message_stop"}`)
}

func model(req Request) string {
	if req.Model == "" {
		return Provider
	}
	return req.Model
}

// blocks writes the blocks of a reply.
func (p *player) blocks(req Request, reply Reply, sum string) {
	index := 0
	if reply.Thinking != "" {
		p.open(index, `{"type":"thinking","thinking":"","signature":""}`)
		p.deltas(index, thinkingDelta, reply.Thinking)
		p.event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, index, quoted(sign(reply.Thinking)))
		p.close(index)
		index++
	}
	if reply.Redacted != "" {
		p.open(index, `{"type":"redacted_thinking","data":`+quoted(reply.Redacted)+`}`)
		p.close(index)
		index++
	}
	if reply.Text != "" {
		p.open(index, `{"type":"text","text":""}`)
		p.deltas(index, textDelta, reply.Text)
		p.close(index)
		index++
	}
	made := bytes.Count(req.Body, []byte(`"type":"tool_use"`))
	p.calls(index, reply, fmt.Sprintf("toolu_%d_%s", made, sum[4:]))
}

// calls writes the calls of a reply, the first as block index.
func (p *player) calls(index int, reply Reply, id string) {
	inputs := make([][]string, len(reply.Calls))
	rounds := 0
	for i, c := range reply.Calls {
		callID := c.ID
		if callID == "" {
			callID = id + "_" + strconv.Itoa(i)
		}
		p.open(index+i, `{"type":"tool_use","id":`+quoted(callID)+`,"name":`+quoted(c.Tool)+`,"input":{}}`)
		if reply.Interleave {
			inputs[i] = pieces(c.input(), p.chunk)
			rounds = max(rounds, len(inputs[i])+1)
			continue
		}
		p.deltas(index+i, inputDelta, c.input())
		p.close(index + i)
	}
	for round := range rounds {
		for i, in := range inputs {
			switch {
			case round < len(in):
				p.delta(index+i, inputDelta, in[round])
			case round == len(in):
				p.close(index + i)
			}
		}
	}
}

// The beginnings of deltas, behind the index.
const (
	textDelta     = `,"delta":{"type":"text_delta","text":"`
	thinkingDelta = `,"delta":{"type":"thinking_delta","thinking":"`
	inputDelta    = `,"delta":{"type":"input_json_delta","partial_json":"`
)

func (p *player) open(index int, block string) {
	p.event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func (p *player) close(index int) {
	p.event("content_block_stop", `{"type":"content_block_stop","index":%d}`, index)
}

// deltas writes text in pieces.
func (p *player) deltas(index int, kind, text string) {
	for rest := escaped(text); rest != "" && p.err == nil; {
		n := cut(rest, p.chunk)
		p.delta(index, kind, rest[:n])
		rest = rest[n:]
	}
}

// delta writes one piece of text that is escaped already.
func (p *player) delta(index int, kind, text string) {
	if p.delay > 0 && p.err == nil && (p.flush() != nil || !wait(p.ctx, p.delay)) {
		p.err = errOver
	}
	if p.before(); p.err != nil {
		return
	}
	p.buf = append(p.buf, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	p.buf = strconv.AppendInt(p.buf, int64(index), 10)
	p.buf = append(p.buf, kind...)
	p.buf = append(p.buf, text...)
	p.buf = append(p.buf, "\"}}\n\n"...)
	p.after()
}

func (p *player) event(name, format string, args ...any) {
	if p.before(); p.err != nil {
		return
	}
	p.buf = append(p.buf, "event: "...)
	p.buf = append(p.buf, name...)
	p.buf = append(p.buf, "\ndata: "...)
	p.buf = fmt.Appendf(p.buf, format, args...)
	p.buf = append(p.buf, "\n\n"...)
	p.after()
}

// before plays the fault when its time has come.
func (p *player) before() {
	if f := p.fault; f != nil && p.err == nil && f.Bytes == 0 && p.events == f.After {
		p.strike()
	}
}

// after writes what has gathered.
func (p *player) after() {
	p.events++
	if f := p.fault; f != nil && f.Bytes > 0 && p.sent+len(p.buf) >= f.Bytes {
		p.buf = p.buf[:f.Bytes-p.sent]
		p.strike()
	} else if len(p.buf) >= flushAt {
		_ = p.flush()
	}
}

// flush writes what has gathered, unless the reply is over.
func (p *player) flush() error {
	if p.err != nil {
		return p.err
	}
	n, err := p.w.Write(p.buf)
	p.sent += n
	p.buf = p.buf[:0]
	if err == nil {
		err = p.rc.Flush()
	}
	p.err = err
	return err
}

// strike plays a fault in the middle of a stream.
func (p *player) strike() {
	f := p.fault
	p.fault = nil
	if f.Kind == Slow || p.flush() != nil {
		return
	}
	pause := time.Duration(f.ForMS) * time.Millisecond
	switch f.Kind {
	case Cut:
		if !f.Clean {
			panic(http.ErrAbortHandler) // net/http's way to cut a connection
		}
		p.err = errOver
	case Reset:
		p.reset()
		p.err = errOver
	case Stall:
		if !wait(p.ctx, pause) {
			p.err = errOver
		}
	case Pings:
		p.ping(pause, time.Duration(f.EveryMS)*time.Millisecond)
	case Error:
		kind := f.Type
		if kind == "" {
			kind = "overloaded_error"
		}
		p.event("error", `{"type":"error","error":{"type":%s,"message":%s}}`, quoted(kind), quoted(f.Message))
		_ = p.flush()
		p.err = errOver
	}
}

// reset closes the connection so that the client is told of a reset.
func (p *player) reset() {
	conn, _, err := p.rc.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// ping sends nothing but pings for a time, or until the client leaves.
func (p *player) ping(pause, every time.Duration) {
	if every <= 0 {
		every = defaultEvery
	}
	for begun := time.Now(); p.err == nil && (pause <= 0 || time.Since(begun) < pause); {
		p.event("ping", `{"type": "ping"}`)
		if p.flush() == nil && !wait(p.ctx, every) {
			p.err = errOver
		}
	}
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// escaped returns s as it stands inside a JSON string.
func escaped(s string) string {
	q := quoted(s)
	return q[1 : len(q)-1]
}

// cut returns the length of a piece of about n bytes that ends neither inside
// an escape nor inside a character.
func cut(s string, n int) int {
	at := 0
	for at < len(s) && at < n {
		size := 1
		switch {
		case s[at] == '\\' && s[at+1] == 'u':
			size = 6
		case s[at] == '\\':
			size = 2
		case s[at] >= utf8.RuneSelf:
			_, size = utf8.DecodeRuneInString(s[at:])
		}
		at += size
	}
	return at
}

// pieces returns s, escaped, in pieces.
func pieces(s string, n int) []string {
	var list []string
	for rest := escaped(s); rest != ""; {
		at := cut(rest, n)
		list = append(list, rest[:at])
		rest = rest[at:]
	}
	return list
}
