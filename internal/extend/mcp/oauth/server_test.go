package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is an authorization server and a resource that trusts it.
type world struct {
	*httptest.Server

	mu       sync.Mutex
	now      time.Time
	ttl      time.Duration // of access tokens
	register bool
	document bool
	noPKCE   bool
	iss      bool
	resource string // what the resource calls itself; "" = its address
	methods  []string
	narrow   []string // the scopes that are granted whatever was asked for; nil = those
	down     int      // of so many next requests for tokens, none is answered
	need     []string // scopes that the resource needs

	codes    map[string]asked
	refresh  map[string]family // by refresh token
	live     map[string][]string
	used     map[string]string // refresh tokens that were changed for another, by family
	devices  map[string]*device
	clients  map[string]url.Values
	logins   int
	renewals int
	stolen   int // refresh tokens that came twice
	revoked  []string
	forms    []url.Values // that came to the token endpoint
	seen     []string     // every secret that was given out
}

type asked struct {
	challenge, redirect, client, resource string
	scopes                                []string
	until                                 time.Time
}

type family struct {
	id     string
	scopes []string
}

type device struct {
	scopes  []string
	agreed  bool
	refused bool
	asks    int
}

func newWorld(t *testing.T) *world {
	w := &world{
		now: time.Unix(1_800_000_000, 0), ttl: time.Hour, register: true,
		codes: map[string]asked{}, refresh: map[string]family{}, live: map[string][]string{}, used: map[string]string{},
		devices: map[string]*device{}, clients: map[string]url.Values{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", w.metadata)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", w.protected)
	mux.HandleFunc("GET /authorize", w.authorize)
	mux.HandleFunc("POST /token", w.token)
	mux.HandleFunc("POST /device", w.device)
	mux.HandleFunc("POST /revoke", w.revoke)
	mux.HandleFunc("POST /register", w.registration)
	mux.HandleFunc("/mcp", w.mcp)
	w.Server = httptest.NewServer(mux)
	t.Cleanup(w.Close)
	return w
}

func (w *world) secret(kind string) string {
	s := kind + "-" + rand.Text()
	w.seen = append(w.seen, s)
	return s
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func reply200(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v)
}

func refuse(rw http.ResponseWriter, code, text string) {
	rw.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(rw).Encode(map[string]string{"error": code, "error_description": text})
}

func (w *world) metadata(rw http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": w.URL, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token",
		"device_authorization_endpoint": w.URL + "/device", "revocation_endpoint": w.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"read", "write", "offline_access"},
		"authorization_response_iss_parameter_supported": w.iss, "client_id_metadata_document_supported": w.document,
		"token_endpoint_auth_methods_supported": w.methods,
	}
	if w.register {
		m["registration_endpoint"] = w.URL + "/register"
	}
	if w.noPKCE {
		delete(m, "code_challenge_methods_supported")
	}
	reply200(rw, m)
}

func (w *world) protected(rw http.ResponseWriter, _ *http.Request) {
	name := w.resource
	if name == "" {
		name = w.URL + "/mcp"
	}
	reply200(rw, map[string]any{"resource": name, "authorization_servers": []string{w.URL}, "scopes_supported": []string{"read"}})
}

