package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// The shape of the long session.
const (
	longID      = "long"
	longSize    = 100_000_000 // bytes of its log's files
	usualSize   = 60_000_000  // of one whose conversation was shortened as it grew
	turnSteps   = 20
	resultBytes = 30_000 // of most results
	promptBytes = 2_000
	answerBytes = 800
	spillEvery  = 10      // steps: the whole of such a result is kept as a blob
	spillBytes  = 300_000 // of it
	longerEvery = 25      // steps: such a result has a body that does not fit into its line
	longerBytes = 45_000
)

// filled says what a long session consists of.
type filled struct {
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
}

// fillChild writes a session of a size into the store of the program: turns of
// prompts, answers, calls and their results, and what surrounds them. With a third
// argument the conversation is shortened behind each turn.
func fillChild(args []string) (any, error) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, err
	}
	dir, err := dataDir(args[0])
	if err != nil {
		return nil, err
	}
	store, err := journal.NewLocal(journal.LocalOptions{Dir: dir, Durability: journal.DurabilityOS})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	w := writer{ctx: context.Background(), state: transcript.New(), shorten: len(args) > 2}
	if err := w.begin(store, args[0]); err != nil {
		return nil, err
	}
	for turn := 1; w.lease.Session().Bytes < size; turn++ {
		if err := w.turn(turn); err != nil {
			return nil, fmt.Errorf("writing turn %d: %w", turn, err)
		}
	}
	meta := journal.Meta{SessionInfo: w.state.Info()}
	out := filled{w.lease.Head(), w.lease.Session().Bytes}
	return out, errors.Join(w.lease.Release(w.ctx, journal.Parked, meta), store.Close())
}

// A writer writes a log as a session does, without its effects.
type writer struct {
	ctx    context.Context
	lease  journal.Lease
	state  *transcript.State
	system string // blobs
	tools  string
	step   int // of the turn
	made   int // steps in all

	shorten bool // behind each turn
}

func (w *writer) begin(store journal.Store, workdir string) error {
	if err := store.Create(w.ctx, journal.Meta{SessionInfo: agent.SessionInfo{ID: longID, Workdir: workdir, Model: scripted}}); err != nil {
		return err
	}
	var err error
	if w.lease, err = store.Acquire(w.ctx, longID, journal.Owner{ID: "bench"}); err != nil {
		return err
	}
	if w.system, err = w.blob([]agent.Section{{Name: "base", Text: prose(1, 4000)}}); err != nil {
		return err
	}
	if w.tools, err = w.blob([]agent.Spec{{Name: "bash__exec", Description: prose(2, 1000), Input: json.RawMessage(`{"type":"object"}`)}}); err != nil {
		return err
	}
	return w.store(false, agent.SessionOpened{Session: longID, Workdir: workdir, Model: scripted, Dialect: "claude", Lane: "main"})
}

func (w *writer) blob(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sha, _, err := w.lease.PutBlob(w.ctx, strings.NewReader(string(data)), 0)
	return sha, err
}

func (w *writer) store(seal bool, bodies ...agent.Body) error {
	b := journal.Batch{Seal: seal}
	for _, body := range bodies {
		b.Events = append(b.Events, agent.Event{Body: body})
	}
	events, err := w.lease.Append(w.ctx, b)
	for _, e := range events {
		w.state.Apply(e)
	}
	return err
}

// turn writes a turn: a prompt, steps with a call each, a last word.
func (w *writer) turn(n int) error {
	id := "tn_" + strconv.Itoa(n)
	w.step = 0
	err := w.store(false,
		agent.InputAdded{Input: "in_" + strconv.Itoa(n), Text: prose(n, promptBytes)},
		agent.TurnStarted{Turn: id},
	)
	for range turnSteps {
		if err == nil {
			err = w.work(id)
		}
	}
	if err == nil {
		err = w.store(false, w.request(id))
	}
	if err != nil {
		return err
	}
	last := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "Done with turn " + strconv.Itoa(n) + "."}}}
	err = w.store(false, agent.ModelAnswered{Turn: id, Step: w.step, Answer: answer(last, agent.StopEnd)})
	if err == nil {
		err = w.store(true, agent.TurnEnded{Turn: id, Reason: agent.EndDone, Steps: w.step, Usage: w.state.Turn.Usage})
	}
	if err != nil || !w.shorten {
		return err
	}
	_, hashes := w.state.Conversation()
	return w.store(false, agent.ContextCompacted{
		Trigger: "auto", Strategy: "summarize", Messages: len(hashes), Through: w.state.Head, Before: 150_000, After: 2_000,
		Head: []agent.Message{agent.UserText(prose(n, promptBytes*2))},
	})
}

func (w *writer) request(turn string) agent.ModelRequested {
	w.step++
	w.made++
	_, hashes := w.state.Conversation()
	r := agent.ModelRequested{Turn: turn, Step: w.step, Attempt: 1, Model: scripted, System: w.system, Tools: w.tools, Messages: len(hashes)}
	r.Hash = transcript.RequestHash(r, hashes)
	return r
}

// work writes a step: a request, an answer with a call, and its result.
func (w *writer) work(turn string) error {
	if err := w.store(false, w.request(turn)); err != nil {
		return err
	}
	id := "call_" + strconv.Itoa(w.made)
	key := loop.Key(longID, turn, w.step, id)
	input, err := json.Marshal(map[string]string{"command": "go test ./part" + id})
	if err != nil {
		return err
	}
	call := agent.Call{ID: id, Tool: "bash__exec", Input: input}
	m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
		{Type: agent.TextBlock, Text: prose(w.made, answerBytes)},
		{Type: agent.CallBlock, Call: &call},
	}}
	result, err := w.result(id)
	if err != nil {
		return err
	}
	return errors.Join(
		w.store(false,
			agent.ModelAnswered{Turn: turn, Step: w.step, Answer: answer(m, agent.StopCalls)},
			agent.CallDecided{
				Turn: turn, Step: w.step, Key: key, Proposal: agent.Proposal{Call: call},
				Decision: agent.Decision{Verdict: agent.Allow, By: "mode"},
			},
			agent.CallStarted{ID: id, Tool: call.Tool, Class: agent.Unsafe, Key: key},
		),
		w.store(false, agent.CallFinished{Result: result, Tool: call.Tool, Millis: 10}),
	)
}

func (w *writer) result(id string) (agent.Result, error) {
	size := resultBytes
	if w.made%longerEvery == 0 {
		size = longerBytes
	}
	r := agent.Result{ID: id, Status: agent.StatusOK, Text: prose(w.made, size)}
	if w.made%spillEvery != 0 {
		return r, nil
	}
	sha, n, err := w.lease.PutBlob(w.ctx, strings.NewReader(prose(-w.made, spillBytes)), 0)
	if err != nil {
		return r, err
	}
	r.Spill = &agent.Spill{Handle: "output:" + sha[:12], SHA256: sha, Bytes: n, Shown: len(r.Text)}
	return r, nil
}

func answer(m agent.Message, stop agent.StopReason) agent.Answer {
	return agent.Answer{Message: m, Stop: stop, Usage: agent.Usage{Input: 20, CacheRead: 180_000, Output: 300}}
}
