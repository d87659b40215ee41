package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"dure/agent/query"
)

// A Bearer is what the MCP SDK wants to have.
var _ interface {
	TokenSource(context.Context) (oauth2.TokenSource, error)
	Authorize(context.Context, *http.Request, *http.Response) error
} = (*Bearer)(nil)

// request sends a request to the resource as the SDK does: with a token when there
// is one, and once more when Authorize found another.
func request(t *testing.T, b *Bearer) (int, error) {
	t.Helper()
	ctx := limited(t)
	send := func() (*http.Request, *http.Response) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.App.Resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		ts, err := b.TokenSource(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ts != nil {
			tok, err := ts.Token()
			if err != nil {
				t.Fatal(err)
			}
			tok.SetAuthHeader(req)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return req, resp
	}
	req, resp := send()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		if err := b.Authorize(ctx, req, resp); err != nil {
			return resp.StatusCode, err
		}
		_, resp = send()
	}
	return resp.StatusCode, nil
}

func asks(t *testing.T, err error) query.SignInRequired {
	t.Helper()
	var r *RequiredError
	if !errors.As(err, &r) {
		t.Fatalf("nobody is asked: %v", err)
	}
	return r.SignInRequired
}

// A resource of which only the address is known: it says which server it trusts,
// that says how it works, registers us, and gives a token for this resource.
func TestResource(t *testing.T) {
	w := newWorld(t)
	w.iss = true
	dir := t.TempDir()
	d, _ := desk(t, w, dir)
	b := &Bearer{Desk: d, App: App{Name: "mcp:notes", Provider: "notes", Resource: w.URL + "/mcp"}}
	_, err := request(t, b)
	q := asks(t, err)
	u, err := url.Parse(q.URL)
	if err != nil {
		t.Fatal(err)
	}
	if v := u.Query(); v.Get("resource") != w.URL+"/mcp" || v.Get("scope") != "read offline_access" || v.Get("client_id") != "client-1" {
		t.Errorf("asks %v", v)
	}
	browse(t, q.URL)
	if _, err := d.Await(limited(t), q.AuthSession); err != nil {
		t.Fatal(err)
	}
	if status, err := request(t, b); status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}

	// A token that the resource takes no more is renewed without a person.
	clear(w.live)
	if status, err := request(t, b); status != http.StatusOK || err != nil || w.renewals != 1 {
		t.Fatal(status, err, w.renewals)
	}
	if f := w.forms[len(w.forms)-1]; f.Get("resource") != w.URL+"/mcp" {
		t.Errorf("renewed for %q", f.Get("resource"))
	}

	// One that is not enough is asked for again, with what there was.
	w.need = []string{"read", "write"}
	_, err = request(t, b)
	q = asks(t, err)
	if u, _ := url.Parse(q.URL); u.Query().Get("scope") != "read write offline_access" {
		t.Errorf("asks for %q", u.Query().Get("scope"))
	}
	browse(t, q.URL)
	if status, err := request(t, b); status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	if len(w.clients) != 1 {
		t.Errorf("registered %d times", len(w.clients))
	}

	// With everything gone there, it begins anew.
	clear(w.live)
	clear(w.refresh)
	_, err = request(t, b)
	asks(t, err)
}

// Quiet, nobody is asked to sign in who has not asked for it; what there is is used and
// renewed, and somebody who has signed in is asked for more.
func TestQuietly(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	b := &Bearer{Desk: d, App: App{Name: "mcp:notes", Resource: w.URL + "/mcp"}, Quiet: true}
	if _, err := request(t, b); !isCode(err, codeNone) || len(w.clients) != 0 {
		t.Errorf("%v, registered %d times", err, len(w.clients))
	}
	signIn(t, d, Request{App: b.App})
	clear(w.live)
	if status, err := request(t, b); status != http.StatusOK || err != nil || w.renewals != 1 {
		t.Errorf("%d, %v, %d renewals", status, err, w.renewals)
	}
	w.need = []string{"write"}
	_, err := request(t, b)
	asks(t, err)
	clear(w.live)
	clear(w.refresh)
	if _, err := request(t, b); !isCode(err, codeNone) {
		t.Error(err)
	}
}

// A resource that refuses for another reason than the token opens no sign-in.
func TestRefusalOfAnotherKind(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	b := &Bearer{Desk: d, App: App{Name: "mcp:notes", Resource: w.URL + "/mcp"}}
	req, err := http.NewRequestWithContext(limited(t), http.MethodPost, b.App.Resource, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Authorize(limited(t), req, &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: http.Header{}})
	if !isCode(err, CodeDenied) {
		t.Error(err)
	}
}

