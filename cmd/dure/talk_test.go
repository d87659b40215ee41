package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// talk FILE PROGRAM ARG... runs a program in a terminal that shows no more than
// lines, as a person does who reads and types. The lines of the file:
//
//	see TEXT   waits until the program has shown it, since the last one
//	type TEXT  types a line
//	stop FILE  waits until the file is there, takes it away, and presses Ctrl-C
//
// The program has to end by itself, with success.
func talk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: talk file program [arg...]")
	}
	cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "DURE_HOME", "LANG", "DURE_MODEL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=dumb")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	ts.Check(err)
	defer f.Close()
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var screen []byte
	room, from := make([]byte, 4096), 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		word, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "type" {
			_, err := io.WriteString(f, what+"\n")
			ts.Check(err)
			continue
		}
		if word == "stop" {
			await(ts, cmd, ts.MkAbs(what))
			_, err := io.WriteString(f, "\x03")
			ts.Check(err)
			continue
		}
		for !bytes.Contains(screen[from:], []byte(what)) {
			n, err := f.Read(room)
			screen = append(screen, room[:n]...)
			if err != nil {
				ts.Fatalf("%q did not come:\n%s", what, screen)
			}
		}
		from += bytes.Index(screen[from:], []byte(what)) + len(what)
	}
	rest, _ := io.ReadAll(f) // ends with an error when the terminal is gone
	ts.Logf("%s%s", screen, rest)
	ts.Check(cmd.Wait())
}

// await waits until a program has made a file, and takes it away. The program is killed
// where that takes too long.
func await(ts *testscript.TestScript, cmd *exec.Cmd, file string) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	limit := time.After(runLimit)
	for os.Remove(file) != nil {
		select {
		case <-look.C:
		case <-limit:
			_ = cmd.Process.Kill()
			ts.Fatalf("%s was not made", file)
		}
	}
}
