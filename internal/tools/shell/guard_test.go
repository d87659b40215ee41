//go:build unix

package shell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/guard"
)

// Behind the guard the whole output of a job is in a blob, and a page that is
// looked at passes uncut, without secrets and terminal sequences.
func TestJobsBehindTheGuard(t *testing.T) {
	blob := make(chan []byte, 1)
	g := guard.New(guard.Config{PutBlob: func(_ context.Context, r io.Reader) (string, int64, error) {
		b, err := io.ReadAll(r)
		blob <- b
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:]), int64(len(b)), err
	}})
	type outcome struct {
		r   agent.Result
		err error
	}
	settled := make(chan outcome, 1)
	var specs []agent.Spec
	r := newRig(t, Config{Settle: func(ctx context.Context, s agent.Settlement) error {
		res, err := g.Check(ctx, specs[0], agent.Call{}, s.Result)
		settled <- outcome{res, err}
		return err
	}})
	for _, tool := range r.Tools() {
		specs = append(specs, tool.Spec())
	}

	h := r.begin("yes 'a line of text' | head -n 100000")
	o, want := <-settled, bytes.Repeat([]byte("a line of text\n"), 100_000)
	if got := <-blob; o.err != nil || o.r.Spill == nil || o.r.Spill.Bytes != int64(len(want)) || !bytes.Equal(got, want) {
		t.Errorf("settled %+v, %v; the blob has %d bytes", o.r.Spill, o.err, len(got))
	}
	page := r.call("task__output", in{"task_id": h})
	checked, err := g.Check(t.Context(), specs[2], agent.Call{}, page)
	if err != nil || checked.Text != page.Text || checked.Spill != nil || len(page.Text) < pageBytes-100 {
		t.Errorf("a page of %d bytes became one of %d, %v", len(page.Text), len(checked.Text), err)
	}

	secret := "ghp_" + strings.Repeat("A1b2", 9)
	pty := r.call("bash__exec", in{"command": "printf '\\033[31mred\\033[0m token " + secret + "\\n'", "run_in_background": true, "pty": true})
	if o := <-settled; o.err != nil || o.r.Failed() {
		t.Errorf("settled %+v, %v", o.r, o.err)
	}
	checked, err = g.Check(t.Context(), specs[2], agent.Call{}, r.call("task__output", in{"task_id": pty.Handle}))
	if err != nil || strings.Contains(checked.Text, secret) || !strings.Contains(checked.Text, "\nred token ") || strings.Contains(checked.Text, "\x1b") {
		t.Errorf("the model reads %q, %v", checked.Text, err)
	}
}
