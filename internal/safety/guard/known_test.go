package guard

import (
	"strings"
	"testing"

	"dure/agent"
)

// A secret that the program has is masked in whatever form and place it comes, also
// when it became known after the guard was made, and without patterns of the user's.
func TestKnown(t *testing.T) {
	own, err := Compile([]Pattern{{Name: "ticket", Regexp: `T-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, patterns := range []*Patterns{nil, own} {
		k := &Known{}
		with := patterns.With(k)
		g := New(Config{Patterns: with})
		const secret = `plain words"as+a token/`
		k.Add(secret)
		k.Add(secret)
		k.Add("short")
		text := "a " + secret + " b\n" + `{"t":"plain words\"as+a token/"}` + "\nq=plain+words%22as%2Ba+token%2F short"
		for name, got := range map[string]string{"check": check(t, g, text), "redact": with.Redact(text)} {
			if strings.Contains(got, "words") || strings.Count(got, "[redacted:sign-in]") != 3 || !strings.Contains(got, " short") {
				t.Errorf("%s: %q", name, got)
			}
		}
		if patterns != nil && !strings.Contains(check(t, g, "T-12"), "[redacted:ticket]") {
			t.Error("the user's own patterns are gone")
		}
	}
}

func check(t *testing.T, g *Guard, text string) string {
	t.Helper()
	r, err := g.Check(t.Context(), agent.Spec{Name: "x"}, agent.Call{}, agent.OK(text))
	if err != nil {
		t.Fatal(err)
	}
	return r.Text
}
