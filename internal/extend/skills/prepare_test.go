package skills

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"dure/internal/base/frontmatter"
	"dure/internal/prooftest"
)

// prepared prepares a text; its commands answer with what they are.
func prepared(t *testing.T, body string, k Skill, r Request) (string, error) {
	t.Helper()
	s := New(Config{Workdir: t.TempDir(), BuiltIn: fstest.MapFS{"k/SKILL.md": {Data: []byte("---\nname: k\n---\n" + body)}}})
	k.Name = "k"
	return s.Prepare(t.Context(), k, r)
}

func echo(_ context.Context, c Command) (Output, error) {
	return Output{Text: "<" + c.Line + ">\n"}, nil
}

func TestPrepare(t *testing.T) {
	for _, tt := range []struct{ name, body, line, want string }{
		{"words", "Do $1 to $ARGUMENTS[0], {0}, $who: $ARGUMENTS.", `"a b" c`, `Do c to a b, a b, a b: "a b" c.`},
		{"appended", "Do it.", "x y", "Do it.\n\nARGUMENTS: x y"},
		{"a command", "It is !`git log $0`.", "a b", "It is <git log a>."},
		{"a command in an argument", "See $ARGUMENTS and !`ls $0`", "!`rm -rf x`", "See !`rm -rf x` and <ls '!`rm'>"},
		{"an argument in quotes", "!`grep \"$ARGUMENTS\" '$0' x`", `a"; $(rm) 'b`, `<grep "a\"; \$(rm) 'b" 'a; $(rm) '\''b' x>`},
		{"a block", "```!\nls\npwd\n```\nEnd $0", "q", "<ls\npwd>\nEnd q"},
		{"output is not read again", "!`echo '$0' !`", "$1 {0}", "<echo '$1' !>"},
		{"folders", "${CLAUDE_SKILL_DIR}/x ${OTHER} ${MORE}", "", "/s/x ${OTHER} more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := prepared(t, tt.body, Skill{Arguments: []string{"who"}}, Request{Arguments: tt.line, Run: echo, Vars: map[string]string{"MORE": "more", "CLAUDE_SKILL_DIR": "/s"}})
			if err != nil || got != tt.want {
				t.Errorf("%q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

// What comes of a command stands in its place, or takes the skill back.
func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		name   string
		out    Output
		body   string
		strict bool
		want   string
	}{
		{"fails", Output{Text: "no such file", Code: 2}, "!`ls x`", false, "[error: exit code 2: no such file]"},
		{"fails in .claude", Output{Text: "no such file", Code: 2}, "!`ls x`", true, "error: its command \"ls x\" ended with code 2: no such file"},
		{"finds nothing", Output{Code: 1}, "[!`grep a b`] !`grep a b`", true, "[!`grep a b`]"},
		{"takes long", Output{TimedOut: true}, "!`sleep 60`", false, "[timeout]"},
		{"takes long in .claude", Output{TimedOut: true}, "!`sleep 600`", true, "error: its command \"sleep 600\" took too long"},
		{"denied", Output{Denied: "a rule"}, "!`rm x`", false, "error: its command \"rm x\" was not allowed: a rule"},
		{"an argument in a substitution", Output{}, "!`echo $(cat $0)`", false, "error: its command \"echo $(cat $0)\" is not run: " + errPlace.Error()},
		{"too many", Output{}, strings.Repeat("!`true`\n", maxCommands+1), false, "error: its command \"true\" is one too many: 20 are the most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := prepared(t, tt.body, Skill{Strict: tt.strict}, Request{Arguments: "a", Run: func(context.Context, Command) (Output, error) { return tt.out, nil }})
			if err != nil {
				if Refused(err) == nil {
					t.Errorf("%v is no refusal", err)
				}
				got = "error: " + err.Error()
			}
			if got = strings.TrimSuffix(got, "\n\nARGUMENTS: a"); got != tt.want {
				t.Errorf("%q\nwant %q", got, tt.want)
			}
		})
	}
	if got, err := prepared(t, "a !`ls` b", Skill{}, Request{NotRun: Disabled}); err != nil || got != "a "+Disabled+" b" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := prepared(t, "!`ls`", Skill{}, Request{Run: func(context.Context, Command) (Output, error) { return Output{}, errors.New("the log") }}); err == nil || Refused(err) != nil {
		t.Errorf("%v", err)
	}
}

// Whatever a value says, a shell takes it for one piece of the word that it stands in.
func TestBindIsOneWord(t *testing.T) {
	shell := prooftest.Program(t, "sh")
	for _, value := range []string{
		"a b", "$(echo x)", "`echo x`", `"; echo x; "`, "'; echo x; '", `\`, `\\"`, "$HOME", "*", "~", "", "-n", "a\nb", "!x", "#x", "{a,b}", "한 글", `'"'"'`, "&& echo x", "\r",
	} {
		for _, frame := range []string{"printf '[%s]' $0", `printf '[%s]' "$0"`, "printf '[%s]' '$0'", `printf '[%s]' x"$0"y`, "printf '[%s]' {0}"} {
			line, used, err := bind(frame, frontmatter.Values{Line: quoteArgument(value)}, false)
			if err != nil || !used {
				t.Fatalf("%q in %q: %v", value, frame, err)
			}
			out, err := exec.Command(shell, "-c", line).Output()
			want := "[" + value + "]"
			if strings.Contains(frame, "x\"") {
				want = "[x" + value + "y]"
			}
			if err != nil || string(out) != want {
				t.Errorf("%q in %q became %q, which prints %q, %v", value, frame, line, out, err)
			}
		}
	}
}

// quoteArgument writes a value as one word of an argument line.
func quoteArgument(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func TestBindRefuses(t *testing.T) {
	for _, frame := range []string{
		"echo $(ls $0)", "echo `ls $0`", "cat <<E\n$0\nE", "echo ${X:-$0}", "echo hi # $0", "echo \"$(ls $0)\"", "echo $'a$0'", "echo 'open $0", `echo \` + "{0}x\\", "cat <(ls $0)",
	} {
		if line, _, err := bind(frame, frontmatter.Values{Line: "v"}, false); err == nil && strings.Contains(line, "v") {
			t.Errorf("%q became %q", frame, line)
		}
	}
	if _, _, err := bind("echo \ue0000\ue001 $0", frontmatter.Values{Line: "v"}, false); err == nil {
		t.Error("a mark is not refused")
	}
	for value, ok := range map[string]bool{"a-b.c": true, "a b": false, "$x": false, "": false} {
		if _, _, err := bind("git log $0", frontmatter.Values{Line: quoteArgument(value)}, true); (err == nil) != ok {
			t.Errorf("PowerShell, %q: %v", value, err)
		}
	}
}

// A value that is read once more, by a shell in the command, makes nothing else of it.
func TestBindInCommandsOfCommands(t *testing.T) {
	shell := prooftest.Program(t, "bash")
	for _, frame := range []string{"bash -c 'echo $0'", `bash -c "echo '$0'"`, "eval echo $0", "find . -exec sh -c 'echo $0' ';'", "nice bash -c 'echo $0'", "$0 canary"} {
		for _, value := range []string{"a;touch canary", "$(touch canary)", "`touch canary`", "' ; touch canary; '", "x > canary", "x\ntouch canary", "touch"} {
			line, _, err := bind(frame, frontmatter.Values{Line: quoteArgument(value)}, false)
			if err != nil {
				continue
			}
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir = t.TempDir()
			out, _ := cmd.CombinedOutput() // some have no meaning
			if _, err := os.Stat(filepath.Join(cmd.Dir, "canary")); err == nil {
				t.Errorf("%q in %q became %q, which has written; it prints %q", value, frame, line, out)
			}
		}
		if _, _, err := bind(frame, frontmatter.Values{Line: "a.txt"}, false); (err == nil) == strings.HasPrefix(frame, "$0") {
			t.Errorf("%q with a plain word: %v", frame, err)
		}
	}
}

func FuzzBind(f *testing.F) {
	f.Add("echo $0 \"$ARGUMENTS\" '{0}'", "a b")
	f.Add("echo \\$0 $(x $0)", "'\"")
	f.Fuzz(func(t *testing.T, frame, line string) {
		bare, _, err := bind(frame, frontmatter.Values{Line: "v"}, false)
		if err != nil {
			return
		}
		if got, _, err := bind(frame, frontmatter.Values{Line: line}, false); err == nil && !strings.ContainsAny(frame, "$\\{") && got != bare {
			t.Errorf("%q became %q", frame, got)
		}
	})
}

// Refused returns the refusal in the chain of an error, or nil.
func Refused(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return nil
}
