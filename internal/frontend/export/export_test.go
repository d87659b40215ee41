package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/frontend/export"
	"dure/internal/state/archive/repair"
)

var update = flag.Bool("update", false, "write the expected documents anew")

// logOf numbers bodies.
func logOf(bodies ...agent.Body) []agent.Event {
	var all []agent.Event
	for i, b := range bodies {
		all = append(all, agent.Event{
			Seq: int64(i + 1), Epoch: 1, ID: fmt.Sprintf("ev-%d", i+1),
			Time: time.Date(2026, 3, 4, 5, 6, i, 0, time.UTC), Body: b,
		})
	}
	return all
}

func given(events []agent.Event, err error) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(agent.Event{}, err)
		}
	}
}

func answer(blocks ...agent.Block) agent.ModelAnswered {
	cost := agent.Money(1_500_000)
	return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: blocks}}, Cost: &cost}
}

func said(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func call(id, tool, input string) agent.Block {
	return agent.Block{Type: agent.CallBlock, Call: &agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

// story is a session with everything that a document shows.
func story() []agent.Event {
	png := append([]byte("\x89PNG\r\n\x1a\n"), 1, 2, 3)
	tags := []string{"kept", "two words"}
	return logOf(
		agent.SessionOpened{Session: "s-1", Workdir: "/w", Model: "m-1", Origin: &agent.Origin{Source: "codex", ID: "old"}},
		agent.InputAdded{Text: "Mend <b>it</b>\n# and no heading", Parts: []agent.Block{{Type: agent.ImageBlock, Media: &agent.Media{Type: "image/png", Name: "a\"b.png", Data: png}}}},
		agent.ModelRequested{System: "sys"},
		answer(
			agent.Block{Type: agent.ThinkingBlock, Text: "Let me look.", Signature: "sealed"},
			said("I look.\n```go\nx := 1 < 2\n"), call("c1", "bash__exec", `{"command":"cat f","token":"hush"}`), call("c2", "file-system__edit", `{"file_path":"f"}`), call("c3", "bash__exec", `{}`)),
		agent.CallFinished{Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: strings.Repeat("line ``` of output hush\n", 14), Spill: &agent.Spill{Bytes: 100_000}}},
		agent.CallFinished{Result: agent.Result{ID: "c2", Status: agent.StatusError, Text: "no \x1b[31msuch\u202e file", Output: json.RawMessage(`{"structuredPatch":[{"oldStart":1,"newStart":1,"lines":[" a","-hush","+b</pre>"]}]}`)}},
		agent.ConversationRewound{To: 6},
		agent.InputAdded{Text: "taken back"},
		agent.ConversationRewound{To: 7},
		agent.PlanProposed{Plan: "pl-1", Call: "c9", Text: "1. a", Body: agent.Plan{Steps: []agent.PlanStep{{Text: "Ask for <b>hush</b>"}, {Text: "Do ``` it"}}}},
		agent.PlanChanged{Plan: "pl-1", Do: agent.PlanMove, Step: 2, To: 1, By: "user", Body: agent.Plan{Intro: strings.Repeat("much\n", 14), Steps: []agent.PlanStep{{Text: "Do ``` it"}, {Text: "Ask for <b>hush</b>"}}}},
		agent.PlanDecided{Plan: "pl-1", Verdict: agent.PlanAnother, By: "user", Reason: "*too* hush"},
		agent.PlanDecided{Plan: "pl-1", Verdict: agent.PlanRejected, By: "hook:x"},
		agent.PlanDecided{Plan: "pl-1", Verdict: agent.PlanApproved, By: "user"},
		agent.SettingsChanged{Title: "A *title*", Tags: &tags},
		agent.ChildOpened{Child: "s-2", Agent: "helper", Prompt: "help"},
		agent.ContextCompacted{},
		answer(said("Done. `<i>` stays, <script>alert(1)</script> does not run.")),
		agent.Rated{Of: 13, Good: true, Text: "short"},
		agent.Rated{Of: 13, Text: "on second thought"},
		agent.TurnEnded{Error: "the end"},
		agent.Note{Level: "warn", Text: "odd"},
	)
}

func config() export.Config {
	return export.Config{
		Events: given(story(), nil),
		Blob: func(string) ([]byte, error) {
			return []byte(`[{"name":"a","text":"You are hush."},{"name":"b","text":"Be kind."}]`), nil
		},
		Child: func(string) (export.Config, bool) {
			return export.Config{Events: given(logOf(agent.SessionOpened{Session: "s-2"}, agent.InputAdded{Text: "help"}, answer(said("Helped."))), nil)}, true
		},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hush", "[masked]") },
	}
}

func english() export.Words {
	return export.Words{
		Session: "Session", Folder: "Folder", Model: "Model", Created: "Begun", Updated: "Last change", Tags: "Tags", Origin: "From", Cost: "Cost",
		You: "You", Assistant: "Assistant", Thinking: "Thinking", Arguments: "Arguments", Result: "Result", Failed: "Failed",
		NoResult: "no result", Change: "Change", System: "System prompt", Child: "Agent",
		Plan: "Plan", PlanChanged: "Plan, changed", PlanApproved: "the plan is approved", PlanRejected: "the plan is rejected", PlanAnother: "another plan is to be made",
		Compacted: "From here on the model read a summary of what is above.", TurnFailed: "The turn failed", Settled: "Finished in the background",
		Note: "Note", Good: "Good", Bad: "Bad",
		Cut: "The log cannot be read any further", More: "bytes left out", Image: "image",
	}
}

func render(t *testing.T, format string, d *export.Doc) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	words := english()
	words.Print = "Print it."
	switch format {
	case "md":
		err = export.Markdown(&b, d, words)
	case "html":
		err = export.HTML(&b, d, words)
	case "jsonl":
		err = export.JSONL(&b, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDocuments compares the documents of a session with those in testdata.
func TestDocuments(t *testing.T) {
	for name, set := range map[string]func(*export.Config){
		"all":   func(c *export.Config) { c.Thinking, c.System = true, true },
		"plain": func(c *export.Config) { c.NoResults, c.Child = true, nil },
	} {
		c := config()
		set(&c)
		d, err := export.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"md", "html", "jsonl"} {
			got := render(t, format, d)
			if strings.Contains(got, "hush") {
				t.Errorf("%s.%s: a secret is in it", name, format)
			}
			golden := filepath.Join("testdata", name+"."+format)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s: %v, got\n%s", golden, err, got)
			}
			if format == "jsonl" {
				sound(t, got)
			}
		}
	}
}

// sound checks that a transcript is whole as it is.
func sound(t *testing.T, jsonl string) {
	t.Helper()
	rep, err := repair.Check(strings.NewReader(jsonl), int64(len(jsonl)), repair.Options{Loose: true})
	if err != nil || rep.Load != repair.Loaded || jsonl != "" && !rep.Valid {
		t.Errorf("%v: %s %v %v\n%s", err, rep.Load, rep.Repairs, rep.Warnings, jsonl)
	}
}

func TestADamagedLogIsExportedUpToTheDamage(t *testing.T) {
	c := config()
	c.Events = given(story()[:2], errors.New("the log is damaged"))
	d, err := export.Read(c)
	if err != nil || len(d.Items) != 1 || d.Cut != "the log is damaged" {
		t.Errorf("%v, %+v", err, d)
	}
	c.Events = given(nil, errors.New("the log is damaged"))
	if _, err := export.Read(c); err == nil {
		t.Error("a log without events was read")
	}
}

// A child that opens itself does not make the document endless.
func TestChildrenOfChildren(t *testing.T) {
	var c export.Config
	c.Events = given(logOf(agent.SessionOpened{Session: "s"}, agent.ChildOpened{Child: "s", Title: "again"}), nil)
	c.Child = func(string) (export.Config, bool) { return c, true }
	d, err := export.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(render(t, "md", d), "\\*again\\*") + strings.Count(render(t, "md", d), "again"); n > 12 {
		t.Errorf("it stands there %d times", n)
	}
}

// tag finds what is markup in a page.
var tag = regexp.MustCompile(`<(/?[a-zA-Z!][a-zA-Z0-9]*)`)

// FuzzEscaping puts any text at every place of a document: the page has the tags
// that it has without it, and the transcript stays whole.
func FuzzEscaping(f *testing.F) {
	for _, s := range []string{
		"", "x", "<script>alert(1)</script>", "</pre></details><img src=x onerror=y>", "\"><b>", "```\n</details>\n# x", "~~~", "`<a>`", "``<a>`", "\x00\xff\u202e", "--><!--", "]]>", "&lt;", "<style>", "a\n\n> b\n- c", strings.Repeat("`", 40),
		"{\"a\":\"</script>\"}", "\n", "+x\n-y\n@@",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc := func(s string) *export.Doc {
			lines, _ := json.Marshal(map[string]any{"structuredPatch": []any{map[string]any{"lines": []string{s}}}})
			input, _ := json.Marshal(map[string]string{"k": s})
			d, err := export.Read(export.Config{Thinking: true, Events: given(logOf(
				agent.SessionOpened{Session: "s" + s, Title: "t" + s, Workdir: "w" + s, Model: "m" + s},
				agent.InputAdded{Text: "i" + s, Origin: "o" + s, Parts: []agent.Block{{Type: agent.DocumentBlock, Media: &agent.Media{Name: s, Type: s, URL: s}}}},
				answer(agent.Block{Type: agent.ThinkingBlock, Text: "t" + s}, said("a"+s), call("c"+s, "tool"+s, string(input))),
				agent.CallFinished{Result: agent.Result{ID: "c" + s, Status: agent.StatusError, Text: "r" + s, Output: lines}},
				agent.Rated{Of: 3, Text: s}, agent.TurnEnded{Error: "e" + s},
			), nil)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		page := render(t, "html", doc(s))
		kinds := map[string]bool{}
		for _, m := range tag.FindAllStringSubmatch(render(t, "html", doc("x")), -1) {
			kinds[m[1]] = true
		}
		for _, m := range tag.FindAllStringSubmatch(page, -1) {
			if !kinds[m[1]] {
				t.Fatalf("the page has a tag %q", m[1])
			}
		}
		if n := strings.Count(page, "<html>") + strings.Count(page, "<style>") + strings.Count(page, "<meta"); n != 6 {
			t.Fatalf("the page has %d of its own tags", n)
		}
		render(t, "md", doc(s))
		sound(t, render(t, "jsonl", doc(s)))
	})
}
