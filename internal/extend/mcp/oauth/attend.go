package oauth

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	lookEvery = 500 * time.Millisecond // at a sign-in that another program may end
	inLine    = 5 * time.Second        // for a browser that is being answered at the end

	codePending = "authorization_pending"
	codeSlower  = "slow_down"
)

// attendance is what a Desk does for a sign-in that is open.
type attendance struct {
	stop context.CancelFunc
	done chan struct{} // closed when nobody listens any more
}

// A listener waits on this machine for a browser.
type listener struct{ net.Listener }

func (l *listener) close() {
	if l != nil {
		_ = l.Close() // it has nothing to lose
	}
}

// address is where a browser finds it.
func (l *listener) address(byName bool) string {
	at := l.Addr().String()
	if byName {
		at = strings.Replace(at, "127.0.0.1", "localhost", 1)
	}
	return "http://" + at
}

// listen opens a port: that of the app, or the one with which we are registered, or
// any.
func (d *Desk) listen(a resolved, rec record) (*listener, error) {
	port := a.Port
	if port == 0 && rec.Client != nil {
		port = portOf(rec.Client.Redirect)
	}
	l, err := listenOn(port)
	if err != nil && a.Port == 0 && port != 0 {
		l, err = listenOn(0)
	}
	if err != nil {
		return nil, &Error{Code: CodeCallback, Message: fmt.Sprintf("nothing can listen for the browser on port %d: %v", port, err), err: err}
	}
	return l, nil
}

func listenOn(port int) (*listener, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return &listener{l}, nil
}

func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	return n
}

// attend takes up a sign-in that is open, unless this Desk has already. If another
// program listens for its browser, that one does.
func (d *Desk) attend(key string, s session) {
	d.mu.Lock()
	_, on := d.attended[s.ID]
	d.mu.Unlock()
	if on {
		return
	}
	var l *listener
	if s.Redirect != "" {
		l, _ = listenOn(portOf(s.Redirect))
	}
	d.attendWith(key, s, l)
}

// attendWith starts the goroutine of a sign-in. It owns the listener.
func (d *Desk) attendWith(key string, s session, l *listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, on := d.attended[s.ID]; on || d.ctx.Err() != nil {
		l.close()
		return
	}
	ctx, stop := context.WithCancel(d.ctx)
	at := attendance{stop: stop, done: make(chan struct{})}
	d.attended[s.ID] = at
	d.wait.Go(func() {
		defer func() {
			stop()
			d.mu.Lock()
			delete(d.attended, s.ID)
			d.mu.Unlock()
			close(at.done)
		}()
		d.follow(ctx, key, s, l)
	})
}

// leave ends what is done for earlier sign-ins of a record, so that the next one
// can listen where they did.
func (d *Desk) leave(key string) {
	d.mu.Lock()
	var all []attendance
	for id, at := range d.attended {
		if strings.HasPrefix(id, key+".") {
			all = append(all, at)
		}
	}
	d.mu.Unlock()
	for _, at := range all {
		at.stop()
		<-at.done
	}
}

// follow serves a sign-in until it is over, and tells when it came out well.
func (d *Desk) follow(ctx context.Context, key string, s session, l *listener) {
	if l != nil {
		stop := d.serve(s, l)
		defer stop()
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	poll := d.poller(ctx, key, s)
	for {
		g, done, err := d.state(s.ID)
		if done {
			d.tell(g)
		}
		if done || err != nil && !isCode(err, CodeStore) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			poll()
		}
	}
}

// poller returns what asks the server whether a person has agreed on another
// machine, as often as the server wants it; of several programs, one does.
func (d *Desk) poller(ctx context.Context, key string, s session) func() {
	if s.DeviceCode == "" {
		return func() {}
	}
	interval, next := s.Interval, time.Now().Add(s.Interval)
	return func() {
		if time.Now().Before(next) {
			return
		}
		unlock, ok := d.store.tryLock(key + ".poll")
		if !ok {
			return
		}
		defer unlock()
		if err := d.pollOnce(ctx, key, s.ID); isCode(err, codeSlower) {
			interval += 5 * time.Second
		}
		next = time.Now().Add(interval)
	}
}

func (d *Desk) pollOnce(ctx context.Context, key, id string) error {
	unlock, err := d.store.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := d.read(key)
	if err != nil {
		return err
	}
	s := rec.Session
	if s == nil || s.ID != id || !s.open(d.cfg.Now()) {
		return ErrUnknown
	}
	return d.redeem(ctx, key, rec, url.Values{"grant_type": {deviceGrant}, "device_code": {s.DeviceCode}})
}

// serve answers browsers on a listener. What it returns waits for those that are
// being answered.
func (d *Desk) serve(s session, l *listener) (stop func()) {
	redirect, err := url.Parse(s.Redirect)
	if err != nil {
		l.close()
		return func() {}
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      askLimit + 20*time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d.answer(w, r, s.ID, redirect)
		}),
	}
	served := make(chan struct{})
	d.wait.Go(func() {
		defer close(served)
		_ = server.Serve(l) // ends when it is closed
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), inLine)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-served
	}
}

// answer answers a browser. Nothing of what it sent comes back to it.
func (d *Desk) answer(w http.ResponseWriter, r *http.Request, id string, redirect *url.URL) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	say := func(status int, text string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n") // the browser may have gone
	}
	if r.Method != http.MethodGet || r.URL.Path != redirect.Path || r.Host != redirect.Host {
		say(http.StatusNotFound, d.cfg.Pages.Unknown)
		return
	}
	err := d.finish(r.Context(), id, r.URL.Query())
	switch {
	case err == nil:
		say(http.StatusOK, d.cfg.Pages.Done)
	case isCode(err, CodeState):
		say(http.StatusBadRequest, d.cfg.Pages.Unknown)
	default:
		say(http.StatusBadGateway, d.cfg.Pages.Failed)
	}
}
