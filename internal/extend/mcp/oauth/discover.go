package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A server is an authorization server, as it was when somebody signed in to it.
// What is kept of it is never looked up anew: a resource that suddenly names
// another server gets a new sign-in, and not the grant.
type server struct {
	Endpoints

	Issuer   string   `json:"issuer,omitempty"`
	Methods  []string `json:"methods,omitempty"`
	IssParam bool     `json:"issParam,omitempty"` // it names itself in its answers (RFC 9207)
	Document bool     `json:"document,omitempty"` // it reads documents about clients
	Offline  bool     `json:"offline,omitempty"`  // it wants to be asked for refresh tokens
}

// A Challenge is what a resource says when it refuses (RFC 6750, 9728).
type Challenge struct {
	Error    string
	Scopes   []string
	Metadata string // where the resource says which server it trusts
}

const insufficientScope = "insufficient_scope"

// ParseChallenge reads the WWW-Authenticate fields of an answer.
func ParseChallenge(h http.Header) Challenge {
	var c Challenge
	for _, field := range h.Values("WWW-Authenticate") {
		if len(field) > 8<<10 {
			continue
		}
		for name, value := range bearerParams(field) {
			switch name {
			case "error":
				c.Error = errorCode(value)
			case "scope":
				if s := strings.Fields(value); len(checkScopes("", s)) == 0 {
					c.Scopes = s
				}
			case "resource_metadata":
				c.Metadata = value
			}
		}
	}
	return c
}

