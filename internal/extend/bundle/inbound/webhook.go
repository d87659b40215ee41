package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/internal/extend/bundle"
)

// The headers of a webhook. The second names are those of a service that many others follow.
const (
	HeaderSignature = "X-Signature-256"
	HeaderTime      = "X-Signature-Time"
	HeaderID        = "X-Delivery-Id"
	HeaderEvent     = "X-Event"
)

// Bounds of a webhook.
const (
	minSecret  = 16              // bytes that a secret has at the least
	maxSkew    = 5 * time.Minute // between the time that is signed and ours
	readTime   = 10 * time.Second
	answerTime = 5 * time.Minute
	maxNesting = 64 // values that become properties
)

// Webhook is a [Connector] that takes requests. Each is signed with a secret: the header
// X-Signature-256 is sha256= and the HMAC, in hexadecimal digits, of the body; with
// X-Signature-Time, seconds since 1970, of that, a dot, and the body, and a request that is
// older than five minutes is refused. X-Hub-Signature-256, X-GitHub-Event and
// X-GitHub-Delivery are read in the same way.
type Webhook struct {
	Listener net.Listener // closed by Run
	Secret   []byte
	Path     string // that requests have; "" = /
	// Answer lets requests wait for the answer of the session, up to five minutes. Otherwise
	// they are told at once that the message is safe.
	Answer bool
	Now    func() time.Time
	Well   func() // when a message was taken; nil = nobody wants to know
}

// Run implements [Connector].
func (w *Webhook) Run(ctx context.Context, sink Sink) error {
	if len(w.Secret) < minSecret {
		return errors.Join(fmt.Errorf("the signing secret of a webhook has at least %d bytes", minSecret), w.Listener.Close())
	}
	const headers = 16 << 10 // bytes
	srv := &http.Server{
		Handler:           http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) { w.serve(ctx, rw, req, sink) }),
		ReadHeaderTimeout: readTime, ReadTimeout: 2 * readTime, WriteTimeout: answerTime + readTime, IdleTimeout: readTime, MaxHeaderBytes: headers,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(&limited{Listener: w.Listener, slots: make(chan struct{}, 2*maxFlight)}) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	if srv.Shutdown(stop) != nil {
		srv.Close()
	}
	if err != nil {
		return fmt.Errorf("serving a webhook: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving a webhook: %w", err)
	}
	return context.Cause(ctx)
}

func (w *Webhook) serve(ctx context.Context, rw http.ResponseWriter, req *http.Request, sink Sink) {
	path := w.Path
	if path == "" {
		path = "/"
	}
	refuse := func(code int, why string) { reply(rw, code, map[string]any{"error": why}) }
	switch {
	case req.URL.Path != path:
		refuse(http.StatusNotFound, "there is nothing here")
		return
	case req.Method != http.MethodPost:
		rw.Header().Set("Allow", http.MethodPost)
		refuse(http.StatusMethodNotAllowed, "send it with POST")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxText))
	if err != nil {
		refuse(http.StatusRequestEntityTooLarge, "the body is too large, or does not end")
		return
	}
	if !w.signed(req.Header, body) {
		refuse(http.StatusUnauthorized, "the signature is missing, wrong or too old")
		return
	}
	m, err := message(req.Header, body)
	if err != nil {
		refuse(http.StatusBadRequest, err.Error())
		return
	}
	d, err := sink(req.Context(), m)
	switch {
	case errors.Is(err, ErrBusy):
		rw.Header().Set("Retry-After", "10")
		refuse(http.StatusServiceUnavailable, "too many messages are not answered yet")
		return
	case err != nil:
		refuse(http.StatusUnprocessableEntity, "the message cannot be delivered")
		return
	}
	if w.Well != nil {
		w.Well()
	}
	if !w.Answer {
		reply(rw, http.StatusAccepted, map[string]any{"session": d.Session})
		return
	}
	wait, cancel := context.WithTimeout(req.Context(), answerTime)
	defer cancel()
	text, err := d.Wait(wait)
	if err != nil {
		reply(rw, http.StatusAccepted, map[string]any{"session": d.Session, "error": "there is no answer yet"})
		return
	}
	said := map[string]any{"session": d.Session, "text": text}
	if len(d.SignIns) > 0 {
		said["authorization"] = d.SignIns
	}
	reply(rw, http.StatusOK, said)
}

func reply(rw http.ResponseWriter, code int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("X-Content-Type-Options", "nosniff")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(v) // who does not read it has gone
}

// first returns the first of several headers that is there.
func first(h http.Header, names ...string) string {
	for _, n := range names {
		if v := h.Get(n); v != "" {
			return v
		}
	}
	return ""
}

// signed reports whether a body is from somebody who has the secret.
func (w *Webhook) signed(h http.Header, body []byte) bool {
	digits, ok := strings.CutPrefix(first(h, HeaderSignature, "X-Hub-Signature-256"), "sha256=")
	given, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return false
	}
	mac := hmac.New(sha256.New, w.Secret)
	if stamp := h.Get(HeaderTime); stamp != "" {
		at, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || w.Now().Sub(time.Unix(at, 0)).Abs() > maxSkew {
			return false
		}
		mac.Write([]byte(stamp + "."))
	}
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

// message is what a request brings: of JSON, text or message is the text, and the plain
// values at the top are its properties; all else is the text itself.
func message(h http.Header, body []byte) (bundle.Message, error) {
	m := bundle.Message{ID: first(h, HeaderID, "X-GitHub-Delivery"), Event: first(h, HeaderEvent, "X-GitHub-Event"), Text: string(body)}
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/json" {
		return m, nil
	}
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		return m, errors.New("the body is no JSON object")
	}
	m.Properties = map[string]any{}
	for name, v := range all {
		switch v.(type) {
		case string, float64, bool:
			if len(m.Properties) == maxNesting {
				return m, fmt.Errorf("the body has more than %d plain values", maxNesting)
			}
			m.Properties[name] = v
		}
	}
	if e, ok := all["event"].(string); ok && m.Event == "" {
		m.Event = e
	}
	for _, name := range []string{"text", "message"} {
		if t, ok := all[name].(string); ok && strings.TrimSpace(t) != "" {
			m.Text = t
			break
		}
	}
	return m, nil
}

// limited bounds how many connections there are at once.
type limited struct {
	net.Listener
	slots chan struct{}
}

// Accept returns the next connection; those that are too many are closed.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			c.Close()
		}
	}
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
