//go:build unix

package app_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/models/script"
)

const hookKey = "sixteen bytes at least"

// hooked is a bundle whose agent is written to by a webhook, each sender in a conversation.
const hooked = `
---
apiVersion: goondan.ai/v1
kind: Connector
metadata: { name: hook }
spec: { runtime: builtin, entry: webhook }
---
apiVersion: goondan.ai/v1
kind: Connection
metadata: { name: hook }
spec:
  connectorRef: Connector/hook
  swarmRef: Swarm/desk
  config: { answer: { value: "true" } }
  secrets: { signingSecret: { value: ` + hookKey + ` } }
  ingress: { rules: [{ route: { instanceKeyProperty: who } }] }
`

// What one conversation has agreed to is not used in another one: with user as the subject,
// each has a sign-in of its own, which whoever writes is told as data. The person at the machine
// has none of theirs.
func TestBundleGrantsOfConversations(t *testing.T) {
	t.Parallel()
	w, o := newWorld(t, posting, script.Options{}), newOffice(t)
	dir := o.bundle(w, "user", "")
	file := filepath.Join(dir, "goondan.yaml")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(data, hooked...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, run := w.swarm(dir, app.Flags{Skip: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	where, ended := make(chan string, 8), make(chan error, 1)
	go func() {
		ended <- a.Bundles.Serve(ctx, dir, "", run, swarms.IO{Note: func(n query.BundleNote) { where <- n.Where + n.Error }})
	}()
	at := <-where
	type reply struct {
		Session, Text, Error string
		Authorization        []struct{ Status, AuthorizationURL, Message string }
	}
	post := func(who string) (r reply) {
		t.Helper()
		body := `{"text": "Post it.", "who": "` + who + `"}`
		mac := hmac.New(sha256.New, []byte(hookKey))
		mac.Write([]byte(body))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || r.Error != "" {
			t.Fatalf("%s: %+v %v", resp.Status, r, err)
		}
		return r
	}
	one := post("kim")
	if len(one.Authorization) != 1 || one.Authorization[0].Status != "authorization_required" {
		t.Fatalf("%+v", one)
	}
	agree(t, one.Authorization[0].AuthorizationURL)
	two := post("lee")
	if two.Session == one.Session || len(two.Authorization) != 1 || two.Authorization[0].AuthorizationURL == one.Authorization[0].AuthorizationURL {
		t.Fatalf("%+v", two)
	}
	if again := post("kim"); len(again.Authorization) != 0 || again.Text != "It is posted." || again.Session != one.Session {
		t.Errorf("%+v", again)
	}
	if third := post("lee"); len(third.Authorization) != 1 {
		t.Errorf("%+v", third)
	}
	cancel()
	<-ended
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Post it.")
	if got := all[agent.CallFinished](k.seen)[0].Result; got.Status != agent.StatusPending || wantedOf(t, got) == one.Authorization[0].AuthorizationURL {
		t.Errorf("the person has what a conversation has agreed to: %+v", got)
	}
}
