package programs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// Whatever the arguments are: it ends soon, says the same again, and never calls
// harmless what it cannot read or what runs something.
func FuzzLook(f *testing.F) {
	for _, line := range []string{
		"find . -exec rm {} ;", "sed -n s/a/b/w out", "git -c a=b log --outp=x", "awk {print|\"sh\"} a", "tar xzf a --to-com=sh",
		"xargs -I{} sh -c {}", "cp -t d a b", "curl -o a https://u@h:1/{a,b}", "env A=b -- sh -c x", "docker run -v /:/x i c",
		"rm -rf $X/*", "sed 1!{a\\\nb\n}", "ssh -oProxyCommand=x h", "awk /[/]/{getline<\"f\"}", "parallel a ::: b", "-- -- --",
	} {
		f.Add(line, uint8(0))
		f.Add(line, uint8(3))
	}
	f.Fuzz(func(t *testing.T, line string, unknown uint8) {
		if len(line) > 10_000 {
			return
		}
		var c Call
		for i, s := range strings.Split(line, " ") {
			known := unknown == 0 || i != int(unknown)
			c.Args = append(c.Args, Word{Text: s, Known: known, One: !known && unknown%2 == 0})
		}
		start := time.Now()
		use := Look(c)
		if d := time.Since(start); d > 30*time.Second {
			t.Fatalf("it took %v", d)
		}
		if again := Look(c); !reflect.DeepEqual(use, again) {
			t.Fatalf("%+v, and then %+v", use, again)
		}
		check(t, use)
	})
}

// check holds what every Use promises.
func check(t *testing.T, u Use) {
	t.Helper()
	doubt := u.Flagged != "" || u.Unreadable != "" || u.Destructive != "" || len(u.Hosts)+len(u.Runs)+len(u.Scripts) > 0
	if u.Kind != agent.CommandOther && doubt {
		t.Errorf("it has a kind: %+v", u)
	}
	if u.Kind == agent.CommandReads && len(u.Writes)+len(u.Removes) > 0 {
		t.Errorf("it reads, and writes: %+v", u)
	}
	if u.Transparent && (len(u.Runs) == 0 || u.Flagged != "" || u.Unreadable != "") {
		t.Errorf("it is transparent: %+v", u)
	}
	for _, s := range u.Scripts {
		if !s.Known && u.Unreadable == "" {
			t.Errorf("what it runs is not known: %+v", u)
		}
	}
}
