package oauth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheckApp(t *testing.T) {
	good := App{Name: "box", ClientID: Value{Text: "x"}, Endpoints: Endpoints{Authorization: "https://a.example/a", Token: "https://a.example/t"}}
	for name, c := range map[string]struct {
		change func(*App)
		says   string
	}{
		"good":             {func(*App) {}, ""},
		"an issuer":        {func(a *App) { a.Endpoints = Endpoints{}; a.Issuer = "https://a.example" }, ""},
		"a resource":       {func(a *App) { a.Endpoints, a.ClientID = Endpoints{}, Value{}; a.Resource = "https://a.example/mcp" }, ""},
		"no name":          {func(a *App) { a.Name = "" }, "name is missing"},
		"no server":        {func(a *App) { a.Endpoints = Endpoints{} }, "the server is missing"},
		"no token":         {func(a *App) { a.Endpoints.Token = "" }, "endpoints.token is missing"},
		"no browser":       {func(a *App) { a.Endpoints.Authorization = "" }, "endpoints.authorization is missing"},
		"no device":        {func(a *App) { a.Flow = DeviceCode }, "endpoints.device is missing"},
		"another flow":     {func(a *App) { a.Flow = "implicit" }, "flow"},
		"other subjects":   {func(a *App) { a.Subjects = "group" }, "subjects"},
		"in the clear":     {func(a *App) { a.Endpoints.Token = "http://a.example/t" }, "endpoints.token must begin with https://"},
		"two sources":      {func(a *App) { a.ClientID.Env = "X" }, "clientId has more than one source"},
		"a secret alone":   {func(a *App) { a.ClientID = Value{}; a.ClientSecret = Value{Env: "S"} }, "clientSecret has no clientId"},
		"machine, no key":  {func(a *App) { a.Flow = ClientCredentials }, "needs clientId and clientSecret"},
		"a scope of two":   {func(a *App) { a.Scopes = []string{"a b"} }, "is no scope"},
		"a path elsewhere": {func(a *App) { a.Path = "//evil.example" }, "is no plain path"},
		"a pattern":        {func(a *App) { a.Path = "/{x}" }, "is no plain path"},
		"a port":           {func(a *App) { a.Port = 70000 }, "is none"},
		"a document":       {func(a *App) { a.Document = "http://a.example/c.json" }, "document must begin"},
	} {
		a := good
		c.change(&a)
		got := fmt.Sprint(errors.Join(a.Check()...))
		if c.says == "" && got != "<nil>" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// An app contains its tools, a tool its exports.
func TestCheckScopes(t *testing.T) {
	app := App{Name: "box", Scopes: []string{"read", "write"}}
	for _, c := range []struct {
		tool, export []string
		wrong        int
	}{
		{nil, nil, 0},
		{[]string{"read"}, nil, 0},
		{[]string{"read"}, []string{"read"}, 0},
		{nil, []string{"write"}, 0},
		{[]string{"read"}, []string{"write"}, 1},
		{[]string{"admin"}, nil, 1},
		{[]string{"admin"}, []string{"root"}, 2},
		{nil, []string{"root"}, 1},
		{[]string{}, []string{"read"}, 1},
		{[]string{"re ad"}, nil, 2},
	} {
		if wrong := CheckScopes(app, c.tool, c.export); len(wrong) != c.wrong {
			t.Errorf("%v ⊇ %v: %v", c.tool, c.export, wrong)
		}
	}
}
