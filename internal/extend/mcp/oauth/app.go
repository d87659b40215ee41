package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flow is how an app comes to its token.
type Flow string

// The flows.
const (
	AuthorizationCode Flow = "authorizationCode" // a person agrees in a browser on this machine; the default
	DeviceCode        Flow = "deviceCode"        // a person agrees on any machine
	ClientCredentials Flow = "clientCredentials" // nobody is asked
)

// Subjects says whose the grants of an app are.
type Subjects string

// Whose grants are.
const (
	Global Subjects = "global" // everyone's who uses this Desk; the default
	User   Subjects = "user"   // those of the subject who acts
)

// A Value is a text, or where it comes from: at most one of its fields is set.
type Value struct {
	Text   string `json:"value,omitempty"`
	Env    string `json:"env,omitempty"`    // a variable of the environment
	Stored string `json:"stored,omitempty"` // a secret of the user's
}

// Endpoints are addresses of an authorization server.
type Endpoints struct {
	Authorization string `json:"authorization,omitempty"`
	Token         string `json:"token,omitempty"`
	Device        string `json:"device,omitempty"`
	Revocation    string `json:"revocation,omitempty"`
	Registration  string `json:"registration,omitempty"`
}

// An App is what somebody signs in to. Its server is told by Endpoints, or found
// by Issuer, Metadata or Resource, the first that there is.
type App struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider,omitempty"` // as people call it; "" = Name
	Flow     Flow     `json:"flow,omitempty"`
	Subjects Subjects `json:"subjects,omitempty"`

	// ClientID is who we are there. An app without one gives the address of a
	// document about us, or is registered, where the server knows that.
	ClientID     Value  `json:"clientId,omitzero"`
	ClientSecret Value  `json:"clientSecret,omitzero"`
	Document     string `json:"document,omitempty"`

	Endpoints Endpoints `json:"endpoints,omitzero"`
	Issuer    string    `json:"issuer,omitempty"`
	Metadata  string    `json:"metadata,omitempty"` // the address of what the server says of itself
	Resource  string    `json:"resource,omitempty"` // where tokens are shown, such as an MCP server

	// Scopes are all that may be asked for. Without any, a Resource says what it
	// needs.
	Scopes []string `json:"scopes,omitempty"`

	Port int    `json:"port,omitempty"` // on which we listen for the browser; 0 = any
	Path string `json:"path,omitempty"` // to which it comes; "" = /callback

	// Localhost sends the browser to localhost by name, where the server knows us so.
	Localhost bool `json:"localhost,omitempty"`
}

func (a App) label() string {
	if a.Provider != "" {
		return plain(a.Provider)
	}
	return plain(a.Name)
}

// Check returns everything that is wrong with an app.
func (a App) Check() []error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if a.Name == "" {
		add("name is missing")
	}
	switch a.Flow {
	case "", AuthorizationCode, DeviceCode, ClientCredentials:
	default:
		add("flow %q is none of authorizationCode, deviceCode and clientCredentials", plain(string(a.Flow)))
	}
	switch a.Subjects {
	case "", Global, User:
	default:
		add("subjects %q is none of global and user", plain(string(a.Subjects)))
	}
	for _, v := range []struct {
		name  string
		value Value
	}{{"clientId", a.ClientID}, {"clientSecret", a.ClientSecret}} {
		if v.value.sources() > 1 {
			add("%s has more than one source: keep one of value, env and stored", v.name)
		}
	}
	if a.ClientID.sources() == 0 && a.ClientSecret.sources() > 0 {
		add("clientSecret has no clientId")
	}
	if a.Flow == ClientCredentials && (a.ClientID.sources() == 0 || a.ClientSecret.sources() == 0) {
		add("flow clientCredentials needs clientId and clientSecret")
	}
	for _, at := range a.addresses() {
		if at.url == "" {
			continue
		}
		if err := secure(at.url); err != nil {
			add("%s %w", at.name, err)
		}
	}
	if a.Document != "" && !strings.HasPrefix(a.Document, "https://") {
		add("document must begin with https://")
	}
	wrong = append(wrong, a.checkServer()...)
	wrong = append(wrong, checkScopes("scopes", a.Scopes)...)
	if a.Port < 0 || a.Port > 65535 {
		add("port %d is none", a.Port)
	}
	if a.Path != "" && (!strings.HasPrefix(a.Path, "/") || strings.ContainsAny(a.Path, "?#%{} \\") || plain(a.Path) != a.Path || strings.Contains(a.Path, "//") || strings.Contains(a.Path, "..")) {
		add("path %q is no plain path", plain(a.Path))
	}
	return wrong
}

// checkServer says what is missing to find the server.
func (a App) checkServer() []error {
	e := a.Endpoints
	if a.Issuer != "" || a.Metadata != "" || a.Resource != "" {
		if e.Token == "" && e != (Endpoints{}) && a.Flow == ClientCredentials {
			return []error{errors.New("endpoints.token is missing")}
		}
		if e.Token == "" {
			return nil
		}
	}
	switch {
	case e == (Endpoints{}):
		return []error{errors.New("the server is missing: give endpoints, issuer, metadata or resource")}
	case e.Token == "":
		return []error{errors.New("endpoints.token is missing")}
	case (a.Flow == "" || a.Flow == AuthorizationCode) && e.Authorization == "":
		return []error{errors.New("endpoints.authorization is missing")}
	case a.Flow == DeviceCode && e.Device == "":
		return []error{errors.New("endpoints.device is missing")}
	}
	return nil
}

