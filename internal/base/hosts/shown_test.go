package hosts

import (
	"net/url"
	"strings"
	"testing"
)

func TestShownURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://user:secret@host/path?key=secret": "https://host/path", "http://127.0.0.1:1": "http://127.0.0.1:1", "odd": "odd",
	} {
		if got := Shown(in); got != want {
			t.Errorf("%s is shown as %s", in, got)
		}
	}
	for _, raw := range []string{"http://user:secret@[bad", "http://user:secret@host:port"} {
		_, err := url.Parse(raw)
		if got := Cause(err); err == nil || strings.Contains(got, "secret") {
			t.Errorf("%v is told as %s", err, got)
		}
	}
}
