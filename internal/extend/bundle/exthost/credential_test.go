package exthost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
)

// A credential reaches the code of the call that needs it, beside its context; nothing that is
// logged has it, and what may not have one is not loaded.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const token = "very-secret-token"
	root := bundle(t, map[string]string{
		"a.js": `export const handlers = {
			do: (ctx, input, credential) => { ctx.logger.info(credential?.accessToken); console.info("with " + credential?.accessToken); return [Object.keys(ctx).join(), credential]; } };`,
		"x": "#!/bin/sh\ncat\n",
	})
	var mu sync.Mutex
	var log bytes.Buffer
	h := host(t, root, withNode(t), func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
		c.Clean = func(s string) string { return strings.ReplaceAll(s, token, "[redacted]") }
	})
	sign := func(_ context.Context, export string, refused *Credential) (*Credential, agent.Result) {
		if export == "none" {
			return nil, agent.Failure(agent.ErrOAuthRequired, "sign in first", "")
		}
		return &Credential{Token: token, Scopes: []string{"write"}, Expires: time.Unix(1, 0).UTC()}, agent.Result{}
	}
	whole := `{"accessToken":"very-secret-token","tokenType":"Bearer","expiresAt":"1970-01-01T00:00:01Z","scopes":["write"]}`
	from := Resource{Name: "a", Runtime: Node, Entry: "a.js", Sign: sign}
	r := run(t, t.Context(), tool(t, h, from), `{}`)
	if got := string(r.Output); !strings.HasSuffix(got, whole+"]") || strings.Contains(strings.Split(got, "very")[0], "credential") {
		t.Errorf("%+v %s", r, got)
	}
	from.Sign = nil
	r = run(t, t.Context(), tool(t, h, from), `{}`)
	if got := string(r.Output); !strings.HasSuffix(got, ",null]") {
		t.Errorf("the credential of another call: %+v %s", r, got)
	}
	r = run(t, t.Context(), tool(t, h, Resource{Name: "x", Runtime: Process, Entry: "x", Sign: sign}), `{}`)
	if got := string(r.Output); !strings.HasSuffix(got, `"credential":`+whole+"}") {
		t.Errorf("%+v %s", r, got)
	}
	from.Sign = sign
	from.Exports = []Export{{Name: "none", Spec: agent.Spec{Name: "a__none"}}}
	if r = run(t, t.Context(), tool(t, h, from), `{}`); r.Error == nil || r.Error.Code != agent.ErrOAuthRequired {
		t.Errorf("%+v", r)
	}
	for _, bad := range []Resource{{Runtime: HTTP, Entry: "http://far.example/x"}, {Runtime: Builtin, Entry: "f"}, {Runtime: MCP, Entry: "s"}} {
		bad.Name, bad.Sign, bad.Exports = "b", sign, []Export{{Name: "do"}}
		if _, err := h.Tools(bad); err == nil || !strings.Contains(err.Error(), "token") && !strings.Contains(err.Error(), "signs in") {
			t.Errorf("%s: %v", bad.Entry, err)
		}
	}
	c := Credential{Token: token}
	data, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if said := fmt.Sprintf("%v %+v %#v %s", c, &c, c, data); err != nil || strings.Contains(said, token) {
		t.Error(said, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if said := log.String(); strings.Contains(said, token) || !strings.Contains(said, "with [redacted]") {
		t.Errorf("logged: %s", said)
	}
}

type locked struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}
