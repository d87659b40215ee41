package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
)

// A session that cannot be opened in another folder goes on where it was.
func TestMoveThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, there := newFake(), newFake()
		there.refuse = &agent.Problem{Code: agent.ProblemMissing, Message: "that folder is not to be had"}
		back := 0
		dir := t.TempDir()
		g := startRig(t, f, rigOptions{dumb: true, move: func(context.Context, string, []string) (Place, error) {
			return Place{Client: there.client(), Enter: func() {}, Back: func() { back++ }}, nil
		}})
		g.typing("/cd " + dir + "\n")
		if there.opened.Workdir != dir || back != 1 {
			t.Errorf("opened in %q, and taken back %d times", there.opened.Workdir, back)
		}
		if f.opened.Session != "s1" || f.opened.Workdir != "/repo" {
			t.Errorf("then opened as %+v", f.opened)
		}
		g.typing("go on\n")
		g.started()
		g.emit(ended(agent.EndDone))
		if got := f.commands(); len(got) != 1 || !strings.Contains(got[0], "go on") || !strings.Contains(g.vt.String(), "that folder is not to be had") {
			t.Errorf("sent %q; on the screen\n%s", got, g.vt)
		}
		_ = g.end()
	})
}
