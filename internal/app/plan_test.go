//go:build unix

package app_test

import (
	"cmp"
	"encoding/json"
	"slices"
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
	t.Parallel()
	const much = "Do this:\n- one\n- two\n- three"
	for name, tt := range map[string]struct {
		setting  string
		profile  string
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
		"by its work":      {profile: `{"plan":"always","mode":"acceptEdits"}`, here: true, text: "Hi.", planned: true},
		"not by its work":  {setting: "always", profile: `{"plan":"off"}`, here: true, text: much},
		"nothing is asked": {setting: "always", here: true, mode: "bypassPermissions", text: "Hi."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello."} }})
			w.chooses(fields{"plan": fields{"mode": cmp.Or(tt.setting, "off")}, "profiles": fields{"code": json.RawMessage(cmp.Or(tt.profile, "{}"))}})
			k := w.talk(app.Flags{Mode: tt.mode}, agent.Open{Approver: tt.here})
			if tt.change != "" {
				k.send(agent.Change{Plan: tt.change})
			}
			k.turn(tt.text)
			if got := k.mode() == agent.ModePlan; got != tt.planned {
				t.Errorf("in plan mode: %v", got)
			}
			if k.send(agent.Change{Plan: agent.PlanOff}); tt.profile != "" && tt.planned {
				until := func(e agent.Event) bool { b, ok := e.Body.(agent.SettingsChanged); return ok && b.Plan != "" }
				if b := k.until("the change", until).Body.(agent.SettingsChanged); b.Mode != agent.ModeAcceptEdits {
					t.Errorf("after plan mode, the mode is %q", b.Mode)
				}
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

// A plan that a hook refuses in the place of a person waits for nobody any more, whoever
// had it asked first; its reason is in the log.
func TestHookRefusesPlan(t *testing.T) {
	t.Parallel()
	no := hso("PermissionRequest", fields{"decision": fields{"behavior": "deny", "message": "not today"}})
	rewriting := hso("PermissionRequest", fields{"decision": fields{"behavior": "allow", "updatedInput": fields{"plan": "1. Write c.txt"}}})
	late := "grep -q c.txt || exit 0; " + hso("PreToolUse", fields{"permissionDecision": "deny", "permissionDecisionReason": "not today"})
	for name, set := range map[string]fields{
		"at the question": {"PermissionRequest": no},
		"rewritten first": {"PermissionRequest": rewriting, "PreToolUse": late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: planner("1. Write b.txt")})
			w.chooses(fields{"hooks": set})
			k := w.talk(app.Flags{Mode: "plan"}, agent.Open{Approver: true})
			if end := k.turn("Write b.txt."); end.Reason != agent.EndDone {
				t.Fatalf("the turn ended: %+v", end)
			}
			made, decided := all[agent.PlanProposed](k.seen), all[agent.PlanDecided](k.seen)
			if len(made) != 1 || len(decided) != 1 {
				t.Fatalf("proposed %+v, decided %+v\n%s", made, decided, names(k.seen))
			}
			if d := decided[0]; d.Plan != made[0].Plan || d.Verdict != agent.PlanRejected || !strings.HasPrefix(d.By, "hook:") || !strings.Contains(d.Reason, "not today") {
				t.Errorf("decided %+v", d)
			}
			results := all[agent.CallFinished](k.seen)
			if r := results[len(results)-1].Result; r.Error == nil || r.Error.Code != agent.ErrBlockedByHook || !strings.Contains(r.Text, "not today") {
				t.Errorf("the call: %+v", r)
			}
			err := k.Send(t.Context(), agent.DecidePlan{Verdict: agent.PlanApproved})
			if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemNoPlan {
				t.Errorf("a plan that was refused was approved: %v", err)
			}
			k.sound()
		})
	}
}

// A turn that was in plan mode when its program ended goes on in it, whoever had turned
// that on: else what was to be planned would be done, and the call that puts the plan
// would be one of a tool that is not there. A request after that is another matter, and
// where nothing is asked, nothing is planned.
func TestPlanModeOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setting agent.PlanMode
		flag    string
		done    bool
	}{
		"always":      {setting: agent.PlanAlways},
		"asked for":   {setting: agent.PlanOff},
		"named anew":  {setting: agent.PlanOff, flag: "acceptEdits"},
		"ask nothing": {setting: agent.PlanAlways, flag: "bypassPermissions", done: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
				for _, after := range []string{"denied: no", "Unknown tool", "Now do it"} {
					if strings.Contains(r.Last, after) {
						return script.Reply{Calls: []script.Call{numbered("w"+string(rune('0'+r.Step)), "Write", fields{"file_path": "b.txt", "content": "new\n"})}}
					}
				}
				if r.Step == 0 {
					return script.Reply{Calls: []script.Call{numbered("p", "ExitPlanMode", fields{"plan": "1. Write b.txt"})}}
				}
				return script.Reply{Text: "Done.", Stop: agent.StopEnd}
			}})
			w.chooses(fields{"plan": fields{"mode": tt.setting}, "permissions": fields{"defaultMode": "acceptEdits"}})
			k := w.talk(app.Flags{}, agent.Open{Approver: true})
			k.send(agent.Change{Mode: agent.ModePlan})
			k.send(agent.Prompt{Text: "Write b.txt."})
			asked := body[agent.ApprovalAsked](k)
			shut(k)
			k = w.talk(app.Flags{Mode: tt.flag}, agent.Open{Session: k.Info.ID, Approver: true})
			k.send(agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Deny, Reason: "no"}})
			k.send(agent.Continue{})
			if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone {
				t.Fatalf("the turn ended: %+v", end)
			}
			if done := w.read("b.txt") != ""; done != tt.done {
				t.Errorf("the file was written: %v\n%s", done, names(k.seen))
			}
			if tt.setting != agent.PlanOff {
				return
			}
			shut(k) // at rest, nothing is left of it
			k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID, Approver: true})
			if k.turn("Now do it."); w.read("b.txt") == "" {
				t.Errorf("a new request was planned\n%s", names(k.seen))
			}
			k.sound()
		})
	}
}

