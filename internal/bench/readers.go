package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/remote"
)

const (
	idleReaders = 1000 // of one session, that nothing is sent to
	batches     = 20   // of events whose way to a reader is measured
	batchEvents = 100  // in each
	serverToken = "a-token-of-the-benchmarks"
)

// served measures what dure serve costs those who read from it.
func served(b *bench) ([]Figure, error) {
	if err := needFiles(4 * idleReaders); err != nil {
		return nil, err
	}
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	s, err := b.serving(home)
	if err != nil {
		return nil, err
	}
	figures, err := s.figures(b.ctx)
	return figures, errors.Join(err, s.close())
}

// serving is dure serve as a process of its own, with one session.
type serving struct {
	cmd     *exec.Cmd
	remote  *remote.Remote
	session *client.Session
}

// serving starts a server. Its log does not wait for the disk: what is measured is the way
// of an event that is in the log.
func (b *bench) serving(home string) (*serving, error) {
	cmd := exec.CommandContext(b.ctx, b.binary, "serve", "--json")
	cmd.Dir = filepath.Join(home, "work")
	cmd.Env = append(environ(home, nowhere), "DURE_SERVE_TOKEN="+serverToken, "DURE_DURABILITY=os", "DURE_MODEL="+scripted)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	s := &serving{cmd: cmd}
	if err := s.open(b.ctx, out); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		return nil, fmt.Errorf("a server: %w\n%s", err, errs.String())
	}
	return s, nil
}

// open reads where the server is, and opens a session there.
func (s *serving) open(ctx context.Context, out io.Reader) error {
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return err
	}
	var at struct{ URL string }
	if err := json.Unmarshal(line, &at); err != nil {
		return err
	}
	if s.remote, err = remote.New(remote.Config{URL: at.URL, Token: serverToken}); err != nil {
		return err
	}
	s.session, err = client.New(s.remote).Open(ctx, agent.Open{})
	return err
}

// close ends the server, and waits for that.
func (s *serving) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	err := s.remote.Shutdown(ctx)
	kill := time.AfterFunc(runLimit, func() { _ = s.cmd.Process.Kill() }) // it may have ended
	defer kill.Stop()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("ending the server: %w", err)
	}
	_ = s.cmd.Wait() // it was interrupted
	return err
}

func (s *serving) figures(ctx context.Context) ([]Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	ways, err := s.ways(ctx)
	if err != nil {
		return nil, err
	}
	usual, most := spreadOf(ways.half), spreadOf(ways.most)
	before, known, err := resident(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	after, err := s.crowd(ctx)
	if err != nil {
		return nil, err
	}
	figures := []Figure{
		{What: "an event, from the log to a reader", Unit: "ms", Aim: 2, Spread: usual},
		{What: "99 of 100 within, in the quietest hundred", Unit: "ms", Aim: 2, Spread: Spread{most.Min, most.Min, most.Max}},
	}
	if known {
		figures = append(figures,
			Figure{What: "peak before there are readers", Unit: "MB", Spread: exactly(before)},
			Figure{What: "peak with 1,000 idle readers", Unit: "MB", Aim: 100, Spread: exactly(after)},
		)
	}
	return figures, nil
}

// ways are how long events take to a reader, in milliseconds: half of each batch, and 99 of
// 100, within that.
type ways struct{ half, most []float64 }

// ways has a reader read events as they are stored, one after the other.
func (s *serving) ways(ctx context.Context) (ways, error) {
	var out ways
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var sent error
	came := make(chan struct{})
	all.Go(func() {
		for i := range batches*batchEvents + 1 { // the first one shows that the reader reads
			if sent = s.session.Send(ctx, agent.Change{Title: "title " + strconv.Itoa(i)}); sent != nil {
				cancel()
				return
			}
			select {
			case <-came:
			case <-ctx.Done():
				return
			}
		}
	})
	defer all.Wait()
	defer cancel()
	var batch []float64
	begun := false
	for e, err := range s.session.Events(ctx, s.session.Info.Head) {
		took := time.Since(e.Time).Seconds() * 1000
		if err != nil {
			return out, err
		}
		if _, ok := e.Body.(agent.SettingsChanged); !ok {
			continue
		}
		select {
		case came <- struct{}{}:
		case <-ctx.Done():
			return out, context.Cause(ctx)
		}
		if !begun {
			begun = true
			continue
		}
		if batch = append(batch, took); len(batch) < batchEvents {
			continue
		}
		slices.Sort(batch)
		out.half = append(out.half, batch[batchEvents/2])
		out.most = append(out.most, batch[batchEvents*99/100-1])
		if batch = batch[:0]; len(out.half) == batches {
			return out, nil
		}
	}
	all.Wait()
	return out, errors.Join(errors.New("the events end before all have come"), sent)
}

// crowd returns what the server has taken at most once many read that nothing is sent to, in MB.
func (s *serving) crowd(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	info, err := client.Query[agent.SessionInfo](ctx, client.New(s.remote), agent.FindSession{Name: s.session.Info.ID})
	if err != nil {
		return 0, err
	}
	reads := make(chan error, idleReaders)
	for range idleReaders {
		all.Go(func() {
			once := sync.OnceFunc(func() { reads <- nil })
			for _, err := range client.New(s.remote).Attach(info.ID).Events(ctx, info.Head-1) {
				if err != nil {
					reads <- err
					return
				}
				once()
			}
		})
	}
	for range idleReaders {
		select {
		case err := <-reads:
			if err != nil {
				return 0, fmt.Errorf("a reader: %w", err)
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	mb, _, err := resident(s.cmd.Process.Pid)
	return mb, err
}

// resident returns what a process had in memory at most, in MB; known says that the system tells.
func resident(pid int) (mb float64, known bool, err error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb * 1024 / 1e6, err == nil, err
		}
	}
	return 0, false, err
}
