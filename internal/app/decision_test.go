package app

import (
	"encoding/json"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/app/eval"
	"dure/internal/safety/policy"
)

// newDecide returns what reads a command line and decides on it, by some rules of each
// kind, as it is done for every call of the shell.
func newDecide(tb testing.TB) func(command string) agent.Decision {
	tb.Helper()
	dir, err := filepath.Abs("/srv/project") // neither has to be there, and their lengths count
	if err != nil {
		tb.Fatal(err)
	}
	home, err := filepath.Abs("/home/user")
	if err != nil {
		tb.Fatal(err)
	}
	v := &eval.Evaluator{Dir: dir, Home: home}
	place, err := v.Place(dir, nil, home)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := place.Config(dir, home)
	cfg.Allow = []string{"Bash(go test *)", "Bash(npm run *)", "Bash(rg *)", "Bash(make *)", "Read(~/notes/**)"}
	cfg.Ask = []string{"Bash(git push *)", "Bash(npm publish *)"}
	cfg.Deny = []string{"Bash(rm -rf *)", "Bash(curl *)", "Read(//etc/shadow)", "Edit(.env)"}
	pol, err := policy.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	read := reader(home, "")
	input := json.RawMessage(`{"command":"…"}`)
	return func(command string) agent.Decision {
		return pol.Decide(agent.Proposal{
			Call: agent.Call{Tool: "bash__exec", Input: input}, Class: agent.Unsafe, Group: "system", Effects: read(command, dir),
		})
	}
}

// usualCommands are what models run all day.
var usualCommands = []string{
	"go test ./... 2>&1 | head -50",
	"git status && git diff --stat",
	"rg -n 'foo' src | wc -l",
	"npm run build",
	"cd src && go test ./... 2>&1 | tail -n 20",
	"git add -A && git commit -m 'Say what it does' && git push origin main",
	`grep -rn "TODO" --include='*.go' . | head -50`,
	`for f in a.txt b.txt; do wc -l "$f"; done`,
}

func BenchmarkDecision(b *testing.B) {
	decide := newDecide(b)
	for _, command := range usualCommands {
		b.Run(strings.ReplaceAll(command, "/", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decide(command)
			}
		})
	}
}

// A decision on a usual command, from its text to the verdict, takes no more than
// 10 KB.
func TestDecisionMemory(t *testing.T) {
	if raced {
		t.Skip("the race detector takes memory itself, and has less used again")
	}
	decide := newDecide(t)
	for _, command := range usualCommands {
		const runs = 50
		decide(command)
		least := uint64(math.MaxUint64) // what ended tests still do in the background adds to the others
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				decide(command)
			}
			runtime.ReadMemStats(&after)
			least = min(least, (after.TotalAlloc-before.TotalAlloc)/runs)
		}
		t.Logf("%5d bytes  %s", least, command)
		if least > 10_000 {
			t.Errorf("deciding on %q takes %d bytes", command, least)
		}
	}
}

// However a text of 10,000 characters is made, a decision on it takes some
// milliseconds at most. The bound leaves room for the race detector and a busy
// machine.
func TestDecisionLong(t *testing.T) {
	t.Parallel()
	const longest = time.Second
	decide := newDecide(t)
	var all []time.Duration
	for name, text := range longTexts() {
		best := time.Hour
		for range 10 {
			began := time.Now()
			decide(text)
			took := time.Since(began)
			all = append(all, took)
			if best = min(best, took); best <= longest {
				break // another time could only be shorter
			}
		}
		t.Logf("%9v  %s", best.Round(time.Microsecond), name)
		if best > longest {
			t.Errorf("%s: deciding takes %v", name, best)
		}
	}
	slices.Sort(all)
	t.Logf("of %d decisions: median %v, p99 %v", len(all), all[len(all)/2], all[len(all)*99/100])
}

// longTexts are texts of 10,000 characters, most of them meant to take long.
func longTexts() map[string]string {
	texts := map[string]string{}
	for name, piece := range map[string]string{
		"commands": "a;", "known commands": "ls;", "words": "a ", "files": "cat a b c d;", "brackets": "(", "ifs": "if ", "bangs": "! ", "backquotes": "`",
		"substitutions": "$(", "here": "a <<X\n", "pipes": "a|", "braces": "{a,b}", "spaced braces": "{a,b,c,d} ", "env": "env ", "eval": "eval ", "sudo": "sudo ",
		"assignments": "a=b;c=$a;", "capitals": "A=b;C=$A;", "exports": "export A=b C=$A;", "branches": "if a;then x=1;b=2;fi;",
		"values": "$a ", "quoted values": "\"$a$b\" ", "defaults": "${a:-b} ", "nested defaults": "${a:-", "arithmetic": "$((a+1)) ", "globs": "*.go ", "long globs": "a*b*c*d*e?[a-z] ",
		"removals": "rm a b;", "folders": "cd a;", "cd and rm": "cd a;rm b;", "redirections": ">a ", "reads": "a <b;", "functions": "f(){ a;};", "calls": "f(){ f;g;};g(){ f;};f;",
		"cases": "case a in b) c;; esac;", "loops": "for i in a b;do c $i;done;", "nested loops": "while a;do ", "subshells": "(a);", "groups": "{ a;};",
		"ands": "a&&", "ors": "a||", "background": "a& ", "comments": "a #b\n", "escapes": "\\a", "joined lines": "a\\\n", "quotes": "'a' ", "ansi": "$'\\x41' ",
		"find": "find . -exec rm {} \\; ", "sed": "sed -e s/a/b/ ", "awk": "awk '{system(\"rm x\")}' f;", "python": "python -c 'os.system(\"rm x\")';", "runs": "vim -c 'run a run b run c';",
		"git": "git -c alias.x='!rm x' x;", "pagers": "PAGER='rm x' git log;", "sh": "sh -c 'rm x';", "nested sh": "sh -c ", "streams": "a <(b) ", "tests": "[[ a = b ]]&&",
		"arrays": "a=(b c);", "declares": "declare -i a=1;", "traps": "trap 'rm x' EXIT;", "aliases": "alias a='rm x';", "unicode": "\u00e9\u00e9 ", "hidden": "a\u200bb ", "xargs": "xargs ",
	} {
		texts[name] = strings.Repeat(piece, 1+10_000/utf8.RuneCountInString(piece))
		for utf8.RuneCountInString(texts[name]) > 10_000 {
			texts[name] = texts[name][:len(texts[name])-len(piece)]
		}
	}
	for name, around := range map[string][2]string{
		"one string": {"echo '", "'"}, "code": {"python -c '", "'"}, "editor": {"vim -c '", "'"}, "line": {"sh -c '", "'"}, "mail": {"at now <<'E'\n", "\nE\n"}, "document": {"cat <<E\n", "\nE\n"},
	} {
		for inner, piece := range map[string]string{
			"runs": "run a ", "marks": "! ", "quotes": "\"\\", "calls": "system(\"a\");", "strings": "run(\"a\",\"b\",", "q": "q(", "ticks": "`a`", "dollars": "$(a)",
		} {
			texts[name+" with "+inner] = around[0] + strings.Repeat(piece, (10_000-len(around[0]+around[1]))/len(piece)) + around[1]
		}
	}
	return texts
}
