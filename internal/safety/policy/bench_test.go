package policy

import (
	"fmt"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/safety/shell"
)

// lines returns a proposal for a command line in /w.
func lines(command string) agent.Proposal {
	return agent.Proposal{
		Call: agent.Call{Tool: shellTool}, Class: agent.Unsafe, Group: "system",
		Effects: shell.Read(command, shell.Options{Dir: "/w", Home: "/home/u"}),
	}
}

// manyRules returns a configuration with n rules of the usual kinds.
func manyRules(n int) Config {
	c := plainConfig()
	for i := range n {
		verdict := []agent.Verdict{agent.Allow, agent.Allow, agent.AskUser, agent.Deny}[i%4]
		text := fmt.Sprintf([]string{"Bash(tool%d run *)", "mcp__server%d__*", "Bash(git *sub%d*)", "Read(~/private%d/**)", "WebFetch(domain:h%d.example)"}[i%5], i)
		c.Rules = append(c.Rules, Rule{Text: text, Verdict: verdict, Source: Source{Layer: User, File: "settings.json", Line: i + 1}})
	}
	return c
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		for name, command := range map[string]string{
			"allow": "cd src && npm test 2>&1 | tail -n 5", "ask": "git add -A && git commit -m 'x' && git push",
		} {
			c := manyRules(n)
			c.Allow = []string{"Bash(npm test *)", "Bash(git add *)"}
			p, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			call := lines(command)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Before(call).Verdict == agent.Pass {
						p.After(call, agent.Decision{})
					}
				}
			})
		}
	}
}

// Rules are made ready once: ten thousand of them cost a decision some hundred
// microseconds. The bound leaves room for the race detector and a busy machine.
func TestManyRules(t *testing.T) {
	c := manyRules(10_000)
	c.Allow = []string{"Bash(npm test *)"}
	p := mustNew(t, c)
	call := lines("npm test && git status")
	best := time.Hour
	for range 20 {
		start := time.Now()
		d := p.Decide(call)
		best = min(best, time.Since(start))
		if d.Verdict != agent.Allow || d.Rule != "Bash(npm test *)" {
			t.Fatalf("%+v", d)
		}
	}
	if best > 200*time.Millisecond {
		t.Errorf("a decision takes %v", best)
	}
}
