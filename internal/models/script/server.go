package script

import (
	"context"
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
	// Key is the key that requests must bring, as x-api-key, x-goog-api-key,
	// api-key, bearer token or the query's key; "" = any, or none.
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

	Format Format
}

// Recorded is a request that came in.
type Recorded struct {
	Time   time.Time
	Path   string // with its query
	Header http.Header
	Body   []byte
	Status int // of the answer
}

// A Handler plays a script over HTTP, in the [Format] of the path that is asked,
// and lists its models where the APIs list theirs. It is safe for concurrent
// use; replies in order make sense for one conversation.
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
	h.recorded = append(h.recorded, Recorded{time.Now(), r.URL.RequestURI(), r.Header.Clone(), body, status})
	h.bytes += len(body)
	drop := 0
	for ; len(h.recorded)-drop > h.opts.Keep || h.bytes > keepBytes && drop < len(h.recorded); drop++ {
		h.bytes -= len(h.recorded[drop].Body)
	}
	h.recorded = slices.Delete(h.recorded, 0, drop)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.running.Add(1)
	defer h.running.Done()
	if h.list(w, r) {
		return
	}
	format, ok := FormatOf(r.URL.EscapedPath())
	if !ok {
		format = Messages // an error has to have some form
	}
	a := apis[format]
	body, err := readBody(r)
	id := requestID(body)
	w.Header().Set("Request-Id", id)
	w.Header().Set("X-Request-Id", id)
	if err == nil && !ok {
		err = &failure{status: http.StatusNotFound, message: "no such path: " + r.URL.Path}
	}
	if err == nil {
		err = h.permit(r, format)
	}
	var reply Reply
	var fault *Fault
	var t take
	if err == nil {
		t, err = h.admit(r, format, body)
	}
	if err == nil {
		req := Request{Step: t.step, Last: t.last, Model: t.model, Body: body, Format: format}
		reply, fault, err = h.choose(req)
	}
	if err != nil {
		f, ok := errors.AsType[*failure](err)
		if !ok {
			f = &failure{status: http.StatusBadRequest, message: err.Error()}
		}
		h.record(r, body, f.status)
		refuse(w, a, f)
		return
	}
	h.record(r, body, status(fault))
	t.reply, t.body, t.sum = reply, body, id[4:]
	h.answer(w, r, a, t, fault)
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
		err = &failure{status: http.StatusRequestEntityTooLarge, message: "the request is larger than 64 MiB"}
	}
	return buf, err
}

// permit checks method and key.
func (h *Handler) permit(r *http.Request, format Format) error {
	if r.Method != http.MethodPost {
		return &failure{status: http.StatusMethodNotAllowed, message: "use POST"}
	}
	if h.opts.Key == "" || slices.Contains(keys(r), h.opts.Key) {
		return nil
	}
	return wrongKey(format)
}

func wrongKey(format Format) *failure {
	switch format {
	case Chat, Responses:
		return &failure{status: http.StatusUnauthorized, message: "Incorrect API key provided."}
	case Gemini:
		return &failure{status: http.StatusBadRequest, message: "API key not valid. Please pass a valid API key."}
	}
	return &failure{status: http.StatusUnauthorized, message: "invalid x-api-key"}
}

// keys returns the keys that a request brings, in any of the usual places.
func keys(r *http.Request) []string {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return []string{
		r.Header.Get("X-Api-Key"), bearer, r.Header.Get("X-Goog-Api-Key"), r.Header.Get("Api-Key"), r.URL.Query().Get("key"),
	}
}

// admit checks a request as the API would.
func (h *Handler) admit(r *http.Request, format Format, body []byte) (take, error) {
	plain := h.opts.Func == nil && !slices.ContainsFunc(h.script.Replies, func(r Reply) bool { return r.When != "" })
	p, err := apis[format].read(r.URL.RequestURI(), body, h.opts.Trust && plain)
	if err != nil {
		return take{}, err
	}
	t := take{prompt: p}
	if h.opts.Trust {
		t.cost = usage{input: tokens(len(body))}
		return t, nil
	}
	if err := checkHeader(format, r.Header); err != nil {
		return t, err
	}
	if err := p.check(); err != nil {
		return t, err
	}
	if len(h.script.Models) > 0 && !slices.Contains(h.script.Models, p.model) {
		return t, &failure{status: http.StatusNotFound, code: "model_not_found", message: "model: " + p.model}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t.cost = p.count(&h.cache)
	return t, nil
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
