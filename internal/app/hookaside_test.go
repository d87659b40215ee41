//go:build unix

package app_test

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// hso is a command that answers with the part of an answer that is for an event.
func hso(event string, more fields) string {
	more["hookEventName"] = event
	return "printf %s '" + string(input(fields{"hookSpecificOutput": more})) + "'"
}

// firstTime is a command that does something the first time, and nothing after that.
func firstTime(command string) string { return "test -e seen && exit 0; touch seen; " + command }

// shut closes a session, for others to open it.
func shut(k *talk) {
	k.t.Helper()
	if err := k.Close(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// A call that a hook puts aside leaves its turn open, and going on has it decided on
// anew: in the same program and in another one, as often as the hook wants that. The log
// is as sound as that of a turn that was cut short.
func TestHooksPutCallsAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: bites})
	later := hso("PreToolUse", fields{"permissionDecision": "defer", "permissionDecisionReason": "not now"})
	w.chooses(fields{"hooks": fields{"PreToolUse": `n=$(cat count 2>/dev/null | wc -c); printf x >> count; test "$n" -ge 7 && exit 0; ` + later}})
	allowed := app.Flags{Allow: []string{"Bash(touch *)"}}
	k := w.talk(allowed, agent.Open{})
	k.send(agent.Prompt{Text: "Bite."})
	aside := body[agent.CallDeferred](k)
	if aside.Call.ID != canary.ID || aside.Reason != "not now" || !strings.HasPrefix(aside.By, "hook:") {
		t.Errorf("put aside as %+v", aside)
	}
	for range 3 {
		k.send(agent.Continue{})
		body[agent.CallDeferred](k)
	}
	shut(k)
	k = w.talk(allowed, agent.Open{Session: k.Info.ID})
	for range 3 { // more often than a turn may crash
		k.send(agent.Continue{})
		body[agent.CallDeferred](k)
	}
	if fileThere(w, "canary") {
		t.Error("the call has run")
	}
	k.send(agent.Continue{})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone || !fileThere(w, "canary") {
		t.Errorf("the turn ended %+v, and the canary is there: %v", end, fileThere(w, "canary"))
	}
	k.sound()
}

// Where somebody can be asked, a call is not put aside: they are.
func TestHooksAskInsteadOfLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: bites})
	w.chooses(fields{"hooks": fields{"PreToolUse": hso("PreToolUse", fields{"permissionDecision": "defer"})}})
	k := w.talk(app.Flags{Allow: []string{"Bash(touch *)"}}, agent.Open{Approver: true})
	end := k.answer("Bite.", func(a agent.ApprovalAsked) agent.Resolve {
		return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow}}
	})
	if end.Reason != agent.EndDone || len(all[agent.ApprovalAsked](k.seen)) != 1 || len(all[agent.CallDeferred](k.seen)) != 0 || !fileThere(w, "canary") {
		t.Errorf("it ended %s\n%s", end.Reason, names(k.seen))
	}
	k.sound()
}

// What a hook has had hold is in the log, holds for the next call without the hook, and
// is there when the session is opened again. A replay decides with it as it was decided.
func TestHooksGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step%2 == 0 {
			return script.Reply{Calls: []script.Call{{ID: "c" + string(rune('0'+r.Step)), Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
		}
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}})
	grant := hso("PermissionRequest", fields{"decision": fields{"behavior": "allow", "updatedPermissions": []any{fields{
		"type": "addRules", "behavior": "allow", "destination": "session", "rules": []any{fields{"toolName": "Bash", "ruleContent": "touch *"}},
	}}}})
	w.chooses(fields{"hooks": fields{"PermissionRequest": firstTime(grant)}})
	k := w.talk(app.Flags{}, agent.Open{})
	for range 2 {
		if end := k.turn("Make it."); end.Reason != agent.EndDone {
			t.Fatalf("the turn ended %+v\n%s", end, names(k.seen))
		}
	}
	shut(k)
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID})
	k.turn("Make it.")
	for _, d := range all[agent.CallDecided](k.seen) {
		if d.Decision.Verdict != agent.Allow {
			t.Errorf("%s: %+v", d.Proposal.Call.ID, d.Decision)
		}
	}
	granted := all[agent.RulesGranted](k.seen)
	if len(granted) != 1 || granted[0].Remember != agent.RememberSession || strings.Join(granted[0].Rules, "") != "Bash(touch *)" {
		t.Errorf("granted %+v", granted)
	}
	k.sound()
}

// What a hook hides of an answer nobody sees on the way either; the model has said it all
// the same.
func TestHooksShowAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply {
		return script.Reply{Text: "The word is swordfish.", Stop: agent.StopEnd, Chunk: 4}
	}})
	w.chooses(fields{"hooks": fields{"MessageDisplay": hso("MessageDisplay", fields{"displayContent": "The word is a secret."})}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("What is it?")
	var live strings.Builder
	for _, f := range all[agent.Fragment](k.seen) {
		live.WriteString(f.Text)
	}
	answers := all[agent.ModelAnswered](k.seen)
	if live.Len() > 0 || len(answers) != 1 || answers[0].Said() != "The word is a secret." || answers[0].Message.Text() != "The word is swordfish." {
		t.Errorf("shown on the way: %q; answers: %+v", live.String(), answers)
	}
	k.sound()
}
