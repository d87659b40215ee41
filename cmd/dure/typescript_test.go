//go:build unix

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// typeScript is the folder of the client in TypeScript.
const typeScript = "../../sdk/typescript"

// clientScene is node that is to run a scene of testdata/typescript.
func clientScene(t *testing.T, w editorWorld, args ...string) *exec.Cmd {
	t.Helper()
	node := prooftest.Program(t, "node")
	client, err := filepath.Abs(typeScript)
	if err != nil {
		t.Fatal(err)
	}
	scenes, err := filepath.Abs("testdata/typescript/scenes.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		if a == "scenes" {
			args[i] = scenes
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), sceneTime)
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir = w.work
	cmd.Env = append(w.env, "CLIENT=file://"+filepath.Join(client, "control.mjs"), "DURE="+dureProgram(t))
	return cmd
}

func runScene(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// written is a reply that writes a file.
func written(id, path string) script.Reply {
	return script.Reply{Calls: []script.Call{{ID: id, Tool: "Write", Input: json.RawMessage(`{"file_path":"` + path + `","content":"x"}`)}}}
}

// The client in TypeScript drives the program, as a child and through a server.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	talk := []script.Reply{
		written("c1", "yes.txt"), {Text: "Written."}, written("c2", "no.txt"), {Text: "Not written."}, written("c3", "throws.txt"), {Text: "Neither."},
	}
	long := []script.Reply{{Text: strings.Repeat("On and on. ", 40_000), DelayMS: 1}}
	for name, replies := range map[string][]script.Reply{
		"child": talk, "asks": {written("c1", "a.txt"), {Text: "No."}, written("c2", "b.txt"), {Text: "No."}}, "slow": long, "killed": long, "others": nil, "last": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScene(t, clientScene(t, newEditorWorld(t, replies), "scenes", name))
		})
	}
	t.Run("server", func(t *testing.T) {
		const flag = "--experimental-websocket" // the sockets of node are no experiment since 22
		if out, err := clientScene(t, newEditorWorld(t, nil), flag, "-e", "").CombinedOutput(); err != nil {
			prooftest.Lacking(t, "node", string(out))
		}
		w := newEditorWorld(t, talk)
		p := serveFor(t, w)
		cmd := clientScene(t, w, flag, "scenes", "server")
		cmd.Env = append(cmd.Env, "SERVER="+p.at.URL, "TOKEN="+p.at.Token)
		runScene(t, cmd)
	})
	t.Run("example", func(t *testing.T) {
		w := newEditorWorld(t, []script.Reply{written("c1", "note.txt"), {Text: "I was not allowed to."}})
		example, err := filepath.Abs(filepath.Join(typeScript, "example.mjs"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := clientScene(t, w, example, dureProgram(t))
		if got, want := runScene(t, cmd), "asked: file-system__write\ndone: I was not allowed to.\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := os.Stat(filepath.Join(w.work, "note.txt")); err == nil {
			t.Error("what was denied is written")
		}
	})
	t.Run("no program", func(t *testing.T) {
		w := newEditorWorld(t, nil)
		example, err := filepath.Abs(filepath.Join(typeScript, "example.mjs"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := clientScene(t, w, example, filepath.Join(w.work, "none")).CombinedOutput()
		if said := string(out); err == nil || !strings.HasPrefix(said, "not-started: ") || !strings.Contains(said, "is dure installed?") || strings.Contains(said, " at ") {
			t.Errorf("%v, and it says: %s", err, said)
		}
	})
}

// A host in TypeScript that goes in the middle of a turn, killed or by its own exit, takes the
// program with it, and the command that runs.
func TestTypeScriptHostGoes(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "bash")
	for name, leave := range map[string]func(host *os.Process, in io.Closer) error{
		"it is killed":       func(host *os.Process, _ io.Closer) error { return host.Kill() },
		"it is told to go":   func(host *os.Process, _ io.Closer) error { return host.Signal(syscall.SIGTERM) },
		"it goes of its own": func(_ *os.Process, in io.Closer) error { return in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEditorWorld(t, []script.Reply{
				{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: json.RawMessage(`{"command":"exec 3>alive; echo up >&3; sleep 600"}`)}}},
				{Text: "never"},
			})
			alive := filepath.Join(w.work, "alive") // it ends with the last process that holds it
			if err := syscall.Mkfifo(alive, 0o600); err != nil {
				t.Fatal(err)
			}
			held, theirs, err := os.Pipe() // which the host and the program hold open
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close() // it is only read
			cmd := clientScene(t, w, "scenes", "lost")
			cmd.Stderr = theirs
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = theirs.Close() // it is the host's
			await := lifeOf(t, alive)
			await("up")
			if err := leave(cmd.Process, in); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // that it has ended is what counts
			if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if said, err := io.ReadAll(held); err != nil {
				t.Errorf("the program lives on: %v, %s", err, said)
			}
			await("over")
		})
	}
}
