package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

// send sends a message as a call of its own.
func (t *team) send(ctx context.Context, key, in string) agent.Result {
	r, err := t.Handoff().Run(agent.WithCallEnv(ctx, agent.CallEnv{Key: key}), agent.ToolContext{}, agent.Call{Input: json.RawMessage(in)})
	if err != nil {
		panic(err)
	}
	return r
}

// settled collects how handoffs came out.
func (t *team) settled() *[]agent.Settlement {
	var list []agent.Settlement
	t.c.Settle = func(_ context.Context, s agent.Settlement) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		list = append(list, s)
		return nil
	}
	return &list
}

// What is handed over is answered once, with the correlation that it was sent with.
func TestAHandoffIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := newTeam(func(ctx context.Context, c agent.Child) (agent.Outcome, error) {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return agent.Outcome{Session: "c" + c.Key}, context.Cause(ctx)
			}
			if strings.Contains(c.Prompt, "Fail.") {
				return agent.Outcome{Session: "c" + c.Key, Reason: agent.EndFailed, Error: "broken"}, nil
			}
			return said("The answer.")
		})
		defer team.Close()
		list := team.settled()
		team.c.Chain = []string{"main", "architect"}
		for key, in := range map[string]string{
			"1": `{"to":"researcher","payload":"Find it.","correlationId":"mine"}`,
			"2": `{"to":"researcher","payload":"Fail."}`,
			"3": `{"to":"researcher","payload":"Too long.","timeoutSeconds":5,"correlationId":"slow"}`,
			"4": `{"to":"researcher","payload":"Not at all.","correlationId":"stop"}`,
		} {
			if r := team.send(t.Context(), key, in); r.Status != agent.StatusPending || r.Handle == "" {
				t.Fatalf("%+v", r)
			}
		}
		if r := team.send(t.Context(), "5", `{"to":"researcher","payload":"x","correlationId":"mine"}`); !r.Failed() || !strings.Contains(r.Text, "is in use") {
			t.Errorf("the same correlation: %+v", r)
		}
		if r := team.send(t.Context(), "6", `{"type":"shutdown","correlationId":"stop"}`); r.Failed() || !strings.Contains(r.Text, "was stopped") {
			t.Errorf("a shutdown: %+v", r)
		}
		if r := team.send(t.Context(), "7", `{"type":"shutdown","correlationId":"none"}`); !r.Failed() {
			t.Errorf("a shutdown of nothing: %+v", r)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got := map[string]Message{}
		code := map[string]agent.ErrorCode{}
		for _, s := range *list {
			var m Message
			if err := json.Unmarshal(s.Result.Output, &m); err != nil || m.Type != DelegateResult || m.From != "researcher" || m.To != "architect" || m.Correlation == "" {
				t.Errorf("%s: %s, %v", s.Handle, s.Result.Output, err)
			}
			got[s.Handle] = m
			if s.Result.Error != nil {
				code[s.Handle] = s.Result.Error.Code
			}
		}
		if len(*list) != 4 || got["child:c1"].Correlation != "mine" || !strings.HasPrefix(got["child:c1"].Payload, "The answer.") || got["child:c1"].Failed ||
			!got["child:c2"].Failed || !strings.HasPrefix(got["child:c2"].Correlation, "h-") || code["child:c2"] != agent.ErrHandoffFailed || code["child:c3"] != agent.ErrTimeout || code["child:c4"] != agent.ErrAborted {
			t.Errorf("%d answers: %+v, %v", len(*list), got, code)
		}
		if p := team.prompts["1"]; !strings.HasPrefix(p, "architect hands this over to you (correlationId mine)") || !strings.HasSuffix(p, "Find it.") {
			t.Errorf("it is told %q", p)
		}
	})
}

// Where nothing runs in the background, a handoff waits for its answer.
func TestAHandoffWaits(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) { return said("The answer.") })
	defer team.Close()
	if r := team.send(t.Context(), "1", `{"to":"researcher","payload":"Find it."}`); r.Failed() || !strings.HasPrefix(r.Text, "[delegate_result from researcher, correlationId h-") || !strings.Contains(r.Text, "The answer.") {
		t.Errorf("%+v", r)
	}
}

