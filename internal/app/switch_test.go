//go:build unix

package app_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// One session asks a model of each wire format in turn, twice around, with
// thinking, calls and results from all of them in its conversation. The server
// refuses what the real ones would.
func TestAModelOfEveryKindInOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step%2 == 1 {
			return script.Reply{Thinking: fmt.Sprint("I have seen it ", r.Step), Text: fmt.Sprint("Answer ", r.Step)}
		}
		calls := []script.Call{
			{Tool: "Read", Input: input(fields{"file_path": "a.txt"})},
			{Tool: "Read", Input: input(fields{"file_path": "missing.txt"})},
		}
		if !bytes.Contains(r.Body, []byte(`"contents"`)) { // Gemini does not give out what is malformed
			calls = append(calls, script.Call{Tool: "Grep", Raw: `{"pattern":`})
		}
		return script.Reply{Thinking: fmt.Sprint("I look ", r.Step), Calls: calls}
	}})
	w.write("a.txt", "hello\n")
	var providers []string
	for _, wire := range script.Wires {
		providers = append(providers, fmt.Sprintf(`%q:{"type":%q,"baseUrl":%q}`, "on-"+wire, wire, w.model.URL()))
	}
	k := w.talk(app.Flags{Skip: true, Settings: `{"providers":{` + strings.Join(providers, ",") + `}}`}, agent.Open{Model: "on-anthropic/script"})
	for round := range 2 {
		for _, wire := range script.Wires {
			k.send(agent.Change{Model: "on-" + wire + "/script"})
			if end := k.answer("Look again.", nil); end.Reason != agent.EndDone {
				t.Fatalf("round %d, %s: %+v", round, wire, end)
			}
		}
	}
	var asked []string
	for _, r := range all[agent.ModelRequested](k.seen) {
		asked = append(asked, r.Model)
	}
	if asked = slices.Compact(asked); len(asked) != 2*len(script.Wires) {
		t.Errorf("asked %q", asked)
	}
	k.sound()
	for _, bad := range refusals(w.model) {
		t.Error(bad)
	}
}

// When the first model is gone for good, the fallback finishes the turn, and the
// next turn begins with the first one again.
func TestFallbackModel(t *testing.T) {
	t.Parallel()
	gone := script.Fault{Kind: script.Status, Status: 529}
	w := newWorld(t, script.Script{Replies: []script.Reply{{Text: "From elsewhere.", Faults: []script.Fault{gone}}, {Text: "Here again."}}}, script.Options{})
	settings := fmt.Sprintf(`{"limits":{"retries":1},"fallbackModel":"spare/script","providers":{"spare":{"type":"chat","baseUrl":%q}}}`, w.model.URL())
	k := w.talk(app.Flags{Settings: settings}, agent.Open{})
	if end := k.answer("Go.", nil); end.Reason != agent.EndDone {
		t.Fatalf("%+v", end)
	}
	if end := k.answer("Go on.", nil); end.Reason != agent.EndDone {
		t.Fatalf("%+v", end)
	}
	var asked []string
	for _, r := range all[agent.ModelRequested](k.seen) {
		asked = append(asked, r.Model)
	}
	if want := []string{"script", "spare/script", "script"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	if failed := all[agent.ModelFailed](k.seen); len(failed) != 1 || failed[0].Model != "spare/script" || !failed[0].Retry {
		t.Errorf("failures %+v", failed)
	}
	k.sound()
}

// A page that is fetched is read by the provider of the session's model, before and
// after the user has changed that, and by no other one.
func TestPagesGoToTheProviderOfTheSession(t *testing.T) {
	t.Parallel()
	fetches := func(url string) script.Options {
		return script.Options{Func: func(r script.Request) script.Reply {
			if strings.HasSuffix(strings.TrimSpace(r.Last), "Go.") {
				return script.Reply{Calls: []script.Call{{Tool: "WebFetch", Input: input(fields{"url": url + "/page", "prompt": "What?"})}}}
			}
			return script.Reply{Text: "Read."}
		}}
	}
	opts := fetches(pages(t).URL)
	w := newWorld(t, script.Script{}, opts)
	near, err := script.NewServer(script.Script{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	settings := fmt.Sprintf(`{"network":{"mode":"internal","allowHosts":["127.0.0.1"]},"providers":{"near":{"type":"chat","baseUrl":%q}}}`, near.URL())
	k := w.talk(app.Flags{Skip: true, Settings: settings}, agent.Open{Model: "near/script"})
	for _, want := range []struct{ near, far int }{{3, 0}, {3, 3}} { // the call, the page, the answer
		if end := k.answer("Go.", nil); end.Reason != agent.EndDone {
			t.Fatalf("%+v", end)
		}
		if n, f := len(near.Requests()), len(w.model.Requests()); n != want.near || f != want.far {
			t.Errorf("%d requests of the model's provider and %d of the other, want %+v", n, f, want)
		}
		k.send(agent.Change{Model: "script"})
	}
}

// What the user says about thinking reaches each provider in its own words.
func TestEffort(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]string{
		"anthropic": `"budget_tokens":8192`, "chat": `"reasoning_effort":"medium"`, "responses": `"effort":"medium"`, "gemini": `"thinkingBudget":8192`,
	} {
		w := newWorld(t, says(), script.Options{})
		settings := fmt.Sprintf(`{"effort":"medium","providers":{"p":{"type":%q,"baseUrl":%q}}}`, wire, w.model.URL())
		k := w.talk(app.Flags{Settings: settings}, agent.Open{Model: "p/script"})
		if end := k.answer("Go.", nil); end.Reason != agent.EndDone {
			t.Fatalf("%+v", end)
		}
		if body := string(w.model.Requests()[0].Body); !strings.Contains(body, want) {
			t.Errorf("%s: no %s in %s", wire, want, body[:min(len(body), 600)])
		}
	}
}