func TestWhoWeAre(t *testing.T) {
	w := newWorld(t)
	w.document = true
	d, _ := desk(t, w, t.TempDir())
	app := App{Name: "mcp:notes", Resource: w.URL + "/mcp", Document: "https://dure.example/client.json"}
	client := func(a App) string {
		u, err := url.Parse(required(t, d.Token(limited(t), Request{App: a})).URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("client_id")
	}
	if c := client(app); c != app.Document {
		t.Errorf("with a document: %s", c)
	}
	given := app
	given.ClientID = Value{Text: "given"}
	if c := client(given); c != "given" {
		t.Errorf("with a client: %s", c)
	}
	w.document = false
	registered := app
	registered.Name = "another"
	if c := client(registered); c != "client-1" {
		t.Errorf("registered: %s", c)
	}
	w.register = false
	registered.Name = "a third"
	refused(t, d.Token(limited(t), Request{App: registered}), CodeClient)
}

// What a hostile resource or server can say of itself.
func TestHostileMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		code   string
	}{
		"speaks for another resource": {func(w *world) { w.resource = "https://bank.example/mcp" }, CodeDiscovery},
		"a path beside ours":          {func(w *world) { w.resource = w.URL + "/mc" }, CodeDiscovery},
		"no PKCE":                     {func(w *world) { w.noPKCE = true }, CodeDiscovery},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			d, _ := desk(t, w, t.TempDir())
			refused(t, d.Token(limited(t), Request{App: App{Name: "n", Resource: w.URL + "/mcp"}}), c.code)
		})
	}
	far := App{Resource: "https://far.example/mcp"}
	near := server{Endpoints: Endpoints{Authorization: "https://far.example/a", Token: "http://127.0.0.1:1/token"}}
	if err := near.check(far); !isCode(err, CodeDiscovery) {
		t.Errorf("a server elsewhere leads to this machine: %v", err)
	}
	near.Token, near.Registration = "https://far.example/t", "https://localhost/register"
	if err := near.check(far); !isCode(err, CodeDiscovery) {
		t.Errorf("a server elsewhere leads to this machine: %v", err)
	}
	for _, bad := range []string{"http://far.example/", "ftp://far.example", "https://", "https://u:p@far.example/", "https://far.example/#x", "javascript:alert(1)", "https://far.example/\x1b", "http://127.0.0.1.far.example/"} {
		if secure(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{"https://far.example", "http://127.0.0.1:80/x", "http://[::1]/", "http://localhost/"} {
		if err := secure(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// An answer that comes from another server than was asked is worth nothing.
func TestMixedUp(t *testing.T) {
	w := newWorld(t)
	w.iss = true
	d, _ := desk(t, w, t.TempDir())
	for _, iss := range []string{"", "https://other.example"} {
		q := required(t, d.Token(limited(t), Request{App: App{Name: "n", Resource: w.URL + "/mcp"}}))
		u, err := url.Parse(redirected(t, q.URL))
		if err != nil {
			t.Fatal(err)
		}
		v := u.Query()
		v.Set("iss", iss)
		u.RawQuery = v.Encode()
		if err := finish(t, d, q.AuthSession, u.String()); !isCode(err, CodeIssuer) {
			t.Errorf("%q: %v", iss, err)
		}
	}
	if len(w.forms) != 0 {
		t.Error("a code was shown to somebody")
	}
}

func TestParseChallenge(t *testing.T) {
	for field, want := range map[string]Challenge{
		`Bearer`: {},
		`Bearer error="insufficient_scope", scope="a b", resource_metadata="https://x.example/y?a=b,c"`: {"insufficient_scope", []string{"a", "b"}, "https://x.example/y?a=b,c"},
		`Basic realm="a, Bearer error=x", bearer error=invalid_token`:                                   {Error: "invalid_token"},
		`Bearer scope="a\"b"`:                                 {},
		`Bearer error="<script>"`:                             {Error: CodeReply},
		`Digest error="insufficient_scope"`:                   {},
		`Bearer error="a", error="b", scope=x, Basic scope=y`: {Error: "a", Scopes: []string{"x"}},
		`Bearer error="unfinished`:                            {Error: "unfinished"},
	} {
		got := ParseChallenge(http.Header{"Www-Authenticate": {field}})
		if got.Error != want.Error || got.Metadata != want.Metadata || !slices.Equal(got.Scopes, want.Scopes) {
			t.Errorf("%s: %+v", field, got)
		}
	}
}

func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer error="x", scope="a b"`)
	f.Add(`a=b, Bearer "`)
	f.Fuzz(func(t *testing.T, field string) {
		c := ParseChallenge(http.Header{"Www-Authenticate": {field}})
		if len(checkScopes("", c.Scopes)) > 0 || strings.ContainsAny(c.Error, " \n<>") {
			t.Errorf("%+v", c)
		}
	})
}

// What servers answer that is no token.
func TestHostileReplies(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, r := range map[string]reply{
		"none":             {TokenType: "Bearer"},
		"another type":     {AccessToken: "a", TokenType: "DPoP"},
		"a line break":     {AccessToken: "a\r\nX-Evil: 1"},
		"too long":         {AccessToken: strings.Repeat("a", maxToken+1)},
		"refresh with nul": {AccessToken: "a", RefreshToken: "b\x00"},
	} {
		if g, err := r.granted(time.Now(), nil); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
	g, err := reply{AccessToken: "a", Scope: text("x,y  z \"bad\"")}.granted(time.Now(), []string{"x"})
	if err != nil || !slices.Equal(g.Scopes, []string{"x", "y", "z"}) {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := (reply{AccessToken: "a"}).granted(time.Now(), []string{"x"}); err != nil || !slices.Equal(g.Scopes, []string{"x"}) || !g.Expires.IsZero() {
		t.Errorf("%+v, %v", g, err)
	}
	var s seconds
	for in, want := range map[string]seconds{`3600`: 3600, `"3600"`: 3600, `3.6e3`: 3600, `null`: 0} {
		if err := s.UnmarshalJSON([]byte(in)); err != nil || in != "null" && s != want {
			t.Errorf("%s: %d, %v", in, s, err)
		}
	}
	for _, in := range []string{`-1`, `"x"`, `1e99`, `"NaN"`} {
		if s.UnmarshalJSON([]byte(in)) == nil {
			t.Errorf("%s is taken", in)
		}
	}
}
