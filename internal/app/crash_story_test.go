//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/state/transcript"
)

// The session of the crash history. Its first request is planned twice, and carried out.
// The plan of the second one is approved when its turn is over; then five agents work beside
// each other: in this process and in one of its own, in the background, and two in work
// trees. Beside them, one job ends by itself, one is stopped and one is left. A hook denies
// a call. What the agents have done in their trees is merged.

// The calls that start jobs: one that ends by itself, one that the model stops, and one
// that is left when the session is closed.
const (
	jobQuick = "quick"
	jobStop  = "stop"
	jobLeft  = "left"
)

// storyRest is the request that makes the session do all but write a file.
const storyRest = "Do the rest."

var (
	handleSaid = regexp.MustCompile(`in the background as (job:[a-z0-9]+)`)
	ofKind     = regexp.MustCompile(`the work tree ((?:red|blue)-[0-9a-f]{12})`)
	phaseSaid  = regexp.MustCompile(`Phase (\d)\.`)
)

// storyFlags are those of the session: every request is planned, edits are done unasked
// after that, and its model is asked in a wire format.
func storyFlags(wire, url string) app.Flags {
	return app.Flags{
		Allow: []string{"Bash", "TaskOutput", "TaskStop", "WorktreeMerge"},
		Settings: string(input(fields{
			"plan":        fields{"mode": "always"},
			"permissions": fields{"defaultMode": "acceptEdits"},
			"providers":   fields{"here": fields{"type": wire, "baseUrl": url}},
			"hooks": fields{
				"PreToolUse": []any{fields{"matcher": "Bash", "hooks": []any{
					fields{"type": "command", "if": "Bash(touch *)", "command": guardDog},
					fields{"type": "command", "if": "Bash(echo lineTaskStop *)", "command": "exit 0"},
				}}},
				"UserPromptSubmit": []any{fields{"hooks": []any{
					fields{"type": "command", "once": true, "command": hso("UserPromptSubmit", fields{"additionalContext": "Mind the dog."})},
				}}},
			},
		})),
	}
}

// command is a call of a command.
func command(id, line string, background bool) script.Call {
	return script.Call{ID: id, Tool: "Bash", Input: input(fields{"command": line, "run_in_background": background})}
}

// story is what the models of the session and of its agents say. It depends on what they
// read, so that a request that is made again gets the same answer.
func story(r script.Request) script.Reply {
	body, last := string(r.Body), strings.TrimSpace(r.Last)
	plan := func(id, text string) script.Reply {
		return script.Reply{Calls: []script.Call{numbered(id, "ExitPlanMode", fields{"plan": text})}}
	}
	switch {
	case !strings.Contains(body, "Write b."):
		return agentStory(body, r)
	case strings.Contains(last, "Make another plan"):
		return plan("p2", "1. Write b\n2. Rest")
	case strings.Contains(last, "Carry it out") && !strings.Contains(body, storyRest):
		return script.Reply{Calls: []script.Call{numbered("wb", "Write", fields{"file_path": "b", "content": "b"})}}
	case strings.Contains(last, "Write b."):
		return plan("p1", "1. Write b")
	case strings.Contains(last, storyRest):
		return plan("p3", "1. Write c")
	case !strings.Contains(body, "I agree to your plan"):
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}
	phase := 1
	for _, m := range phaseSaid.FindAllStringSubmatch(body, -1) {
		phase = max(phase, int(m[1][0]-'0')+1)
	}
	calls := phaseCalls(phase, body)
	if len(calls) == 0 {
		return script.Reply{Text: "Noted.", Stop: agent.StopEnd}
	}
	return script.Reply{Text: fmt.Sprintf("Phase %d.", phase), Calls: calls}
}

// phaseCalls are the calls that the session makes when its second plan is approved.
func phaseCalls(phase int, body string) []script.Call {
	switch phase {
	case 1:
		return []script.Call{
			canary, command(jobLeft, "sleep 60", true), command(jobQuick, "sleep 0.2; echo quick >> ledger", true),
			hand("three", fields{"prompt": "Part three.", "run_in_background": true}),
			hand("one", fields{"prompt": "Part one.", "isolation": "none"}),
			hand("two", fields{"prompt": "Part two.", "isolation": "process"}),
			hand("red", fields{"prompt": "Paint it red.", "subagent_type": "red"}),
			hand("blue", fields{"prompt": "Paint it blue.", "subagent_type": "blue"}),
		}
	case 2:
		return []script.Call{command(jobStop, "sleep 60", true)}
	case 3, 4:
		tool, in := "TaskOutput", fields{"block": false}
		if phase == 4 {
			tool, in = "TaskStop", fields{}
		}
		var calls []script.Call
		if all := handleSaid.FindAllStringSubmatch(body, -1); all != nil {
			in["task_id"] = all[len(all)-1][1]
			calls = append(calls, numbered("t"+tool, tool, in))
		}
		return append(calls, command("line"+tool, "echo line"+tool+" >> ledger", false))
	case 5, 6:
		var trees []string
		for _, m := range ofKind.FindAllStringSubmatch(body, -1) {
			if !slices.Contains(trees, m[1]) {
				trees = append(trees, m[1])
			}
		}
		if phase-5 < len(trees) {
			return []script.Call{numbered(fmt.Sprintf("m%d", phase), "WorktreeMerge", fields{"worktree": trees[phase-5]})}
		}
		return []script.Call{numbered(fmt.Sprintf("m%d", phase), "Bash", fields{"command": "false"})} // a failure is reported
	case 7:
		return []script.Call{numbered("wc", "Write", fields{"file_path": "c", "content": "c"})}
	}
	return nil
}

