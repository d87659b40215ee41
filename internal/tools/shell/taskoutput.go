package shell

import (
	"bytes"
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed taskoutput.md
var taskOutputText string

// The bounds of a look at a task.
const (
	pageBytes   = 30_000
	pageBudget  = 32_000 // characters of a result: a page and what is said of it
	defaultWait = 30 * time.Second
	maxWait     = 10 * time.Minute
	lookBack    = 4 << 10 // bytes in which a page looks for a place to begin or end
)

const taskOutputSchema = `{"type":"object","properties":{` +
	`"task_id":{"type":"string"},` +
	`"block":{"type":"boolean","description":"default true"},` +
	`"timeout":{"type":"integer","minimum":0,"maximum":600000,"description":"milliseconds, default 30000"},` +
	`"offset":{"type":"integer","minimum":0,"description":"bytes"}},` +
	`"required":["task_id"],"additionalProperties":false}`

type taskOutputInput struct {
	ID      string `json:"task_id"`
	Block   *bool  `json:"block"`
	Timeout *int64 `json:"timeout"`
	Offset  *int64 `json:"offset"`
}

func (in taskOutputInput) wait() time.Duration {
	switch {
	case in.Block != nil && !*in.Block:
		return 0
	case in.Timeout != nil:
		return limited(*in.Timeout)
	}
	return defaultWait
}

// taskAnswer is the structured answer.
type taskAnswer struct {
	TaskID     string     `json:"task_id"`
	Status     taskStatus `json:"status"`
	ExitCode   *int       `json:"exitCode,omitempty"`
	Offset     int64      `json:"offset"`     // where the page begins
	NextOffset int64      `json:"nextOffset"` // where the next one does
	Size       int64      `json:"size"`       // bytes printed so far
}

func (s *Shell) taskOutput() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "task__output", Description: kit.Describe(taskOutputText), Input: json.RawMessage(taskOutputSchema),
			Class: agent.Read, Group: "system", Risk: agent.RiskLow, Limit: maxWait + time.Minute, Budget: pageBudget,
			Aliases: map[string]string{"bash_id": "task_id", "shell_id": "task_id", "agentId": "task_id"},
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			_, err := kit.Decode[taskOutputInput](c)
			return agent.Effects{}, err
		},
		Does: func(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[taskOutputInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			j, handle := s.task(in.ID)
			if j == nil {
				return s.lookElsewhere(ctx, in, handle)
			}
			if err := await(ctx, j.done, in.wait()); err != nil {
				return agent.Result{}, kit.Refuse(agent.ErrAborted, "waiting for "+handle+" was cancelled; it goes on", "")
			}
			return s.look(j, in), nil
		},
	}
}

