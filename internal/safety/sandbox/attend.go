package sandbox

import (
	"context"
	"os"
	"os/exec"
)

// Attend runs a program that the user has asked for and works with himself, such as
// an editor: on his terminal, with his environment, not confined, until it ends. The
// error also says when it failed. Interrupts of the terminal reach it and not us, if
// the caller takes them. It is never for what a model asks for.
func Attend(ctx context.Context, argv, env []string, dir string, in, out, errs *os.File) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return cmd.Run()
}