// Probe asks a resource without a token how it refuses. What it says is of use, and
// nothing is lost without it.
func (d *Desk) Probe(ctx context.Context, resource string) Challenge {
	if secure(resource) != nil {
		return Challenge{}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, resource, nil)
	if err != nil {
		return Challenge{}
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := d.fetch.Do(req)
	if err != nil {
		return Challenge{}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return Challenge{}
	}
	return ParseChallenge(resp.Header)
}

// bearerParams reads the parameters of the scheme Bearer in a field that may name
// several schemes.
func bearerParams(field string) map[string]string {
	params := map[string]string{}
	ours := false
	for rest := field; rest != ""; {
		rest = strings.TrimLeft(rest, " \t,")
		end := strings.IndexAny(rest, " \t,=")
		if end < 0 {
			break
		}
		word := strings.ToLower(rest[:end])
		after := strings.TrimLeft(rest[end:], " \t")
		if !strings.HasPrefix(after, "=") { // a scheme
			ours = word == "bearer"
			rest = after
			continue
		}
		value := ""
		value, rest = paramValue(strings.TrimLeft(after[1:], " \t"))
		if _, twice := params[word]; ours && !twice {
			params[word] = value
		}
	}
	return params
}

// paramValue reads a token or a quoted text.
func paramValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexAny(s, " \t,"); end >= 0 {
			return s[:end], s[end:]
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
		case s[i] == '"':
			return b.String(), s[i+1:]
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// found is what was learnt about where to sign in.
type found struct {
	server   server
	resource string   // that tokens are for; "" = none is named
	scopes   []string // that the resource says it needs
}

// discover finds the server of an app.
func (d *Desk) discover(ctx context.Context, a App, c Challenge) (found, error) {
	f := found{resource: a.Resource}
	if a.Endpoints.Token != "" {
		f.server = server{Endpoints: a.Endpoints, Issuer: a.Issuer}
		return f, nil
	}
	issuer, guess := a.Issuer, false
	if issuer == "" && a.Metadata == "" {
		var err error
		if f.resource, issuer, f.scopes, err = d.resource(ctx, a.Resource, c.Metadata); err != nil {
			return found{}, err
		}
		if issuer == "" { // as servers of 2025-03-26 have it
			u, err := url.Parse(a.Resource)
			if err != nil {
				return found{}, &Error{Code: CodeApp, Message: "the resource is no address"}
			}
			issuer, guess = u.Scheme+"://"+u.Host, true
		}
	}
	s, ok, err := d.metadata(ctx, issuer, a.Metadata, a.Flow)
	if err != nil {
		return found{}, err
	}
	if !ok {
		if !guess {
			return found{}, &Error{Code: CodeDiscovery, Message: place(issuer+a.Metadata) + " does not say how to sign in there"}
		}
		s = server{Issuer: issuer, Endpoints: Endpoints{Authorization: issuer + "/authorize", Token: issuer + "/token", Registration: issuer + "/register"}}
	}
	f.server = a.override(s)
	return f, f.server.check(a)
}

// override puts what an app says itself in the place of what its server says.
func (a App) override(s server) server {
	for _, e := range []struct {
		to   *string
		from string
	}{
		{&s.Authorization, a.Endpoints.Authorization},
		{&s.Device, a.Endpoints.Device},
		{&s.Revocation, a.Endpoints.Revocation},
		{&s.Registration, a.Endpoints.Registration},
	} {
		if e.from != "" {
			*e.to = e.from
		}
	}
	return s
}

// check says what is wrong with a server that was found. One elsewhere must not
// lead us to this machine.
func (s server) check(a App) error {
	from, err := url.Parse(a.Issuer + a.Metadata)
	if a.Issuer == "" && a.Metadata == "" {
		from, err = url.Parse(a.Resource)
	}
	if err != nil {
		return &Error{Code: CodeApp, Message: "the address of the server is none"}
	}
	for _, at := range (App{Endpoints: s.Endpoints, Issuer: s.Issuer}).addresses() {
		if at.url == "" {
			continue
		}
		if err := secure(at.url); err != nil {
			return &Error{Code: CodeDiscovery, Message: "the server's " + at.name + " " + err.Error()}
		}
		if u, err := url.Parse(at.url); err != nil || loopback(u) && !loopback(from) {
			return &Error{Code: CodeDiscovery, Message: "the server's " + at.name + " leads to this machine"}
		}
	}
	missing := ""
	switch {
	case s.Token == "":
		missing = "tokens"
	case a.Flow == DeviceCode && s.Device == "":
		missing = "devices"
	case (a.Flow == "" || a.Flow == AuthorizationCode) && s.Authorization == "":
		missing = "people"
	}
	if missing != "" {
		return &Error{Code: CodeDiscovery, Message: "the server has no endpoint for " + missing}
	}
	return nil
}

// resource asks a resource which server it trusts (RFC 9728). Without an answer,
// issuer is empty.
func (d *Desk) resource(ctx context.Context, at, hint string) (resource, issuer string, scopes []string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", "", nil, &Error{Code: CodeApp, Message: "the resource is no address"}
	}
	origin := u.Scheme + "://" + u.Host
	const known = "/.well-known/oauth-protected-resource"
	places := []string{origin + known + strings.TrimSuffix(u.EscapedPath(), "/"), origin + known}
	if hint != "" {
		h, err := url.Parse(hint)
		if err != nil || secure(hint) != nil || loopback(h) && !loopback(u) {
			return "", "", nil, &Error{Code: CodeDiscovery, Message: "the resource names a place for its metadata that cannot be used"}
		}
		places = append([]string{hint}, places...)
	}
	for i, p := range places {
		if slices.Contains(places[:i], p) {
			continue
		}
		var m struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		ok, err := d.get(ctx, p, &m)
		if err != nil {
			return "", "", nil, err
		}
		if !ok {
			continue
		}
		if !within(u, m.Resource) {
			return "", "", nil, &Error{Code: CodeDiscovery, Message: place(p) + " speaks for another resource"}
		}
		if len(m.Servers) == 0 {
			return "", "", nil, &Error{Code: CodeDiscovery, Message: place(p) + " names no authorization server"}
		}
		if secure(m.Servers[0]) != nil {
			return "", "", nil, &Error{Code: CodeDiscovery, Message: place(p) + " names an authorization server that cannot be used"}
		}
		if len(checkScopes("", m.Scopes)) > 0 {
			m.Scopes = nil
		}
		return m.Resource, m.Servers[0], m.Scopes, nil
	}
	return at, "", nil, nil
}

// within reports whether an address lies in a resource: the same origin, and a
// path below its path.
func within(u *url.URL, resource string) bool {
	r, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(r.Scheme, u.Scheme) || !strings.EqualFold(r.Host, u.Host) || r.Fragment != "" {
		return false
	}
	below := strings.TrimSuffix(r.EscapedPath(), "/")
	path := u.EscapedPath()
	return path == below || strings.HasPrefix(path, below+"/")
}

// metadata reads what an authorization server says of itself (RFC 8414, OpenID
// Connect Discovery).
func (d *Desk) metadata(ctx context.Context, issuer, at string, flow Flow) (server, bool, error) {
	places := []string{at}
	if at == "" {
		u, err := url.Parse(issuer)
		if err != nil {
			return server{}, false, &Error{Code: CodeDiscovery, Message: "the issuer is no address"}
		}
		origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
		places = []string{
			origin + "/.well-known/oauth-authorization-server" + path,
			origin + "/.well-known/openid-configuration" + path,
		}
		if path != "" {
			places = append(places, origin+path+"/.well-known/openid-configuration")
		}
	}
	for _, p := range places {
		var m struct {
			Issuer        string   `json:"issuer"`
			Authorization string   `json:"authorization_endpoint"`
			Token         string   `json:"token_endpoint"`
			Device        string   `json:"device_authorization_endpoint"`
			Revocation    string   `json:"revocation_endpoint"`
			Registration  string   `json:"registration_endpoint"`
			Methods       []string `json:"token_endpoint_auth_methods_supported"`
			PKCE          []string `json:"code_challenge_methods_supported"`
			Scopes        []string `json:"scopes_supported"`
			IssParam      bool     `json:"authorization_response_iss_parameter_supported"`
			Document      bool     `json:"client_id_metadata_document_supported"`
		}
		ok, err := d.get(ctx, p, &m)
		if err != nil {
			return server{}, false, err
		}
		if !ok {
			continue
		}
		if issuer != "" && strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return server{}, false, &Error{Code: CodeIssuer, Message: place(p) + " speaks for another server"}
		}
		if (flow == "" || flow == AuthorizationCode) && !slices.Contains(m.PKCE, "S256") {
			return server{}, false, &Error{Code: CodeDiscovery, Message: place(p) + " does not promise PKCE with S256, without which codes can be stolen"}
		}
		return server{
			Endpoints: Endpoints{Authorization: m.Authorization, Token: m.Token, Device: m.Device, Revocation: m.Revocation, Registration: m.Registration},
			Issuer:    m.Issuer, Methods: m.Methods, IssParam: m.IssParam, Document: m.Document, Offline: slices.Contains(m.Scopes, "offline_access"),
		}, true, nil
	}
	return server{}, false, nil
}

