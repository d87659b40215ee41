package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxBody    = 64 << 20 // of a request
	keepBytes  = 64 << 20 // of recorded bodies
	defaultLog = 1000     // recorded requests
)

// Options are the settings of a server. The zero value works.
type Options struct {
	// Key is the key that requests must bring; "" = any, or none.
	Key string

	// Keep is how many requests are recorded, the newest ones and no more than
	// 64 MiB of them. 0 = 1000, negative = none.
	Keep int

	// Trust leaves out the checks of requests and the simulation of the cache,
	// which cost time that a benchmark should not see.
	Trust bool

	// Func gives the replies instead of the script. It is called by one request
	// at a time.
	Func func(Request) Reply
}

// Request is what a reply can depend on.
type Request struct {
	Step  int    // answers that the conversation has
	Last  string // text of the last message: what the user wrote, tool results; empty with Trust and no When
	Model string
	Body  []byte
}

// Recorded is a request that came in.
type Recorded struct {
	Time   time.Time
	Header http.Header
	Body   []byte
	Status int // of the answer
}

// A Handler plays a script over HTTP, at any path that ends in /messages. It is
// safe for concurrent use; replies in order make sense for one conversation.
type Handler struct {
	script  Script
	opts    Options
	running sync.WaitGroup
	asking  sync.Mutex // held while Options.Func runs

	mu       sync.Mutex
	next     int            // reply of the order
	attempts map[string]int // faults that have been played, by reply
	cache    cache
	recorded []Recorded
	bytes    int // of recorded
}

// NewHandler returns a handler that plays s.
func NewHandler(s Script, opts Options) *Handler {
	if opts.Keep == 0 {
		opts.Keep = defaultLog
	}
	return &Handler{script: s, opts: opts, attempts: make(map[string]int)}
}

// Requests returns the recorded requests, oldest first.
func (h *Handler) Requests() []Recorded {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.recorded)
}

// record keeps a request, and lets go of the oldest ones.
func (h *Handler) record(r *http.Request, body []byte, status int) {
	if h.opts.Keep < 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded = append(h.recorded, Recorded{time.Now(), r.Header.Clone(), body, status})
	h.bytes += len(body)
	drop := 0
	for ; len(h.recorded)-drop > h.opts.Keep || h.bytes > keepBytes && drop < len(h.recorded); drop++ {
		h.bytes -= len(h.recorded[drop].Body)
	}
	h.recorded = slices.Delete(h.recorded, 0, drop)
}

// failure is an answer that is an error of the API.
type failure struct {
	status  int
	kind    string
	message string
}

func (f *failure) Error() string { return f.message }

func invalid(format string, args ...any) error {
	return &failure{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...)}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.running.Add(1)
	defer h.running.Done()
	body, err := readBody(r)
	w.Header().Set("Request-Id", requestID(body))
	var reply Reply
	var fault *Fault
	req := Request{Body: body}
	count := usage{}
	if err == nil {
		req, count, err = h.admit(r, body)
	}
	if err == nil {
		reply, fault, err = h.choose(req)
	}
	if err != nil {
		f, ok := errors.AsType[*failure](err)
		if !ok {
			f = &failure{http.StatusBadRequest, "invalid_request_error", err.Error()}
		}
		h.record(r, body, f.status)
		refuse(w, f)
		return
	}
	h.record(r, body, status(fault))
	h.answer(w, r, req, reply, fault, count)
}

func readBody(r *http.Request) ([]byte, error) {
	var buf []byte
	if r.ContentLength > 0 && r.ContentLength <= maxBody {
		buf = make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, buf)
		return buf, err
	}
	buf, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(buf) > maxBody {
		err = &failure{http.StatusRequestEntityTooLarge, "request_too_large", "the request is larger than 64 MiB"}
	}
	return buf, err
}

// admit checks a request as the API would.
func (h *Handler) admit(r *http.Request, body []byte) (Request, usage, error) {
	switch key := r.Header.Get("X-Api-Key"); {
	case !strings.HasSuffix(r.URL.Path, "/messages"):
		return Request{}, usage{}, &failure{http.StatusNotFound, "not_found_error", "no such path: " + r.URL.Path}
	case r.Method != http.MethodPost:
		return Request{}, usage{}, &failure{http.StatusMethodNotAllowed, "invalid_request_error", "use POST"}
	case h.opts.Key != "" && key != h.opts.Key && r.Header.Get("Authorization") != "Bearer "+h.opts.Key:
		return Request{}, usage{}, &failure{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	}
	if h.opts.Trust && h.opts.Func == nil && !slices.ContainsFunc(h.script.Replies, func(r Reply) bool { return r.When != "" }) {
		return Request{Step: answers(body), Body: body}, usage{input: tokens(len(body))}, nil
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return Request{}, usage{}, invalid("the request body is no valid JSON: %v", err)
	}
	if err := m.parse(); err != nil {
		return Request{}, usage{}, err
	}
	req := Request{Step: m.answers(), Last: m.last(), Model: m.Model, Body: body}
	if h.opts.Trust {
		return req, usage{input: tokens(len(body))}, nil
	}
	if err := m.check(); err != nil {
		return req, usage{}, err
	}
	if len(h.script.Models) > 0 && !slices.Contains(h.script.Models, m.Model) {
		return req, usage{}, &failure{http.StatusNotFound, "not_found_error", "model: " + m.Model}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return req, h.cache.count(m), nil
}

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, f *failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	text, _ := json.Marshal(map[string]any{ // strings always encode
		"type":       "error",
		"error":      map[string]string{"type": f.kind, "message": f.message},
		"request_id": w.Header().Get("Request-Id"),
	})
	_, _ = w.Write(text)
}

// requestID returns an ID that is the same for the same body.
func requestID(body []byte) string {
	return fmt.Sprintf("req_%08x", crc32.ChecksumIEEE(body[max(0, len(body)-4096):]))
}

// A Server is a handler that listens on loopback.
type Server struct {
	*Handler
	http     *http.Server
	listener net.Listener
	done     chan struct{}
}

// NewServer starts a server on a free port of 127.0.0.1.
func NewServer(s Script, opts Options) (*Server, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the scripted model: %w", err)
	}
	srv := &Server{Handler: NewHandler(s, opts), listener: l, done: make(chan struct{})}
	srv.http = &http.Server{Handler: srv.Handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(srv.done)
		_ = srv.http.Serve(l) // always ends with an error: that of Close
	}()
	return srv, nil
}

// URL returns the base URL for the adapter.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close cuts all connections and waits until the server is gone.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	s.running.Wait()
	return err
}

// wait waits for d, or for ever when d is not positive. It reports false when
// the client left.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		<-ctx.Done()
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
