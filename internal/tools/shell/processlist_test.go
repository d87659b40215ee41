package shell

import (
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
)

func TestListed(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	list := []process{
		{1, 0, at(100), 0.04, 12 << 20, "init"},
		{20, 1, at(300), 99.96, 20 << 30, "make\tall\n -j" + strings.Repeat("8", 200)},
		{30, 20, at(300), 0, 3 << 10, "cc"},
		{40, 0, time.Time{}, 0, 0, "system"},
	}
	for i := range 250 {
		list = append(list, process{pid: 1000 + i, started: at(int64(200 - i)), command: "old"})
	}
	rows := strings.Split(listed(slices.Clone(list), "").Text, "\n")
	if len(rows) != 1+maxRows+1 || rows[len(rows)-1] != "[54 more, which are older: use a filter]" {
		t.Errorf("%d rows, the last %q", len(rows), rows[len(rows)-1])
	}
	when := at(300).Format(time.DateTime)
	want := "    PID    PPID STARTED                CPU   MEMORY  COMMAND\n" +
		"     30      20 " + when + "   0.0%    3 KiB  cc\n" +
		"     20       1 " + when + " 100.0%   20 GiB  make all  -j" + strings.Repeat("8", 147) + "…"
	if got := strings.Join(rows[:3], "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := listed(slices.Clone(list), "SYS"); !strings.HasSuffix(got.Text, "\n     40       0 -                        -        -  system") || string(got.Output) != `{"matching":1,"processes":254,"shown":1}` {
		t.Errorf("got %q, %s", got.Text, got.Output)
	}
}

func TestParsePS(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	got := parsePS(`    1     0 02-03:04:05   0.0  12000 /sbin/launchd
  501     1    01:02:03   1,5   3456 /bin/sh -c echo  two
  502   501       00:07  12.5      0 (cat)
  PID  PPID ELAPSED %CPU RSS COMMAND
  503   501       00:07  12.5      0
  -5   501       00:07  12.5      0 x
garbage
`, now)
	want := []process{
		{1, 0, now.Add(-51*time.Hour - 4*time.Minute - 5*time.Second), 0, 12000 << 10, "/sbin/launchd"},
		{501, 1, now.Add(-time.Hour - 2*time.Minute - 3*time.Second), 1.5, 3456 << 10, "/bin/sh -c echo  two"},
		{502, 501, now.Add(-7 * time.Second), 12.5, 0, "(cat)"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	needs(t, "ps")
	out, err := exec.Command("ps", "-xww", "-o", "pid=", "-o", "ppid=", "-o", "etime=", "-o", "%cpu=", "-o", "rss=", "-o", "command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(parsePS(string(out), time.Now()), func(p process) bool { return p.pid == os.Getpid() && p.ppid == os.Getppid() }) {
		t.Errorf("this process is not in\n%s", out)
	}
}

// needs skips a test on a machine without a program, unless DURE_REQUIRE names it.
func needs(t *testing.T, program string) {
	t.Helper()
	prooftest.Program(t, program)
}

func TestParseTasklist(t *testing.T) {
	got := parseTasklist("\"System Idle Process\",\"0\",\"Services\",\"0\",\"8 K\"\r\n" +
		"\"go.exe\",\"4321\",\"Console\",\"1\",\"12,345 K\"\r\n\"x.exe\",\"7\",\"Console\",\"1\",\"1.234 K\"\r\nINFO: none\r\n")
	want := []process{{pid: 4321, memory: 12345 << 10, command: "go.exe"}, {pid: 7, memory: 1234 << 10, command: "x.exe"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func FuzzParseLists(f *testing.F) {
	f.Add(" 1 0 02-03:04:05 0.0 12000 /sbin/launchd\n")
	f.Add("\"go.exe\",\"4321\",\"Console\",\"1\",\"12,345 K\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range append(parsePS(text, time.Unix(0, 0)), parseTasklist(text)...) {
			if p.pid < 1 || p.memory < 0 || p.started.After(time.Unix(0, 0)) {
				t.Errorf("row %+v", p)
			}
		}
	})
}