type address struct{ name, url string }

func (a App) addresses() []address {
	return []address{
		{"endpoints.authorization", a.Endpoints.Authorization},
		{"endpoints.token", a.Endpoints.Token},
		{"endpoints.device", a.Endpoints.Device},
		{"endpoints.revocation", a.Endpoints.Revocation},
		{"endpoints.registration", a.Endpoints.Registration},
		{"issuer", a.Issuer},
		{"metadata", a.Metadata},
		{"resource", a.Resource},
	}
}

// checkScopes says which scopes cannot be any (RFC 6749, 3.3).
func checkScopes(name string, scopes []string) []error {
	if len(scopes) > maxScopes {
		return []error{fmt.Errorf("%s has %d entries; at most %d are taken", name, len(scopes), maxScopes)}
	}
	var wrong []error
	for _, s := range scopes {
		if s == "" || len(s) > 500 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			wrong = append(wrong, fmt.Errorf("%s: %q is no scope", name, plain(s)))
		}
	}
	return wrong
}

// CheckScopes returns what a tool and one of its exports ask for beyond what they
// may: a tool beyond its app, an export beyond its tool. A tool without scopes has
// those of the app, an export those of the tool.
func CheckScopes(app App, tool, export []string) []error {
	wrong := append(checkScopes("the tool's auth.scopes", tool), checkScopes("the export's auth.scopes", export)...)
	beyond := func(inner, outer []string, what, of string) {
		for _, s := range inner {
			if !slices.Contains(outer, s) {
				wrong = append(wrong, fmt.Errorf("%s asks for the scope %q, which %s does not have", what, plain(s), of))
			}
		}
	}
	beyond(tool, app.Scopes, "the tool", "the app "+plain(app.Name))
	if tool == nil {
		tool = app.Scopes
		beyond(export, tool, "the export", "the app "+plain(app.Name))
	} else {
		beyond(export, tool, "the export", "its tool")
	}
	return wrong
}

// wanted returns the scopes that a token must have.
func (a App) wanted(asked []string) ([]string, error) {
	if wrong := checkScopes("scopes", asked); len(wrong) > 0 {
		return nil, &Error{Code: CodeScope, Message: wrong[0].Error()}
	}
	if asked == nil {
		return a.Scopes, nil
	}
	if len(a.Scopes) == 0 && a.Resource != "" {
		return asked, nil
	}
	for _, s := range asked {
		if !slices.Contains(a.Scopes, s) {
			return nil, &Error{Code: CodeScope, Message: fmt.Sprintf("the scope %q is not among those of %s", s, plain(a.Name))}
		}
	}
	return asked, nil
}

func covers(have, want []string) bool {
	for _, s := range want {
		if !slices.Contains(have, s) {
			return false
		}
	}
	return true
}

// union returns what is in any of the lists, each once.
func union(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		for _, s := range l {
			if s != "" && !slices.Contains(all, s) && len(all) < maxScopes {
				all = append(all, s)
			}
		}
	}
	return all
}

func (v Value) sources() int {
	n := 0
	for _, s := range []string{v.Text, v.Env, v.Stored} {
		if s != "" {
			n++
		}
	}
	return n
}

// resolved is an app with its values, and the name of what is kept for it.
type resolved struct {
	App
	client  party
	subject string
	id      string
}

// resolve looks an app's values up, and names its record by all that decides where
// secrets go: an app that names other endpoints, or another client, has no part in
// what was granted to one of the same name.
func (d *Desk) resolve(a App, subject string) (resolved, error) {
	if wrong := a.Check(); len(wrong) > 0 {
		return resolved{}, &Error{Code: CodeApp, Message: fmt.Sprintf("%s: %v", plain(a.Name), errors.Join(wrong...)), err: errors.Join(wrong...)}
	}
	if a.Subjects != User {
		subject = ""
	} else if subject == "" {
		return resolved{}, &Error{Code: CodeApp, Message: fmt.Sprintf("%s has grants for each subject, and nobody is acting", plain(a.Name))}
	}
	r := resolved{App: a, subject: subject}
	var err error
	if r.client.ID, err = d.value("clientId", a.ClientID); err != nil {
		return resolved{}, err
	}
	if r.client.Secret, err = d.value("clientSecret", a.ClientSecret); err != nil {
		return resolved{}, err
	}
	d.cfg.Secret(r.client.Secret)
	key, err := json.Marshal([]any{a.Name, a.Flow, r.client.ID, a.Document, a.Endpoints, a.Issuer, a.Metadata, a.Resource, subject})
	if err != nil {
		return resolved{}, err
	}
	sum := sha256.Sum256(key)
	r.id = hex.EncodeToString(sum[:16])
	return r, nil
}

func (d *Desk) value(name string, v Value) (string, error) {
	var s string
	switch {
	case v.Env != "":
		ok := false
		if d.cfg.Env != nil {
			s, ok = d.cfg.Env(v.Env)
		}
		if !ok || s == "" {
			return "", &Error{Code: CodeApp, Message: fmt.Sprintf("%s: the variable %s is not set", name, plain(v.Env))}
		}
	case v.Stored != "":
		var err error
		if d.cfg.Stored == nil {
			err = errors.New("there are none")
		} else {
			s, err = d.cfg.Stored(v.Stored)
		}
		if err != nil || s == "" {
			return "", &Error{Code: CodeApp, Message: fmt.Sprintf("%s: the stored secret %s cannot be read", name, plain(v.Stored)), err: err}
		}
	default:
		s = v.Text
	}
	return s, nil
}
