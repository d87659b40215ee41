package stored

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
)

var errMissing = errors.New("there is no such session")

// log yields the events of the session s.
func log(_ context.Context, session string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		if session != "s" {
			yield(agent.Event{}, errMissing)
			return
		}
		for i, b := range []agent.Body{
			agent.SessionOpened{Session: "s"},
			agent.InputAdded{Input: "i1", Text: "one"},
			agent.Note{Text: "secret"},
			agent.SettingsChanged{Title: "T", By: "user"},
			agent.InputAdded{Input: "i2", Text: "two"},
		} {
			if !yield(agent.Event{Seq: int64(i + 1), Body: b}, nil) {
				return
			}
		}
	}
}

// Screens read a session as people see it, page by page, and without secrets.
func TestAnswers(t *testing.T) {
	answers := map[string]plug.Answer{}
	for _, a := range (&Extension{Events: log, Mask: func(data json.RawMessage) (json.RawMessage, error) {
		return bytes.ReplaceAll(data, []byte("secret"), []byte("***")), nil
	}}).Answers() {
		answers[a.Query.Query()] = a
	}
	for _, tt := range []struct {
		query agent.Query
		want  string
	}{
		{query.View{Session: "s", At: 3}, "3  false 2:input:one 3:note:***"},
		{query.View{Session: "s"}, "5 T false 2:input:one 3:note:*** 4:note: 5:input:two"},
		{query.Rows{Session: "s", Limit: 2}, "0  true 4:note: 5:input:two"},
		{query.Rows{Session: "s", Before: 4, Limit: 2}, "0  false 2:input:one 3:note:***"},
	} {
		raw, err := answers[tt.query.Query()].Do(t.Context(), tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Seq   int64
			Title string
			More  bool
			Rows  []struct {
				ID, Kind, Text string
				Body           struct{ Text string }
			}
		}
		if err := json.Unmarshal(raw.(json.RawMessage), &page); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(page.Seq, " ", page.Title, " ", page.More)
		for _, r := range page.Rows {
			got += fmt.Sprintf(" %s:%s:%s%s", r.ID, r.Kind, r.Text, r.Body.Text)
		}
		if got != tt.want {
			t.Errorf("%+v\n got %q\nwant %q", tt.query, got, tt.want)
		}
	}
	if _, err := answers["session.view"].Do(t.Context(), query.View{Session: "nobody"}); !errors.Is(err, errMissing) {
		t.Errorf("a session that is not there: %v", err)
	}
}
