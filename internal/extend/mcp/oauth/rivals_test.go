package oauth

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"dure/internal/base/keys"
)

// What a rival is told in its environment.
const (
	rivalDir    = "DURE_OAUTH_RIVAL"
	rivalApp    = "DURE_OAUTH_APP"
	rivalNow    = "DURE_OAUTH_NOW"
	rivalRounds = 20
)

// rival is a program that needs a token in each of several hours, and has a clock
// that is ahead by as much.
func rival(dir string) {
	fail := func(err any) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var app App
	if err := json.Unmarshal([]byte(os.Getenv(rivalApp)), &app); err != nil {
		fail(err)
	}
	now, err := time.Parse(time.RFC3339, os.Getenv(rivalNow))
	if err != nil {
		fail(err)
	}
	d, err := New(Config{Dir: dir, Keys: keys.Store{Path: filepath.Join(dir, "credentials.json")}, Now: func() time.Time { return now }})
	if err != nil {
		fail(err)
	}
	defer d.Close()
	var beside sync.WaitGroup
	for range rivalRounds {
		now = now.Add(2 * time.Hour)
		for range 2 {
			beside.Go(func() {
				if r := d.Token(d.ctx, Request{App: app}); r.Ready == nil {
					fail(fmt.Sprintf("no token: %+v, %v", r.Required, r.Error))
				}
			})
		}
		beside.Wait()
	}
}

// Eight programs use one grant at once, with a server that takes a refresh token
// once and forgets the whole grant when one comes twice. Nobody has to sign in
// again.
func TestRivals(t *testing.T) {
	t.Parallel()
	const programs = 8
	w := newWorld(t)
	dir := t.TempDir()
	d, _ := desk(t, w, dir)
	signIn(t, d, Request{App: w.app()})
	app, err := json.Marshal(w.app())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range programs {
		all.Go(func() {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
			c.Env = append(os.Environ(), rivalDir+"="+dir, rivalApp+"="+string(app), rivalNow+"="+w.clock().UTC().Format(time.RFC3339))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("program %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	if w.stolen != 0 || w.logins != 1 {
		t.Errorf("%d refresh tokens came twice, %d sign-ins", w.stolen, w.logins)
	}
	// In each hour the first one renews, and the others take what it got.
	if w.renewals < 1 || w.renewals > rivalRounds {
		t.Errorf("%d renewals for %d hours", w.renewals, rivalRounds)
	}
	t.Logf("%d renewals for %d programs that each needed a token in %d hours", w.renewals, programs, rivalRounds)
}