// authorize agrees at once, as a person would with a click.
func (w *world) authorize(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("redirect_uri"))
	client, known := w.clients[q.Get("client_id")]
	if err != nil || q.Get("code_challenge_method") != "S256" || known && client.Get("redirect") != redirect.String() {
		refuse(rw, "invalid_request", "no")
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if w.iss {
		back.Set("iss", w.URL)
	}
	code := w.secret("code")
	scopes := strings.Fields(q.Get("scope"))
	if w.narrow != nil {
		scopes = w.narrow
	}
	w.codes[code] = asked{q.Get("code_challenge"), redirect.String(), q.Get("client_id"), q.Get("resource"), scopes, w.now.Add(time.Minute)}
	back.Set("code", code)
	redirect.RawQuery = back.Encode()
	w.logins++
	http.Redirect(rw, r, redirect.String(), http.StatusFound)
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = r.ParseForm()
	f := r.PostForm
	if id, secret, ok := r.BasicAuth(); ok {
		f.Set("client_id", id)
		f.Set("basic", secret)
	}
	w.forms = append(w.forms, f)
	if w.down > 0 {
		w.down--
		rw.WriteHeader(http.StatusBadGateway)
		return
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		a, ok := w.codes[f.Get("code")]
		delete(w.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		switch {
		case !ok || w.now.After(a.until):
			refuse(rw, "invalid_grant", "the code "+f.Get("code")+" has expired")
		case base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge, a.redirect != f.Get("redirect_uri"), a.client != f.Get("client_id"), a.resource != f.Get("resource"):
			refuse(rw, "invalid_grant", "the code is of another")
		default:
			w.issue(rw, family{rand.Text(), a.scopes})
		}
	case "refresh_token":
		old := f.Get("refresh_token")
		if _, twice := w.used[old]; twice {
			w.stolen++
			for t, fam := range w.refresh {
				if fam.id == w.used[old] {
					delete(w.refresh, t)
				}
			}
		}
		fam, ok := w.refresh[old]
		if !ok {
			refuse(rw, "invalid_grant", "unknown: "+old)
			return
		}
		delete(w.refresh, old)
		w.used[old] = fam.id
		w.renewals++
		w.issue(rw, fam)
	case "client_credentials":
		if f.Get("basic")+f.Get("client_secret") != "machine-secret" {
			refuse(rw, "invalid_client", "who is that?")
			return
		}
		w.issue(rw, family{"", strings.Fields(f.Get("scope"))})
	case deviceGrant:
		w.deviceToken(rw, f.Get("device_code"))
	default:
		refuse(rw, "unsupported_grant_type", "")
	}
}

func (w *world) issue(rw http.ResponseWriter, fam family) {
	access := w.secret("access")
	w.live[access] = fam.scopes
	m := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": int(w.ttl.Seconds()), "scope": strings.Join(fam.scopes, " ")}
	if fam.id != "" {
		next := w.secret("refresh")
		w.refresh[next] = fam
		m["refresh_token"] = next
	}
	reply200(rw, m)
}

func (w *world) device(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = r.ParseForm()
	code := w.secret("device")
	w.devices[code] = &device{scopes: strings.Fields(r.PostForm.Get("scope"))}
	reply200(rw, map[string]any{"device_code": code, "user_code": "ABCD-EFGH", "verification_uri": w.URL + "/verify", "expires_in": "600", "interval": 1})
}

func (w *world) deviceToken(rw http.ResponseWriter, code string) {
	d := w.devices[code]
	if d == nil {
		refuse(rw, "expired_token", "")
		return
	}
	d.asks++
	switch {
	case d.refused:
		refuse(rw, "access_denied", "")
	case d.asks == 1:
		refuse(rw, "authorization_pending", "")
	case d.agreed:
		delete(w.devices, code)
		w.issue(rw, family{rand.Text(), d.scopes})
	default:
		refuse(rw, "authorization_pending", "")
	}
}

func (w *world) revoke(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = r.ParseForm()
	t := r.PostForm.Get("token")
	w.revoked = append(w.revoked, t)
	delete(w.refresh, t)
	delete(w.live, t)
	if w.down > 0 {
		w.down--
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (w *world) registration(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var m struct {
		Redirects []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	id := fmt.Sprintf("client-%d", len(w.clients)+1)
	w.clients[id] = url.Values{"redirect": m.Redirects}
	rw.WriteHeader(http.StatusCreated)
	reply200(rw, map[string]any{"client_id": id, "token_endpoint_auth_method": "none"})
}

// mcp is the resource.
func (w *world) mcp(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	scopes, ok := w.live[token]
	meta := `Bearer resource_metadata="` + w.URL + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !ok:
		rw.Header().Set("WWW-Authenticate", meta)
		rw.WriteHeader(http.StatusUnauthorized)
	case !covers(scopes, w.need):
		rw.Header().Set("WWW-Authenticate", meta+`, error="insufficient_scope", scope="`+strings.Join(w.need, " ")+`"`)
		rw.WriteHeader(http.StatusForbidden)
	}
}

// secrets returns everything that must not be seen anywhere.
func (w *world) secrets() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}
