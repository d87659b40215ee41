package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
)

// Lines about what goes on beside a session are shown between what is typed, as they may be
// shown, and what is typed stays.
func TestToldBesideASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, lines := newFake(), make(chan string)
		g := startRig(t, f, rigOptions{cols: 80, rows: 24, lang: "en", told: lines})
		g.typing("half a ")
		lines <- "schedule s1: all is well\x1b[2J"
		synctest.Wait()
		g.typing("sentence\r")
		g.started()
		g.emit(ended(agent.EndDone))
		g.shot("told")
		if err := g.end(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(f.commands(), "\n"); got != `prompt {"text":"half a sentence"}` {
			t.Error(got)
		}
		if !strings.Contains(g.shots.String(), "schedule s1: all is well␛[2J") {
			t.Error(g.shots.String())
		}
	})
}

// Somebody who has typed nothing for a while is told that a question waits and that a
// turn has ended; somebody who is there is not, and nobody is told of their own Ctrl-C.
func TestNotices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lang   string
		away   bool
		events []agent.Body
		want   []string
	}{
		{"done while away", "en", true, []agent.Body{said("Done."), ended(agent.EndDone)}, []string{"dure: repo: done"}},
		{"done while here", "en", false, []agent.Body{said("Done."), ended(agent.EndDone)}, nil},
		{"failed", "ko", true, []agent.Body{ended(agent.EndFailed)}, []string{"dure: repo: 턴이 제대로 끝나지 않았습니다"}},
		{"interrupted", "en", true, []agent.Body{ended(agent.EndInterrupted)}, nil},
		{"question", "en", true, []agent.Body{agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}}}, []string{"dure: repo: a question waits (Bash)"}},
		{"question while here", "en", false, []agent.Body{agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown []string
				f := newFake()
				f.emit(agent.SessionOpened{Workdir: "/repo"})
				f.info.Head = f.seq
				g := startRig(t, f, rigOptions{lang: tt.lang, notices: Notices{Kind: "system", System: func(_ context.Context, title, text string) error {
					shown = append(shown, title+": "+text)
					return nil
				}}})
				g.typing("do it\r")
				g.started()
				if tt.away {
					<-time.After(awayAfter + time.Second)
				}
				g.emit(tt.events...)
				if !slices.Equal(shown, tt.want) {
					t.Errorf("shown %q, want %q", shown, tt.want)
				}
				_ = g.end() // with a turn under way or not
			})
		})
	}
}

func TestNoticeSequences(t *testing.T) {
	const said = "hostile\x1b]0;x\a\nline; 2"
	for _, tt := range []struct {
		n    Notices
		want string
	}{
		{Notices{}, ""},
		{Notices{Kind: "bell"}, "\a"},
		{Notices{Kind: "terminal"}, "\x1b]9;dure: SAID\a"},
		{Notices{Kind: "terminal", Urgent: true}, "\x1b]777;notify;dure;SAID\a"},
		{Notices{Kind: "terminal", Tmux: true}, "\x1bPtmux;\x1b\x1b]9;dure: SAID\a\x1b\\"},
		{Notices{Kind: "system"}, ""},
	} {
		var b bytes.Buffer
		if err := tt.n.Show(t.Context(), &b, said); err != nil {
			t.Fatal(err)
		}
		clean := bytes.ReplaceAll([]byte(tt.want), []byte("SAID"), []byte("hostile␛]0;x␇ line; 2"))
		if d := cmp.Diff(string(clean), b.String()); d != "" {
			t.Errorf("%+v:\n%s", tt.n, d)
		}
	}
}

func TestPaletteFilter(t *testing.T) {
	all := []query.PaletteEntry{
		{Kind: "command", Name: "review", Use: "dure review"},
		{Kind: "skill", Name: "design-review", Description: "Review a design"},
		{Kind: "link", Name: "docs", Description: "The reviews"},
		{Kind: "snippet", Name: "reply", Use: "dure snippet use reply"},
	}
	for filter, want := range map[string][]string{
		"":              {"review", "design-review", "docs", "reply"},
		"review":        {"review", "design-review", "docs"},
		"revew":         {"review"},
		"DESIGN review": {"design-review"},
		"rep":           {"reply"},
		"nothing":       nil,
	} {
		var got []string
		for _, e := range filtered(slices.Clone(all), filter) {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", filter, got, want)
		}
	}
}

// What a hook has for the terminal is written there, but for what may not go there. A
// terminal that takes nothing is told of once.
func TestHooksRingTheTerminal(t *testing.T) {
	ran := agent.HookRan{Event: "Stop", Hook: "command x", Outcome: agent.HookPassed, Terminal: "\a\x1b]52;c;eA==\a"}
	for _, dumb := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.emit(agent.SessionOpened{Workdir: "/repo"}, ran) // long ago
			f.info.Head = f.seq
			g := startRig(t, f, rigOptions{dumb: dumb})
			g.emit(ran, ran)
			written, notes := []string{`control '\a'`, `control '\a'`}, 0
			if dumb {
				written, notes = nil, 1
			}
			if !slices.Equal(g.vt.wrong, written) || strings.Count(g.vt.String(), "something for the terminal") != notes {
				t.Errorf("dumb %v: written %q, want %q; on the screen\n%s", dumb, g.vt.wrong, written, g.vt)
			}
			_ = g.end()
		})
	}
}
