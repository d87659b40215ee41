package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A process that has left its group still dies with the program: it carries the
// mark of its box.
func TestNothingSurvivesByLeavingItsGroup(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), `DURE_TEST_PARENT=setsid sh -c 'echo $$; sleep 600; true' & wait`)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pgid, err := strconv.Atoi(strings.TrimSpace(line)) // the head of a session of its own
	if err != nil {
		t.Fatal(err)
	}
	if !groupAlive(pgid) {
		t.Fatal("the process does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !groupGone(pgid) {
		t.Error("the process has survived")
	}
}
