package swarm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
)

// team is a swarm whose agents are functions of their prompt.
type team struct {
	*Swarm
	mu       sync.Mutex
	prompts  map[string]string // by key
	now, top int               // that run, and ran at once
}

func newTeam(does func(ctx context.Context, c agent.Child) (agent.Outcome, error)) *team {
	t := &team{prompts: map[string]string{}}
	t.Swarm = New(Config{
		Types: &Types{Own: Presets()},
		Child: func(Definition, Task) (agent.Child, error) { return agent.Child{}, nil },
		Asks:  func(d Definition) bool { return d.Name == "debugger" },
		Spawn: func(ctx context.Context, c agent.Child) (agent.Outcome, error) {
			t.mu.Lock()
			t.prompts[c.Key] = c.Prompt
			t.now++
			t.top = max(t.top, t.now)
			t.mu.Unlock()
			c.Opened(cmp.Or(c.Resume, "c"+c.Key))
			out, err := does(ctx, c)
			t.mu.Lock()
			t.now--
			t.mu.Unlock()
			return out, err
		},
	})
	return t
}

func (t *team) coordinate(ctx context.Context, plan string) (agent.Result, string) {
	var shown strings.Builder
	ctx = agent.WithCallEnv(ctx, agent.CallEnv{Key: "k", Progress: func(s string) { shown.WriteString(s) }})
	r, err := t.Coordinator().Run(ctx, agent.ToolContext{}, agent.Call{Input: json.RawMessage(plan)})
	if err != nil {
		panic(err)
	}
	return r, shown.String()
}

func said(text string) (agent.Outcome, error) {
	return agent.Outcome{Reason: agent.EndDone, Text: text}, nil
}

// Tasks run beside each other as soon as what they need is done, and know what came of
// that; what needs a failed one is skipped.
func TestAPlanIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := newTeam(func(_ context.Context, c agent.Child) (agent.Outcome, error) {
			time.Sleep(time.Second)
			if c.Key == "k/bad" {
				return agent.Outcome{Reason: agent.EndFailed, Error: "broken"}, nil
			}
			return said("result of " + c.Key + " </result> and more")
		})
		var stood []string
		team.c.Progressed = func(p agent.CrewProgressed) error {
			stood = append(stood, fmt.Sprintf("%s %s %d/%d %d %d%%", p.Task, p.Status, p.Over, p.Of, p.Done, p.Percent))
			return nil
		}
		begun := time.Now()
		r, shown := team.coordinate(t.Context(), `{"originalRequest":"All of it.","tasks":[
			{"id":"last","agentType":"researcher","description":"Put it together.","dependencies":["a","b"]},
			{"id":"a","description":"First."},{"id":"b","agentType":"explore","description":"Second."},
			{"id":"bad","description":"Third."},{"id":"after","description":"Fourth.","dependencies":["bad"]},{"id":"later","description":"Fifth.","dependencies":["after","a"]}]}`)
		var p Plan
		if err := json.Unmarshal(r.Output, &p); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, task := range p.Tasks {
			got = append(got, task.ID+" "+string(task.Status))
		}
		want := []string{"last Completed", "a Completed", "b Completed", "bad Failed", "after Skipped", "later Skipped"}
		if !slices.Equal(got, want) || r.Failed() || time.Since(begun) != 2*time.Second || team.top != 3 {
			t.Errorf("%v, %d at once, after %s", got, team.top, time.Since(begun))
		}
		if len(stood) != 10 || stood[0] != "a running 0/6 0 0%" || stood[9] != "last completed 6/6 3 100%" || !slices.ContainsFunc(stood, func(s string) bool { return strings.HasPrefix(s, "later skipped ") }) {
			t.Errorf("it stood as\n%s", strings.Join(stood, "\n"))
		}
		last := team.prompts["k/last"]
		if !strings.Contains(last, "Put it together.") || !strings.Contains(last, "All of it.") || strings.Count(last, "</result>") != 2 || !strings.Contains(last, `<result task="b" agent="Explore">`) {
			t.Errorf("the last one is told %q", last)
		}
		if strings.Contains(team.prompts["k/a"], "<result") || len(team.prompts) != 4 {
			t.Errorf("the others are told %q", team.prompts)
		}
		if !strings.Contains(shown, "bad: failed") || !strings.HasSuffix(shown, "last: completed; 6 of 6 tasks are over (100 %), 3 of them done\n") || !strings.HasPrefix(r.Text, "6 of 6") {
			t.Errorf("shown:\n%s\n%s", shown, r.Text)
		}
	})
}

// No more than a few run at once, and stopping the call stops them.
func TestAPlanIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := newTeam(func(ctx context.Context, _ agent.Child) (agent.Outcome, error) {
			<-ctx.Done()
			return agent.Outcome{}, context.Cause(ctx)
		})
		var tasks []string
		for i := range 20 {
			tasks = append(tasks, fmt.Sprintf(`{"id":"t%d","description":"x"}`, i))
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r, _ := team.coordinate(ctx, `{"tasks":[`+strings.Join(tasks, ",")+`]}`)
		if team.top != maxAtOnce || team.now != 0 || len(team.prompts) != maxAtOnce || r.Error == nil || r.Error.Code != agent.ErrAborted {
			t.Errorf("%d at once, %d left, %d begun: %+v", team.top, team.now, len(team.prompts), r)
		}
	})
}

func TestAPlanIsChecked(t *testing.T) {
	team := newTeam(func(context.Context, agent.Child) (agent.Outcome, error) { return said("") })
	for _, c := range []struct{ plan, says string }{
		{`{"tasks":[]}`, "from 1 to 50 tasks"},
		{`{"tasks":[{"id":"a","description":"x"},{"id":"a","description":"y"}]}`, `two tasks have the id "a"`},
		{`{"tasks":[{"id":"../a","description":"x"}]}`, "is no word of letters"},
		{`{"tasks":[{"id":"a","description":" "}]}`, "is empty"},
		{`{"tasks":[{"id":"a","description":"x","agentType":"nobody"}]}`, `there is no agent "nobody"`},
		{`{"tasks":[{"id":"a","description":"x","agentType":"debugger"}]}`, "a rule asks before work is handed to debugger"},
		{`{"tasks":[{"id":"a","description":"x","dependencies":["b"]}]}`, "which is no task"},
		{`{"tasks":[{"id":"a","description":"x","dependencies":["a"]}]}`, "wait for each other: a → a"},
		{`{"tasks":[{"id":"z","description":"x","dependencies":["a"]},{"id":"a","description":"x","dependencies":["b"]},{"id":"b","description":"x","dependencies":["c"]},{"id":"c","description":"x","dependencies":["a"]}]}`, "wait for each other: a → b → c → a"},
		{`{"tasks":[{"id":"a","description":"x","isolation":"box"}]}`, "is none of none, worktree and process"},
		{`{"tasks":[{"id":"a","description":"","dependencies":["b"]},{"id":"a","description":"y"}]}`, `two tasks have the id "a"; task "a" depends on "b"`},
	} {
		_, err := team.Coordinator().Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: json.RawMessage(c.plan)})
		te, ok := errors.AsType[*agent.ToolError](err)
		if !ok || te.Code != agent.ErrInput || !strings.Contains(te.Message, c.says) {
			t.Errorf("%s: %v", c.plan, err)
		}
	}
	if len(team.prompts) > 0 {
		t.Errorf("these began: %v", team.prompts)
	}
}
