// Package remote reaches the sessions of a server (dure serve) over HTTP: it is a
// [client.Transport], so that a front-end reads the same as in the server's own process.
//
// Connections that are lost are taken up again where they broke, for a time. It starts no
// goroutines but those of its HTTP client, which end with [Remote.Shutdown].
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// The bounds of answers.
const (
	maxAnswer = 64 << 20         // bytes
	maxLine   = 64 << 20         // bytes, of an event
	silence   = 60 * time.Second // after which a stream without a sign of life is lost
	patience  = 30 * time.Second // for which a server is looked for that was there
	answering = 5 * time.Minute  // within which a server answers what it is asked
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// Config says which server is meant. URL and Token are what dure serve says.
type Config struct {
	URL   string // http://127.0.0.1:PORT
	Token string

	// HTTP makes the requests; nil = a client of its own, without a proxy. Redirects are
	// not followed: the token is for this server alone.
	HTTP *http.Client

	// Patience is how long a server is looked for that does not answer, when events are
	// read; 0 = 30 s.
	Patience time.Duration

	// Silence is how long a stream of events may be without a sign of life, which a server
	// gives every 15 s, and how long a server may take to begin one; 0 = 60 s.
	Silence time.Duration

	// Answer is how long a server may take to answer in whole: whatever is asked but for
	// events. 0 = 5 min, less than 0 = as long as the caller's context lasts. What was asked
	// for may have been done, or may still be, when that is over.
	Answer time.Duration
}

// Remote is the sessions of a server. It is safe for concurrent use.
type Remote struct {
	cfg  Config
	base *url.URL
	http *http.Client

	mu    sync.Mutex
	users map[string][]string // what closing a session takes, by its ID; guarded by mu
}

var _ client.Transport = (*Remote)(nil)

// New returns the sessions of a server. Nothing is sent yet.
func New(cfg Config) (*Remote, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the server: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q is no address of a server, such as http://127.0.0.1:8080", cfg.URL)
	}
	if cfg.Token == "" {
		return nil, errors.New("the server wants a token")
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	if cfg.Silence == 0 {
		cfg.Silence = silence
	}
	if cfg.Answer == 0 {
		cfg.Answer = answering
	}
	r := &Remote{cfg: cfg, base: u, users: map[string][]string{}}
	asks := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}}
	if cfg.HTTP != nil {
		asks = *cfg.HTTP
	}
	asks.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r.http = &asks
	return r, nil
}

// Open opens a session on the server, or joins it.
func (r *Remote) Open(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
	var opened struct {
		Session agent.SessionInfo `json:"session"`
		User    string            `json:"user"`
	}
	err := r.call(ctx, "/v1/sessions", o, &opened)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.users[opened.Session.ID] = append(r.users[opened.Session.ID], opened.User)
	}
	return opened.Session, err
}

// Send hands a command to a session. An answer to a question that somebody else has
// answered before is accepted, and does nothing: [client.Session.Resolve] says so.
func (r *Remote) Send(ctx context.Context, session string, c agent.Command) error {
	data, err := agent.EncodeCommand(c)
	if err != nil {
		return err
	}
	err = r.call(ctx, sessionPath(session, "/commands/"+url.PathEscape(c.Command())), data, nil)
	if p := agent.ProblemOf(err); p != nil && (p.Code == "answered" || p.Code == "no-question") {
		return nil
	}
	return err
}

// Query asks q.
func (r *Remote) Query(ctx context.Context, q agent.Query) (any, error) {
	var data json.RawMessage
	if err := r.call(ctx, "/v1/queries/"+url.PathEscape(q.Query()), q, &data); err != nil {
		return nil, err
	}
	return query.DecodeAnswer(q.Query(), data)
}

// Close leaves a session that was opened here, as often as it was; the last who uses it ends
// it. Of another session nothing is closed.
func (r *Remote) Close(ctx context.Context, session string) error {
	r.mu.Lock()
	users := r.users[session]
	if len(users) == 0 {
		r.mu.Unlock()
		return nil
	}
	user := users[len(users)-1]
	if r.users[session] = users[:len(users)-1]; len(users) == 1 {
		delete(r.users, session)
	}
	r.mu.Unlock()
	err := r.call(ctx, sessionPath(session, "/close"), map[string]string{"user": user}, nil)
	if p := agent.ProblemOf(err); p != nil && p.Code == "no-user" {
		return nil // somebody has closed it for all
	}
	return err
}

// Shutdown leaves all sessions that were opened here, and closes what connects to the server.
func (r *Remote) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	var open []string
	for id, users := range r.users {
		for range users {
			open = append(open, id)
		}
	}
	r.mu.Unlock()
	var err error
	for _, id := range open {
		err = errors.Join(err, r.Close(ctx, id))
	}
	r.http.CloseIdleConnections()
	return err
}

func sessionPath(session, rest string) string {
	return "/v1/sessions/" + url.PathEscape(session) + rest
}

// request makes a request for a path that is escaped already.
func (r *Remote) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base.Scheme+"://"+r.base.Host+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.cfg.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// call posts in to a path, and reads the answer into out. A server that does not say all of
// it in time does not answer.
func (r *Remote) call(ctx context.Context, path string, in, out any) error {
	if r.cfg.Answer < 0 {
		return r.post(ctx, path, in, out)
	}
	late := fmt.Errorf("no whole answer came within %v", r.cfg.Answer)
	try, stop := context.WithTimeoutCause(ctx, r.cfg.Answer, late)
	defer stop()
	err := r.post(try, path, in, out)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(try), late) {
		return r.unreachable(ctx, late)
	}
	return err
}

func (r *Remote) post(ctx context.Context, path string, in, out any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := r.request(ctx, http.MethodPost, path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	res, err := r.http.Do(req)
	if err != nil {
		return r.unreachable(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return problemIn(res)
	}
	data, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return r.unreachable(ctx, err)
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the answer of %s is larger than %d bytes", path, maxAnswer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer of %s: %w", path, err)
	}
	return nil
}

// unreachable is a server that does not answer.
func (r *Remote) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its address is said already
	}
	return &agent.Problem{
		Code: agent.ProblemEndpoint, Message: r.base.Host + " does not answer: " + err.Error(), Err: errors.Join(client.ErrDisconnected, err),
		Fix: "see whether dure serve runs there", Args: map[string]string{"url": r.base.String(), "error": err.Error()},
	}
}

// problemIn returns the problem that a server answers with.
func problemIn(res *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	return problemOf(data, res.Status)
}

func problemOf(data []byte, status string) error {
	var p struct {
		Code   agent.ProblemCode `json:"code"`
		Detail string            `json:"detail"`
		Fix    string            `json:"fix"`
		Args   map[string]string `json:"args"`
	}
	if json.Unmarshal(data, &p) != nil || p.Code == "" {
		return fmt.Errorf("the server answers %s", status)
	}
	return &agent.Problem{Code: p.Code, Message: p.Detail, Fix: p.Fix, Args: p.Args}
}