// One that comes to nothing is answered by a message too, and says so in a code of its own.
func TestAHandoffThatFails(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) {
		return agent.Outcome{}, errors.New("no room for it")
	})
	defer team.Close()
	r := team.send(t.Context(), "1", `{"to":"researcher","payload":"Find it.","correlationId":"mine"}`)
	var m Message
	if err := json.Unmarshal(r.Output, &m); err != nil || m.Type != DelegateResult || m.Correlation != "mine" || !m.Failed || r.Error == nil || r.Error.Code != agent.ErrHandoffFailed || !strings.Contains(r.Text, "no room for it") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAHandoffIsChecked(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) { return said("") })
	defer team.Close()
	team.c.Chain = []string{"researcher", "architect"}
	for _, c := range []struct{ in, says string }{
		{`{"payload":"x"}`, "names the agent in to"},
		{`{"to":"researcher","payload":" "}`, "has a payload"},
		{`{"to":"nobody","payload":"x"}`, `there is no agent "nobody"`},
		{`{"to":"Researcher","payload":"x"}`, "researcher → architect → researcher would go round"},
		{`{"to":"architect","payload":"x"}`, "would go round"},
		{`{"to":"debugger","payload":"x"}`, "a rule asks"},
		{`{"to":"tutor","payload":"x","correlationId":"a b"}`, "a correlationId has at most"},
		{`{"type":"shutdown"}`, "names the correlationId"},
		{`{"type":"delegate_result","to":"tutor","payload":"x"}`, "no type of message that can be sent"},
	} {
		_, err := team.Handoff().(handoff).Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: json.RawMessage(c.in)})
		te, ok := errors.AsType[*agent.ToolError](err)
		if !ok || !strings.Contains(te.Message, c.says) {
			t.Errorf("%s: %v", c.in, err)
		}
	}
	if len(team.prompts) > 0 {
		t.Errorf("these began: %v", team.prompts)
	}
}

// Work that an earlier program has left goes on with the same child and the same
// correlation, and is settled once; as failed where nobody takes it any more.
func TestHandoffsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := newTeam(func(_ context.Context, c agent.Child) (agent.Outcome, error) {
			time.Sleep(time.Minute)
			return said("The answer to " + c.Prompt)
		})
		defer team.Close()
		list := team.settled()
		for key, c := range map[string]struct{ tool, in string }{
			"1": {HandoffTool, `{"to":"researcher","payload":"Find it.","correlationId":"mine"}`},
			"2": {HandoffTool, `{"to":"nobody","payload":"Find it.","correlationId":"gone"}`},
			"3": {HandoffTool, `{"to":"nobody","payload":"Find it."}`},
			"4": {Tool, `{"prompt":"Look.","subagent_type":"researcher","run_in_background":true}`},
			"5": {Tool, `{"prompt":""}`},
		} {
			r := team.Revive("child:c"+key, agent.PendingCall{Tool: c.tool, Key: key, Input: json.RawMessage(c.in)})
			if r == nil {
				t.Fatalf("%s does not go on", key)
			}
			r.Resurrect()
		}
		for _, tool := range []string{"shell__bash", CoordinateTool} {
			if team.Revive("child:cx", agent.PendingCall{Tool: tool, Key: "x", Input: json.RawMessage(`{}`)}) != nil {
				t.Errorf("%s goes on", tool)
			}
		}
		if team.Revive("child:cx", agent.PendingCall{Tool: Tool, Input: json.RawMessage(`{"prompt":"x"}`)}) != nil {
			t.Error("work without a key goes on")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got := map[string]string{}
		for _, s := range *list {
			if got[s.Handle] != "" {
				t.Errorf("%s is settled twice", s.Handle)
			}
			got[s.Handle] = s.Result.Text
		}
		for handle, want := range map[string]string{
			"child:c1": "[delegate_result from researcher, correlationId mine]\nThe answer to main hands this over to you (correlationId mine).",
			"child:c2": "[delegate_result from nobody, correlationId gone]\n",
			"child:c3": "[delegate_result from nobody, correlationId h-",
			"child:c4": "The answer to Look.",
			"child:c5": "the prompt is empty",
		} {
			if !strings.HasPrefix(got[handle], want) {
				t.Errorf("%s came out as %q", handle, got[handle])
			}
		}
		if len(got) != 5 {
			t.Errorf("%v", got)
		}
	})
}