// await waits for done, for at most d. Only the context is an error.
func await(ctx context.Context, done <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// lookElsewhere asks those who look after other tasks.
func (s *Shell) lookElsewhere(ctx context.Context, in taskOutputInput, handle string) (agent.Result, error) {
	if strings.HasPrefix(handle, jobPrefix) {
		if s.Past != nil {
			if r, ok := s.Past(handle); ok {
				return pastResult(handle, r), nil
			}
		}
	}
	if s.Other != nil {
		if r, ok := s.Other(ctx, strings.TrimPrefix(handle, jobPrefix), in.wait()); ok {
			return r, nil
		}
	}
	return agent.Result{}, s.unknown(in.ID)
}

// pastResult shows an outcome as it was settled, as a whole.
func pastResult(handle string, past agent.Result) agent.Result {
	status, _ := outcome(past)
	if past.Error != nil && past.Error.Code == agent.ErrAborted {
		status = stopped
	}
	return agent.Result{
		Status: agent.StatusOK, Spill: past.Spill,
		Text:   fmt.Sprintf("%s: %s\n%s", handle, status, past.Text),
		Output: kit.Structured(taskAnswer{TaskID: handle, Status: status}),
	}
}

// look returns the next page of a job, and moves the place to go on from behind
// it if no other was asked for.
func (s *Shell) look(j *job, in taskOutputInput) agent.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := j.seen
	if in.Offset != nil {
		from = j.lineStart(*in.Offset)
	}
	page, at, next := j.page(from)
	if in.Offset == nil {
		j.seen = next
	}
	a := taskAnswer{TaskID: j.handle, Status: j.status, Offset: at, NextOffset: next, Size: j.out.Size()}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", j.handle, j.status)
	if j.status != running {
		a.ExitCode = &j.exit.Code
		fmt.Fprintf(&b, " after %s", j.exit.Duration.Round(time.Millisecond))
		if j.note != "" {
			fmt.Fprintf(&b, ": %s", j.note)
		}
	}
	if at > from {
		fmt.Fprintf(&b, "\n[%d bytes were not kept]", at-from)
	}
	b.WriteString("\n")
	b.Write(page)
	if len(page) > 0 && page[len(page)-1] != '\n' {
		b.WriteString("\n")
	}
	switch rest := a.Size - next; {
	case len(page) > 0 && next == at:
		b.WriteString("[a line that is not finished yet]")
	case rest > 0:
		fmt.Fprintf(&b, "[%d bytes more, from offset %d]", rest, next)
	case len(page) == 0:
		b.WriteString("[nothing new]")
	default:
		fmt.Fprintf(&b, "[that is all so far: %d bytes]", a.Size)
	}
	return agent.Result{Status: agent.StatusOK, Text: b.String(), Output: kit.Structured(a)}
}

// page returns what to show from an offset on, where that begins, which is later
// when bytes are gone, and where to go on. It ends with a line, so that the guard
// sees secrets as a whole. The unfinished last line of a job that runs is shown
// only when there is nothing else, and again when it has been finished.
func (j *job) page(from int64) (page []byte, at, next int64) {
	page, next = j.out.Page(from, pageBytes)
	at = next - int64(len(page))
	if len(page) == 0 || j.status != running && next >= j.out.Size() {
		return page, at, next
	}
	n := wholeLines(page)
	switch {
	case n > 0:
	case j.status == running && len(page) < pageBytes:
		return page, at, at
	default:
		n = lastPlace(page)
	}
	return page[:n], at, at + int64(n)
}

// wholeLines returns how many bytes of a page are lines that can be shown, 0 if
// none: the last one may go on, and so may what is between BEGIN and END lines,
// such as a key.
func wholeLines(page []byte) int {
	n := bytes.LastIndexAny(page, "\n\r") + 1
	if at := bytes.LastIndex(page[:n], []byte("-----BEGIN ")); at >= 0 && !bytes.Contains(page[at:n], []byte("-----END ")) {
		n = bytes.LastIndexAny(page[:at], "\n\r") + 1
	}
	return n
}

// lastPlace returns where to cut a long line: behind a character that stands in
// no secret, else between two characters.
func lastPlace(page []byte) int {
	back := max(0, len(page)-lookBack)
	if i := bytes.LastIndexAny(page[back:], " \t\"',;"); i >= 0 {
		return back + i + 1
	}
	for n := len(page); n > max(back, len(page)-utf8.UTFMax); n-- {
		if r, size := utf8.DecodeLastRune(page[:n]); r != utf8.RuneError || size != 1 {
			return n
		}
	}
	return len(page)
}

// lineStart returns the start of the line that has an offset, or a place before
// the offset where a long line can be cut.
func (j *job) lineStart(offset int64) int64 {
	offset = min(max(offset, 0), j.out.Size())
	begin := max(0, offset-lookBack)
	if offset == 0 {
		return 0
	}
	before, next := j.out.Page(begin, int(offset-begin))
	if next != offset {
		return offset // in a gap
	}
	if i := bytes.LastIndexAny(before, "\n\r"); i >= 0 {
		return begin + int64(i) + 1
	}
	if begin == 0 {
		return 0
	}
	return begin + int64(lastPlace(before))
}