// A request that waits when the program ends is planned, if it is to be, when somebody
// goes on with it.
func TestQueuedRequestIsPlannedLater(t *testing.T) {
	t.Parallel()
	mute := slices.Repeat([]script.Fault{{Kind: script.Slow}}, 100)
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "Write b.txt.") {
			return script.Reply{Text: "Done.", Stop: agent.StopEnd}
		}
		return script.Reply{Text: "Not yet.", Faults: mute}
	}})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	k.send(agent.Prompt{Text: "Wait."})
	body[agent.ModelRequested](k)
	k.send(agent.Change{Plan: agent.PlanAlways})
	k.send(agent.Prompt{Text: "Write b.txt."})
	shut(k)
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID, Approver: true})
	k.send(agent.Continue{})
	var last agent.TurnEnded
	for last.Reason != agent.EndDone {
		last = body[agent.TurnEnded](k)
	}
	if m := k.mode(); m != agent.ModePlan {
		t.Errorf("the mode is %q\n%s", m, names(k.seen))
	}
	k.sound()
}

// What a person has answered stays answered when the turn is gone on with: a hook that
// would say something else by now is not asked any more.
func TestAnswersStandBeforeHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{numbered("c1", "Bash", fields{"command": "touch made"})}}
		}
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}})
	yes := hso("PermissionRequest", fields{"decision": fields{"behavior": "allow"}})
	w.chooses(fields{"hooks": fields{"PermissionRequest": "test -e seen || { touch seen; exit 0; }; " + yes}})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	k.send(agent.Prompt{Text: "Make it."})
	asked := body[agent.ApprovalAsked](k)
	shut(k)
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID, Approver: true})
	k.send(agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Deny, Reason: "no"}})
	k.send(agent.Continue{})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	if d := all[agent.CallDecided](k.seen); len(d) != 1 || d[0].Decision.Verdict != agent.Deny || d[0].Decision.By != "user" || fileThere(w, "made") {
		t.Errorf("decided: %+v", d)
	}
	k.sound()
}
