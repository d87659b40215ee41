//go:build unix

package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// planner is a model that plans when it can, and writes b.txt when it may.
func planner(text string) func(script.Request) script.Reply {
	return func(r script.Request) script.Reply {
		switch {
		case strings.Contains(r.Last, "Carry it out"):
			return script.Reply{Calls: []script.Call{numbered("w", "Write", fields{"file_path": "b.txt", "content": "new\n"})}}
		case offeredBy(r.Body)["ExitPlanMode"] && !strings.Contains(r.Last, "denied"):
			return script.Reply{Calls: []script.Call{numbered("p", "ExitPlanMode", fields{"plan": text})}}
		}
		return script.Reply{Text: "Done."}
	}
}

func numbered(id, name string, in fields) script.Call {
	c := tool(name, in)
	c.ID = id
	return c
}

func offeredBy(body []byte) map[string]bool {
	var in struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(body, &in) // none, then
	names := map[string]bool{}
	for _, t := range in.Tools {
		names[t.Name] = true
	}
	return names
}

// Where nobody can agree to a plan, nothing is done. The plan waits: whoever opens the
// session later changes it and agrees to it, and the model is told what was changed.
func TestPlanWaitsForSomebody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: planner("1. Write b.txt\n2. Say so")})
	always := app.Flags{Settings: `{"plan":{"mode":"always"}}`, Mode: "acceptEdits"}
	k := w.talk(always, agent.Open{})
	if end := k.turn("Write b.txt."); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	if got := w.read("b.txt"); got != "" {
		t.Fatalf("b.txt has %q, and nobody has agreed", got)
	}
	if made := all[agent.PlanProposed](k.seen); len(made) != 1 || len(made[0].Body.Steps) != 2 {
		t.Fatalf("proposed: %+v", made)
	}
	if err := k.Session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	k = w.talk(always, agent.Open{Session: k.Info.ID, Approver: true})
	k.send(agent.ChangePlan{Do: agent.PlanEdit, Step: 2, Text: "Whisper so"})
	k.send(agent.DecidePlan{Verdict: agent.PlanApproved})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	if got := w.read("b.txt"); got != "new\n" {
		t.Errorf("b.txt has %q", got)
	}
	added := all[agent.InputAdded](k.seen)
	for _, want := range []string{"step 2 is changed: Whisper so", "2. Whisper so"} {
		if last := added[len(added)-1].Text; !strings.Contains(last, want) {
			t.Errorf("the model was not told %q:\n%s", want, last)
		}
	}
	if m := k.mode(); m != agent.ModeAcceptEdits {
		t.Errorf("the mode is %s", m)
	}
	if err := k.Send(t.Context(), agent.DecidePlan{Verdict: agent.PlanApproved}); agent.ProblemOf(err) == nil {
		t.Errorf("a plan was approved twice: %v", err)
	}
	k.sound()
}

// mode is the permission mode that was set last.
func (k *talk) mode() (m agent.Mode) {
	for _, b := range all[agent.SettingsChanged](k.seen) {
		if b.Mode != "" {
			m = b.Mode
		}
	}
	return m
}

// Which requests begin in plan mode, and whether the model may turn it on, by the setting,
// by whether somebody is there, and by what the session says itself.
func TestWhenPlansAreMade(t *testing.T) {
	const much = "Do this:\n- one\n- two\n- three"
	for name, tt := range map[string]struct {
		setting  string
		here     bool
		change   agent.PlanMode
		mode     string
		text     string
		planned  bool
		canEnter bool
	}{
		"off":              {setting: "off", here: true, text: much},
		"always":           {setting: "always", here: true, text: "Hi.", planned: true},
		"always, alone":    {setting: "always", text: "Hi.", planned: true},
		"auto, little":     {setting: "auto", here: true, text: "Hi.", canEnter: true},
		"auto, much":       {setting: "auto", here: true, text: much, planned: true},
		"auto, alone":      {setting: "auto", text: much},
		"off in a session": {setting: "always", here: true, change: agent.PlanOff, text: much},
		"on in a session":  {setting: "off", here: true, change: agent.PlanAlways, text: "Hi.", planned: true},
		"nothing is asked": {setting: "always", here: true, mode: "bypassPermissions", text: "Hi."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello."} }})
			k := w.talk(app.Flags{Settings: `{"plan":{"mode":"` + tt.setting + `"}}`, Mode: tt.mode}, agent.Open{Approver: tt.here})
			if tt.change != "" {
				k.send(agent.Change{Plan: tt.change})
			}
			k.turn(tt.text)
			if got := k.mode() == agent.ModePlan; got != tt.planned {
				t.Errorf("in plan mode: %v", got)
			}
			offered := offeredTools(t, w.model)
			if offered["ExitPlanMode"] != tt.planned || offered["EnterPlanMode"] != tt.canEnter {
				t.Errorf("the model has ExitPlanMode: %v, EnterPlanMode: %v", offered["ExitPlanMode"], offered["EnterPlanMode"])
			}
		})
	}
}

// The model turns plan mode on by itself, and can change nothing from then on.
func TestModelPlansFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch r.Step {
		case 0:
			return script.Reply{Calls: []script.Call{numbered("e", "EnterPlanMode", fields{})}}
		case 1:
			return script.Reply{Calls: []script.Call{numbered("w", "Write", fields{"file_path": "b.txt", "content": "new\n"})}}
		}
		return script.Reply{Text: "Done."}
	}})
	k := w.talk(app.Flags{Settings: `{"plan":{"mode":"auto"}}`, Mode: "acceptEdits"}, agent.Open{Approver: true})
	k.turn("Write b.txt.")
	if r := k.result("w"); !r.Failed() || w.read("b.txt") != "" {
		t.Errorf("the file was written: %+v", r)
	}
	if m := k.mode(); m != agent.ModePlan {
		t.Errorf("the mode is %s", m)
	}
}

// Whoever answers may put another plan into the answer; a plan is made anew as often in a
// row as the settings say, and the model is told why.
func TestPlanIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "Carry it out") {
			return script.Reply{Text: "Done."}
		}
		return script.Reply{Calls: []script.Call{numbered("p"+string(rune('0'+r.Step)), "ExitPlanMode", fields{"plan": "1. Write b.txt"})}}
	}})
	k := w.talk(app.Flags{Settings: `{"plan":{"retries":1}}`, Mode: "plan"}, agent.Open{Approver: true})
	k.send(agent.Prompt{Text: "Write b.txt."})
	body[agent.ApprovalAsked](k)
	k.send(agent.DecidePlan{Verdict: agent.PlanAnother, Reason: "too short"})
	asked := body[agent.ApprovalAsked](k)
	if err := k.Send(t.Context(), agent.DecidePlan{Verdict: agent.PlanAnother}); agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemPlans {
		t.Errorf("a plan was made anew once too often: %v", err)
	}
	k.send(agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Allow, Input: input(fields{"plan": "1. Write c.txt"})}})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	var results []string
	for _, f := range all[agent.CallFinished](k.seen) {
		results = append(results, f.Result.Text)
	}
	for i, want := range []string{"too short", "step 1 is changed: Write c.txt"} {
		if i >= len(results) || !strings.Contains(results[i], want) {
			t.Errorf("the model was not told %q: %q", want, results)
		}
	}
	if last := all[agent.PlanDecided](k.seen); len(last) != 2 || last[1].Verdict != agent.PlanApproved || last[1].By != "user" {
		t.Errorf("decided: %+v", last)
	}
	k.sound()
}
