package lsp

import (
	"context"
	"io"
	"slices"

	"dure/internal/safety/sandbox"
)

// quietly keeps a language server from reaching out for what a repository names:
// other toolchains, modules, crates.
var quietly = []string{"GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOVCS=*:off", "CARGO_NET_OFFLINE=true"}

// Starter returns what starts language servers in a box, see [Config.Start].
func Starter(box *sandbox.Box, env []string) func(context.Context, []string, string) (io.ReadWriteCloser, error) {
	env = append(slices.Clone(env), quietly...)
	return func(ctx context.Context, argv []string, dir string) (io.ReadWriteCloser, error) {
		p, err := box.Start(ctx, sandbox.Cmd{Argv: argv, Dir: dir, Env: env, PipeIn: true, PipeOut: true})
		if err != nil {
			return nil, err
		}
		return p.Pipes(), nil
	}
}
