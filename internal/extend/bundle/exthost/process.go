package exthost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// input is what an executable reads, and what is posted to an address.
type input struct {
	Tool    string          `json:"tool"`
	Export  string          `json:"export"`
	Input   json.RawMessage `json:"input"`
	Context toolContext     `json:"context"`

	Credential *toldCredential `json:"credential,omitempty"` // of an executable
}

// A onceAnswer is an object that an executable may answer with to say that it has not
// done its work. Any other JSON is the answer itself.
type onceAnswer struct {
	Error *struct {
		Message, Name, Code, Suggestion, HelpURL string
	} `json:"error"`
}

// once runs an executable for one call: one JSON value in, one out.
func (h *Host) once(ctx context.Context, r Resource, export string, tc agent.ToolContext, c agent.Call, cred *Credential) (agent.Result, error) {
	var none agent.Result
	program, err := h.below(r.Entry)
	if err != nil {
		return none, err
	}
	if err := h.approved(r.Entry, program); err != nil {
		return none, err
	}
	in, err := json.Marshal(input{r.Name, export, c.Input, told(tc), cred.told()})
	if err != nil {
		return none, fmt.Errorf("writing the input: %w", err)
	}
	env := agent.CallEnvOf(ctx)
	dir := tc.Workdir
	if dir == "" {
		dir = h.c.Dir
	}
	out, errs := &held{most: h.c.Limits.Answer}, &tail{}
	exit, err := h.c.Box.Run(ctx, sandbox.Cmd{
		Argv: h.bounded(append([]string{program}, r.Args...)), Dir: dir, In: bytes.NewReader(append(in, '\n')), Out: out, Err: errs,
		Env:     append(append(h.c.Env[:len(h.c.Env):len(h.c.Env)], "DURE_IDEMPOTENCY_KEY="+env.Key), env.Vars...),
		Spawned: env.Spawned, Grant: h.c.Grant,
	})
	said := errs.String()
	if said != "" {
		said = "\n" + said
	}
	switch {
	case err != nil:
		return none, err
	case exit.Interrupted():
		return none, cause(ctx)
	case out.cut:
		return none, fmt.Errorf("it wrote more than %d bytes", out.most)
	case exit.Signal != "":
		return none, fmt.Errorf("it was ended by %s%s", exit.Signal, said)
	}
	answer := bytes.TrimSpace(out.b)
	if err := declared(answer); err != nil {
		return none, err
	}
	switch {
	case exit.Code != 0:
		return none, fmt.Errorf("it ended with exit code %d%s", exit.Code, said)
	case len(answer) == 0:
		return result(nil), nil
	case !json.Valid(answer):
		return none, fmt.Errorf("its output is no JSON: %.80q%s", answer, said)
	}
	return result(answer), nil
}

// cause is why a call was stopped.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Canceled
}

// declared returns the error that an answer declares.
func declared(answer []byte) error {
	var a onceAnswer
	if len(answer) == 0 || answer[0] != '{' || json.Unmarshal(answer, &a) != nil || a.Error == nil {
		return nil
	}
	t := &thrown{Message: a.Error.Message}
	t.Data.Name, t.Data.Code, t.Data.Suggestion, t.Data.HelpURL = a.Error.Name, a.Error.Code, a.Error.Suggestion, a.Error.HelpURL
	return t
}

// post asks an address.
func (h *Host) post(ctx context.Context, r Resource, export string, tc agent.ToolContext, c agent.Call, cred *Credential) (agent.Result, error) {
	body, err := json.Marshal(input{Tool: r.Name, Export: export, Input: c.Input, Context: told(tc)})
	if err != nil {
		return agent.Result{}, fmt.Errorf("writing the input: %w", err)
	}
	got, instead, err := h.signed(ctx, r, export, Request{URL: r.Entry, Key: agent.CallEnvOf(ctx).Key, Body: body}, cred)
	switch {
	case ctx.Err() != nil:
		return agent.Result{}, cause(ctx)
	case err != nil:
		return agent.Result{}, err
	case instead != nil:
		return *instead, nil
	}
	answer := bytes.TrimSpace(got.Body)
	if err := declared(answer); err != nil {
		return agent.Result{}, err
	}
	switch {
	case len(answer) > h.c.Limits.Answer:
		return agent.Result{}, fmt.Errorf("it answered with more than %d bytes", h.c.Limits.Answer)
	case got.Status < 200 || got.Status > 299:
		return agent.Result{}, fmt.Errorf("it answered with status %d: %.200q", got.Status, answer)
	case len(answer) == 0:
		return result(nil), nil
	case !json.Valid(answer):
		return agent.Result{}, fmt.Errorf("its answer is no JSON: %.80q", answer)
	}
	return result(answer), nil
}
