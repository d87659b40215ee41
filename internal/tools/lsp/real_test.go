package lsp

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// A real server finds a real mistake, if there is one on this machine.
func TestRealServer(t *testing.T) {
	gopls := prooftest.Program(t, "gopls")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New(workspace.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { box.Close() })
	d := &desk{T: t, root: root}
	d.client = New(Config{Start: spawn(box), Root: root, FS: ws, Find: func(p string) string {
		return map[string]string{"gopls": gopls}[p]
	}})
	t.Cleanup(func() { d.client.Close() })
	d.put("go.mod", "module x\n\ngo 1.26\n")
	d.put("새 폴더/a.go", "package a\n\nvar X int = \"한글\" // wrong\n")
	start := time.Now()
	if r := d.ask("새 폴더/a.go"); !strings.Contains(r.Text, "gopls: 새 폴더/a.go:3:13: error: cannot use") {
		t.Errorf("%+v", r)
	}
	t.Logf("the first answer took %v", time.Since(start))
	d.edit = d.client.Wrap(nil, d.tool)
	got, took := d.write("pkg/b.go", "package a\n\nvar Y = Z\n")
	if got != "gopls: pkg/b.go:3:9: error: undefined: Z" || took > editWait {
		t.Errorf("after %v: %s", took, got)
	}
	t.Logf("a new file took %v", took)
	got, took = d.write("pkg/a.go", "package a\n\nvar X = \"한글\" + undefined1\n")
	if got != "gopls: pkg/a.go:3:16: error: undefined: undefined1" {
		t.Errorf("after %v: %s", took, got)
	}
	t.Logf("an edit took %v", took)
	start = time.Now()
	if err := d.client.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closing took %v", time.Since(start))
}

// spawn starts a process with its pipes.
func spawn(box *sandbox.Box) func(context.Context, []string, string) (io.ReadWriteCloser, error) {
	return func(ctx context.Context, argv []string, dir string) (io.ReadWriteCloser, error) {
		p, err := box.Start(ctx, sandbox.Cmd{Argv: argv, Dir: dir, Env: append(os.Environ(), "GOFLAGS=-mod=readonly"), PipeIn: true, PipeOut: true})
		if err != nil {
			return nil, err
		}
		return process{p.Out(), p.In(), p}, nil
	}
}

type process struct {
	io.Reader
	io.Writer
	p *sandbox.Process
}

func (p process) Close() error {
	_, err := p.p.Stop()
	return errors.Join(err, p.p.Out().Close())
}