// agentStory is what the models of the agents say: each writes a line, or paints a file.
func agentStory(body string, r script.Request) script.Reply {
	for _, part := range []string{"one", "two", "three"} {
		switch {
		case !strings.Contains(body, "Part "+part+"."):
		case r.Step == 0:
			return script.Reply{Calls: []script.Call{command("w", "echo "+part+" >> ledger", false)}}
		default:
			return script.Reply{Text: part + " is done.", Stop: agent.StopEnd}
		}
	}
	for _, c := range colours {
		if strings.Contains(body, "Paint it "+c+".") && (r.Step == 0 || strings.Contains(r.Last, "outcome is unknown")) {
			return script.Reply{Calls: []script.Call{command(fmt.Sprint("w", r.Step), "echo "+c+" > "+c+".txt; cat local.conf", false)}}
		}
	}
	return script.Reply{Text: "It is " + r.Last, Stop: agent.StopEnd}
}

// git runs git in a folder.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=k@example.org", "GIT_COMMITTER_NAME=Kim", "GIT_COMMITTER_EMAIL=k@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// storyFiles makes the folder that the sessions begin with: a repository with a file that
// git ignores and that every tree gets, and one that is not committed.
func storyFiles(work string) error {
	var err error
	for name, text := range map[string]string{
		".gitignore": "local.conf\nledger\nb\nc\n", ".worktreeinclude": "local.conf\n", "local.conf": "set up here\n", "ledger": "",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "First"}} {
		if err == nil {
			_, err = git(work, args...)
		}
	}
	return errors.Join(err, os.WriteFile(filepath.Join(work, "mine.txt"), []byte("not committed\n"), 0o600))
}

// newStoryRun makes a run in a folder that begins with files, whose models are asked in a
// wire format.
func newStoryRun(dir, files, wire string) (*crashRun, error) {
	r, err := newModelRun(dir, story)
	if err != nil {
		return nil, err
	}
	r.ask, r.wire = true, wire
	kinds := filepath.Join(r.home(), "dure", "agents")
	err = errors.Join(os.CopyFS(r.work(), os.DirFS(files)), os.MkdirAll(kinds, 0o700))
	for _, c := range colours {
		err = errors.Join(err, os.WriteFile(filepath.Join(kinds, c+".md"), []byte("---\nname: "+c+"\ndescription: Paints.\nisolation: worktree\n---\nYou paint.\n"), 0o600))
	}
	return r, err
}

// storyDriver has the session of the crash history go on.
type storyDriver struct {
	state *transcript.State
	plans int  // that were proposed
	built bool // the second request is carried out
}

// decide is what is to become of the plan that waits for a decision.
func (d *storyDriver) decide() agent.Command {
	switch p := d.state.Plan; {
	case d.plans < 3 && p.Edits == 0:
		return agent.ChangePlan{Do: agent.PlanEdit, Step: 1, Text: fmt.Sprintf("Write b, plan %d", d.plans)}
	case d.plans == 1:
		return agent.DecidePlan{Verdict: agent.PlanAnother, Reason: "longer"}
	case d.plans == 3 && d.state.Turn.Open:
		return agent.Interrupt{} // the third is decided about when nothing waits with it
	}
	return agent.DecidePlan{Verdict: agent.PlanApproved}
}

// next is what is to be done after an event, as the log tells: nil = nothing for now.
func (d *storyDriver) next(e agent.Event, head int64) (c agent.Command, over bool) {
	state := d.state
	asked, _ := e.Body.(agent.ApprovalAsked)
	switch b := e.Body.(type) {
	case agent.PlanProposed:
		d.plans++
	case agent.CallFinished:
		d.built = d.built || b.Result.ID == "wc"
	}
	switch state.Apply(e); {
	case e.Seq < head:
		return nil, false
	case e.Seq == head && (state.Turn.Open || state.Unread || state.Waits(true)):
		return agent.Continue{}, false
	case strings.Contains(asked.Reason, "interrupted by a crash"): // a line is not to be written twice
		verdict := agent.Allow
		if strings.Contains(string(asked.Proposal.Call.Input), "ledger") {
			verdict = agent.Deny
		}
		return agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: verdict}}, false
	case state.Plan != nil && state.Plan.State == "":
		_, started := e.Body.(agent.TurnStarted) // with a plan that waited before
		switch e.Body.(type) {
		case agent.TurnEnded, agent.PlanChanged, agent.ApprovalAsked:
			return d.decide(), false
		}
		if e.Seq == head || started && len(state.Approvals) > 0 {
			return d.decide(), false
		}
		return nil, false
	case e.Seq > head && !rests(state):
		return nil, false
	case !state.Inputs["p1"]:
		return agent.Prompt{ID: "p1", Text: "Write b."}, false
	case !state.Inputs["p2"]:
		return agent.Prompt{ID: "p2", Text: storyRest}, false
	case !d.built || !rests(state):
		return nil, false
	case !state.Inputs["p3"]:
		return agent.Prompt{ID: "p3", Text: "And?"}, false
	}
	return nil, true
}

// followStory decides about plans, and does what is left to do each time the session waits
// for it, until nothing goes on but the job that outlasts it.
func (b *boundaries) followStory(ctx context.Context, s *client.Session) error {
	d := storyDriver{state: transcript.New()}
	return b.each(ctx, s, func(e agent.Event) (over bool, err error) {
		next, over := d.next(e, s.Info.Head)
		if next != nil {
			err = send(ctx, s, next)
		}
		return over, err
	})
}

// rests reports whether nothing goes on but the job that is left.
func rests(s *transcript.State) bool {
	for _, p := range s.Pending {
		if p.ID != jobLeft {
			return false
		}
	}
	return s.Turns > 0 && !s.Turn.Open && !s.Unread && !s.Waits(true)
}
