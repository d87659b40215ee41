package exthost

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"dure/agent"
)

// A Credential is what a tool signs its work in with. It reaches the code of the call that
// needs it and nobody else: it is no part of the context of the call, and prints as nothing.
type Credential struct {
	Token   string
	Type    string    // of the token; "" = Bearer
	Expires time.Time // zero = it is not known to
	Scopes  []string
}

// Format prints no secret, whatever the verb.
func (Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[hidden]") }

// LogValue keeps a secret out of a log.
func (Credential) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// MarshalText keeps a secret out of JSON, but for what [toldCredential] tells.
func (Credential) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }

// Sign returns the credential of an export. Without one, instead is what the call answers,
// having done nothing. A credential that was refused is not returned again.
type Sign func(ctx context.Context, export string, refused *Credential) (c *Credential, instead agent.Result)

// toldCredential is a credential as code is told of it.
type toldCredential struct {
	Token   string    `json:"accessToken"`
	Type    string    `json:"tokenType"`
	Expires time.Time `json:"expiresAt,omitzero"`
	Scopes  []string  `json:"scopes"`
}

func (c *Credential) told() *toldCredential {
	if c == nil {
		return nil
	}
	return &toldCredential{c.Token, c.scheme(), c.Expires, append([]string{}, c.Scopes...)}
}

func (c *Credential) scheme() string {
	if c.Type == "" {
		return "Bearer"
	}
	return c.Type
}

// header is what a request is signed with.
func (c *Credential) header() string {
	if c == nil {
		return ""
	}
	return c.scheme() + " " + c.Token
}

// Signable says why a credential cannot be given to a resource; nil = it can.
func (r Resource) Signable() error {
	switch r.Runtime {
	case Node, Process:
		return nil
	case HTTP:
		u, err := url.Parse(r.Entry)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
		return fmt.Errorf("%q is not encrypted: a token is sent to https alone, and to this machine", r.Entry)
	}
	return fmt.Errorf("nobody signs in for the runtime %q: node, process and http are known", r.Runtime)
}

// unauthorized is the status of an answer to what is not signed in well.
const unauthorized = 401

// signed posts a call with the credential that it needs, and once more with another one when
// the address does not take that: then nothing was done yet.
func (h *Host) signed(ctx context.Context, r Resource, export string, q Request, c *Credential) (got Response, instead *agent.Result, err error) {
	q.Authorization = c.header()
	got, err = h.c.Post(ctx, q)
	if err != nil || got.Status != unauthorized || c == nil {
		return got, nil, err
	}
	next, other := r.Sign(ctx, export, c)
	if next == nil {
		return got, &other, nil
	}
	q.Authorization = next.header()
	got, err = h.c.Post(ctx, q)
	return got, nil, err
}
