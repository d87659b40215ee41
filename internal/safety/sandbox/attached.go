package sandbox

import (
	"context"
	"os"
	"os/exec"
)

// Attached is a program that the user has chosen himself, such as his editor. It has
// his terminal and his rights, and is not confined.
type Attached struct {
	Argv []string // required
	Dir  string   // where it runs; "" = here
	Env  []string // nil = this process's

	In, Out, Err *os.File
}

// Attach runs a program on the terminal and waits for its end; it is killed when ctx
// ends. Nothing that a model says may lead here.
func Attach(ctx context.Context, a Attached) error {
	cmd := exec.CommandContext(ctx, a.Argv[0], a.Argv[1:]...)
	cmd.Dir, cmd.Env = a.Dir, a.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	return cmd.Run()
}
