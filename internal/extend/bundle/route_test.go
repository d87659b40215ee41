package bundle

import (
	"strings"
	"testing"
)

// A message goes where the first rule says that fits.
func TestRoute(t *testing.T) {
	b, _ := load(t, "testdata/public", nil)
	for _, tt := range []struct {
		m           Message
		agent, want string
	}{
		{Message{Event: "letter", Properties: map[string]any{"kind": "urgent", "from": "kim"}}, "writer", string(keyOf("key", "urgent"))},
		{Message{Event: "letter", Properties: map[string]any{"from": "kim"}}, "clerk", string(keyOf("property", "post-to-desk", "post:", "skim"))},
		{Message{Event: "letter", Properties: map[string]any{"from": 7.0}}, "clerk", string(keyOf("property", "post-to-desk", "post:", "n7"))},
		{Message{Event: "parcel"}, "clerk", string(keyOf("connection", "post-to-desk"))},
	} {
		g, err := b.Route("post-to-desk", tt.m)
		if err != nil || g.Agent.Name != tt.agent || string(g.Key) != tt.want || g.Swarm.Name != "default" {
			t.Errorf("%+v: %+v, %v", tt.m, g, err)
		}
	}
	if g, err := b.Route("post-to-desk", Message{Event: "letter"}); err == nil {
		t.Errorf("a message without what names its conversation goes to %+v", g)
	}
	if _, err := b.Route("nobody", Message{}); err == nil {
		t.Error("a message of no connection goes somewhere")
	}
}

// Different conversations never get one session, however their names are made up.
func TestKeysNeverCollide(t *testing.T) {
	parts := []string{"", "a", "b", "ab", "a:b", "1:a", "user/1", "user.1", "user 1", "가", "나", "é", "e\u0301", "a\x00b", "2:ab", "A"}
	seen := map[string][4]string{}
	for _, bundle := range []string{"/x", "/y"} {
		for _, agent := range []string{"a", "ab"} {
			for _, p := range parts {
				for _, q := range parts {
					g := Goal{Swarm: Ref{Kind: KindSwarm, Name: "s"}, Agent: Ref{Kind: KindAgent, Name: agent}, Key: keyOf(p, q)}
					id := g.Session(bundle)
					now := [4]string{bundle, agent, p, q}
					if before, twice := seen[id]; twice {
						t.Errorf("%q and %q have one session", before, now)
					}
					seen[id] = now
					if len(id) != 49 || !strings.HasPrefix(id, Sessions(bundle, g.Swarm)) || id != g.Session(bundle) {
						t.Errorf("%q is no name of a session", id)
					}
				}
			}
		}
	}
	if scalarText("1") == scalarText(1) || scalarText(true) == scalarText("true") || scalarText(map[string]any{}) != "" {
		t.Error("values of different types are one")
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("a", "bc", "ab", "c")
	f.Add("1:a", "", "", "1:a")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		if (keyOf(a, b) == keyOf(c, d)) != (a == c && b == d) {
			t.Errorf("%q %q and %q %q", a, b, c, d)
		}
	})
}
