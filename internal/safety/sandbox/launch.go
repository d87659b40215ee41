package sandbox

import (
	"context"
	"os/exec"
	"time"
)

// Launch starts a program that the user has asked for and that goes on by itself, such as
// one that shows a page: not confined, away from the terminal, and not ended with this
// program. The error says that it could not be started, or that it has failed within
// grace. It is never for what a model asks for.
func Launch(ctx context.Context, argv, env []string, dir string, grace time.Duration) error {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it outlives the context
	cmd.Env, cmd.Dir = env, dir
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with that program, or with this one
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
