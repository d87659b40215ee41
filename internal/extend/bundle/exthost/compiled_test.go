package exthost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// The extension that logs says of each call how it came out, and changes nothing.
func TestLogging(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := NewSet(slog.New(slog.NewTextHandler(&log, nil)), nil)
	t.Cleanup(s.Close)
	if err := s.Add(t.Context(), Extension{Name: "log", Register: Logging.Register}); err != nil {
		t.Fatal(err)
	}
	m := callMoment(`{}`)
	m.Turn, m.Step = &Turn{ID: "t1"}, &Step{}
	oh := errors.New("oh")
	for _, c := range []struct {
		out  string
		err  error
		says string
	}{{`{"status":"ok","output":1}`, nil, "status=ok"}, {`{"status":"error"}`, nil, "status=error"}, {"", oh, "status=failed"}} {
		log.Reset()
		out, err := s.Wrap(t.Context(), CallExec, m, func(context.Context, Moment) (json.RawMessage, error) { return json.RawMessage(c.out), c.err })
		if string(out) != c.out || !errors.Is(err, c.err) {
			t.Errorf("%s: %s %v", c.says, out, err)
		}
		if got := log.String(); !strings.Contains(got, c.says) || !strings.Contains(got, "tool=bash__exec") || !strings.Contains(got, "extension=log") {
			t.Errorf("it logs %s", got)
		}
	}
}