// party returns who we are at a server: the client of the app, a document about
// us, or as whom the server has registered us. A registration is kept, because
// servers keep theirs too.
func (d *Desk) party(ctx context.Context, a resolved, rec *record, s server, redirect string) (party, error) {
	switch {
	case a.client.ID != "":
		return a.client, nil
	case a.Document != "" && s.Document:
		return party{ID: a.Document}, nil
	}
	if p := rec.Client; p != nil && p.At == s.Registration && p.Redirect == redirect && (p.Expires.IsZero() || d.cfg.Now().Before(p.Expires)) {
		return *p, nil
	}
	if s.Registration == "" {
		return party{}, &Error{Code: CodeClient, Message: a.label() + " registers no clients: register dure there, and give the client ID"}
	}
	p, err := d.register(ctx, s, redirect, a.Flow)
	if err != nil {
		return party{}, err
	}
	rec.Client = &p
	return p, d.write(a.id, *rec)
}

// register has a server register us (RFC 7591).
func (d *Desk) register(ctx context.Context, s server, redirect string, flow Flow) (party, error) {
	ask := map[string]any{
		"client_name":      "dure",
		"application_type": "native",
		"grant_types":      []string{"authorization_code", "refresh_token"},
	}
	if flow == DeviceCode {
		ask["grant_types"] = []string{deviceGrant, "refresh_token"}
	} else {
		ask["redirect_uris"] = []string{redirect}
		ask["response_types"] = []string{"code"}
	}
	ask["token_endpoint_auth_method"] = methodNone
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, methodNone) {
		ask["token_endpoint_auth_method"] = s.method(party{Secret: "to be given"})
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return party{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Registration, bytes.NewReader(body))
	if err != nil {
		return party{}, &Error{Code: CodeDiscovery, Message: "the server's endpoint for registrations is no address"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	status, data, err := d.do(req)
	if err != nil {
		return party{}, err
	}
	var got struct {
		reply
		ID      string  `json:"client_id"`
		Secret  string  `json:"client_secret"`
		Expires seconds `json:"client_secret_expires_at"`
		Method  string  `json:"token_endpoint_auth_method"`
	}
	bad := json.Unmarshal(data, &got) != nil
	switch {
	case !bad && got.Error != "":
		return party{}, &Error{Code: errorCode(got.Error), Message: said(s.Registration, got.reply, nil)}
	case status/100 != 2:
		return party{}, &Error{Code: CodeClient, Message: fmt.Sprintf("%s answers %d to a registration", place(s.Registration), status)}
	case bad || got.ID == "" || len(got.ID)+len(got.Secret) > maxToken:
		return party{}, &Error{Code: CodeReply, Message: place(s.Registration) + " answers with no registration"}
	}
	d.cfg.Secret(got.Secret)
	p := party{ID: got.ID, Secret: got.Secret, Method: got.Method, At: s.Registration, Redirect: redirect}
	if got.Secret != "" && got.Expires > 0 {
		p.Expires = time.Unix(int64(got.Expires), 0)
	}
	return p, nil
}
