package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// secure says what is wrong with an address of a server. Only a server on this
// machine may be spoken to in the clear.
func secure(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || plain(raw) != raw && len(raw) <= 200:
		return errors.New("is no address of a server")
	case len(raw) > 2000:
		return errors.New("is too long for an address")
	case u.User != nil:
		return errors.New("must not hold a name or a password")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return errors.New("must not have a fragment")
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u):
		return nil
	}
	return errors.New("must begin with https://")
}

// loopback reports whether an address leads to this machine.
func loopback(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// get reads a JSON object. found is false when there is none at that address.
func (d *Desk) get(ctx context.Context, at string, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false, &Error{Code: CodeDiscovery, Message: plain(at) + " is no address"}
	}
	req.Header.Set("Accept", "application/json")
	status, body, err := d.do(req)
	switch {
	case err != nil:
		return false, err
	case status >= 500:
		return false, &Error{Code: CodeNetwork, Message: fmt.Sprintf("%s answers %d", place(at), status)}
	case status != http.StatusOK:
		return false, nil
	case json.Unmarshal(body, into) != nil:
		return false, &Error{Code: CodeDiscovery, Message: place(at) + " answers with no JSON object as it should be"}
	}
	return true, nil
}

// place returns an address without what could be private in it.
func place(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the server"
	}
	return plain(u.Scheme + "://" + u.Host + u.EscapedPath())
}

// do sends a request and reads a bounded answer.
func (d *Desk) do(req *http.Request) (status int, body []byte, err error) {
	resp, err := d.fetch.Do(req)
	if err != nil {
		var u *url.Error // has the whole address
		if errors.As(err, &u) {
			err = u.Err
		}
		code := CodeNetwork
		if errors.Is(err, context.Canceled) {
			code = CodeStopped
		}
		return 0, nil, &Error{Code: code, Message: place(req.URL.String()) + " does not answer: " + plain(err.Error()), err: err}
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return 0, nil, &Error{Code: CodeNetwork, Message: place(req.URL.String()) + " broke off its answer", err: err}
	}
	if len(body) > maxReply {
		return 0, nil, &Error{Code: CodeReply, Message: place(req.URL.String()) + " answers with more than 1 MiB"}
	}
	return resp.StatusCode, body, nil
}

// reply is what a token endpoint answers, or one for devices.
type reply struct {
	AccessToken  string  `json:"access_token"`
	TokenType    string  `json:"token_type"`
	RefreshToken string  `json:"refresh_token"`
	ExpiresIn    seconds `json:"expires_in"`
	Scope        *string `json:"scope"`

	DeviceCode      string  `json:"device_code"`
	UserCode        string  `json:"user_code"`
	VerificationURI string  `json:"verification_uri"`
	VerificationURL string  `json:"verification_url"` // as some spell it
	Complete        string  `json:"verification_uri_complete"`
	Interval        seconds `json:"interval"`

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// seconds is a number, or one in quotes, as some servers write it.
type seconds int64

func (s *seconds) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "" || text == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || f > 10*365*24*3600 {
		return errors.New("no number of seconds")
	}
	*s = seconds(f)
	return nil
}

// post asks an endpoint as a party. An answer that is an error of the protocol has
// that as its code.
func (d *Desk) post(ctx context.Context, at string, s server, p party, form url.Values) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
	if err != nil {
		return reply{}, &Error{Code: CodeDiscovery, Message: plain(at) + " is no address"}
	}
	switch s.method(p) {
	case methodBasic:
		req.SetBasicAuth(url.QueryEscape(p.ID), url.QueryEscape(p.Secret))
	case methodPost:
		form.Set("client_id", p.ID)
		form.Set("client_secret", p.Secret)
	default:
		form.Set("client_id", p.ID)
	}
	body := form.Encode()
	req.Body = io.NopCloser(strings.NewReader(body))
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	status, data, err := d.do(req)
	if err != nil {
		return reply{}, err
	}
	var r reply
	bad := json.Unmarshal(data, &r) != nil
	ok := status == http.StatusOK
	switch {
	case !bad && r.Error != "" && (ok || status < 500):
		return r, &Error{Code: errorCode(r.Error), Message: said(at, r, append(sentValues(form), p.Secret))}
	case status == http.StatusTooManyRequests || status >= 500:
		return r, &Error{Code: CodeNetwork, Message: fmt.Sprintf("%s answers %d", place(at), status)}
	case ok && len(bytes.TrimSpace(data)) == 0:
		return reply{}, nil // a revocation
	case !ok:
		return r, &Error{Code: CodeReply, Message: fmt.Sprintf("%s answers %d, and not in the way of OAuth", place(at), status)}
	case bad && at != s.Revocation:
		return r, &Error{Code: CodeReply, Message: place(at) + " answers with no JSON object as it should be"}
	}
	return r, nil
}

func sentValues(form url.Values) []string {
	var all []string
	for _, name := range []string{"client_secret", "refresh_token", "code", "code_verifier", "device_code", "token"} {
		all = append(all, form.Get(name))
	}
	return all
}

func said(at string, r reply, hide []string) string {
	if text := plain(r.Description, hide...); text != "" {
		return place(at) + " says: " + text
	}
	return place(at) + " refuses"
}

// errorCode returns an error of a server if it has the shape of one.
func errorCode(s string) string {
	if len(s) > 60 || strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
		return CodeReply
	}
	return s
}

// The ways to tell a secret.
const (
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodNone  = "none"
)

// method returns how a party says who it is.
func (s server) method(p party) string {
	switch {
	case p.Secret == "":
		return methodNone
	case p.Method == methodBasic || p.Method == methodPost:
		return p.Method
	case len(s.Methods) == 0 || slices.Contains(s.Methods, methodBasic):
		return methodBasic
	}
	return methodPost
}

// granted makes a grant of an answer.
func (r reply) granted(now time.Time, asked []string) (*grant, error) {
	bad := func(what string) (*grant, error) {
		return nil, &Error{Code: CodeReply, Message: "the answer to a request for a token " + what}
	}
	for _, t := range []string{r.AccessToken, r.RefreshToken} {
		if len(t) > maxToken || strings.ContainsFunc(t, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return bad("has a token that is none")
		}
	}
	switch {
	case r.AccessToken == "":
		return bad("has no token")
	case r.TokenType != "" && !strings.EqualFold(r.TokenType, "bearer"):
		return bad("has a token of a type that we cannot show: " + plain(r.TokenType))
	}
	g := &grant{Access: r.AccessToken, Type: "Bearer", Refresh: r.RefreshToken, Scopes: asked, At: now}
	if r.ExpiresIn > 0 {
		g.Expires = now.Add(time.Duration(r.ExpiresIn) * time.Second)
	}
	if r.Scope != nil {
		g.Scopes = splitScopes(*r.Scope, asked)
	}
	return g, nil
}

// splitScopes reads a list of scopes, which some servers separate with commas.
func splitScopes(s string, asked []string) []string {
	if !strings.Contains(strings.Join(asked, " "), ",") {
		s = strings.ReplaceAll(s, ",", " ")
	}
	var all []string
	for _, f := range strings.Fields(s) {
		if len(checkScopes("", []string{f})) == 0 {
			all = union(all, []string{f})
		}
	}
	return all
}
