package shell

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed processlist.md
var processListText string

// The bounds of the list of processes.
const (
	maxRows      = 200
	maxCommand   = 160    // characters of a command with its arguments
	listedBudget = 12_000 // characters of a result
)

const processListSchema = `{"type":"object","properties":{"filter":{"type":"string","maxLength":200}},"additionalProperties":false}`

type processListInput struct {
	Filter string `json:"filter"`
}

// A process is a row of the list. What the system does not tell is zero.
type process struct {
	pid, ppid int
	started   time.Time
	cpu       float64 // percent of one processor, since its start
	memory    int64   // bytes that are resident
	command   string
}

func (s *Shell) processList() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "process__list", Description: kit.Describe(processListText), Input: json.RawMessage(processListSchema),
			Class: agent.Read, Group: "system", Risk: agent.RiskLow, Limit: time.Minute, Budget: listedBudget,
		},
		// The arguments of others' commands are no part of the workspace, and have
		// passwords among them.
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			_, err := kit.Decode[processListInput](c)
			if err != nil {
				return agent.Effects{}, err
			}
			e := agent.Effects{Sensitive: true}
			if listCommand != nil {
				e.Runs = [][]string{listCommand}
			}
			return e, nil
		},
		Does: func(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[processListInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			list, err := s.processes(ctx)
			if err != nil {
				return agent.Result{}, err
			}
			return listed(list, in.Filter), nil
		},
	}
}

// listed makes a table of the processes that the filter keeps.
func listed(list []process, filter string) agent.Result {
	all := len(list)
	list = slices.DeleteFunc(list, func(p process) bool {
		return !strings.Contains(strings.ToLower(p.command), strings.ToLower(filter))
	})
	slices.SortFunc(list, func(a, b process) int {
		if d := b.started.Compare(a.started); d != 0 {
			return d
		}
		return b.pid - a.pid
	})
	found := len(list)
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %7s %-19s %6s %8s  %s\n", "PID", "PPID", "STARTED", "CPU", "MEMORY", "COMMAND")
	for _, p := range list[:min(found, maxRows)] {
		started, cpu := "-", "-"
		if !p.started.IsZero() {
			started, cpu = p.started.Format(time.DateTime), fmt.Sprintf("%.1f%%", p.cpu)
		}
		fmt.Fprintf(&b, "%7d %7d %-19s %6s %8s  %s\n", p.pid, p.ppid, started, cpu, size(p.memory), oneLine(p.command, maxCommand))
	}
	switch {
	case found == 0:
		b.Reset()
		fmt.Fprintf(&b, "None of the %d processes has %q in its command.", all, filter)
	case found > maxRows:
		fmt.Fprintf(&b, "[%d more, which are older: use a filter]", found-maxRows)
	}
	return agent.Result{
		Status: agent.StatusOK, Text: strings.TrimRight(b.String(), "\n"),
		Output: kit.Structured(map[string]int{"processes": all, "matching": found, "shown": min(found, maxRows)}),
	}
}

// oneLine returns at most n characters of s, with spaces for what would break
// the line.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// size returns a number of bytes for people.
func size(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

var errRow = errors.New("a row that cannot be read")

// parsePS reads the lines that ps prints for the columns pid, ppid, etime, %cpu,
// rss and command. Other lines are left out.
func parsePS(text string, now time.Time) []process {
	var list []process
	for line := range strings.Lines(text) {
		if p, err := parsePSRow(line, now); err == nil {
			list = append(list, p)
		}
	}
	return list
}

func parsePSRow(line string, now time.Time) (p process, err error) {
	var columns [5]string
	rest := line
	for i := range columns {
		columns[i], rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
	}
	var age time.Duration
	var kib int64
	for _, read := range []func() error{
		func() (e error) { p.pid, e = strconv.Atoi(columns[0]); return e },
		func() (e error) { p.ppid, e = strconv.Atoi(columns[1]); return e },
		func() (e error) { age, e = parseAge(columns[2]); return e },
		func() (e error) {
			p.cpu, e = strconv.ParseFloat(strings.Replace(columns[3], ",", ".", 1), 64)
			return e
		},
		func() (e error) { kib, e = strconv.ParseInt(columns[4], 10, 42); return e },
	} {
		if err := read(); err != nil {
			return process{}, errRow
		}
	}
	p.started, p.memory, p.command = now.Add(-age).Truncate(time.Second), kib<<10, strings.TrimSpace(rest)
	if p.pid < 1 || p.command == "" {
		return process{}, errRow
	}
	return p, nil
}

// parseAge reads [[days-]hours:]minutes:seconds.
func parseAge(s string) (time.Duration, error) {
	var days int
	if d, rest, ok := strings.Cut(s, "-"); ok {
		var err error
		if days, err = strconv.Atoi(d); err != nil {
			return 0, errRow
		}
		s = rest
	}
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, errRow
	}
	age := 0
	for _, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 60 {
			return 0, errRow
		}
		age = age*60 + n
	}
	if days < 0 || days > 100_000 {
		return 0, errRow
	}
	return time.Duration(days)*24*time.Hour + time.Duration(age)*time.Second, nil
}

// parseTasklist reads what tasklist prints as CSV without a header: name, number,
// session, number of the session, memory. Other lines are left out.
func parseTasklist(text string) []process {
	var list []process
	for line := range strings.Lines(text) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), `"`), `","`)
		if len(columns) < 5 {
			continue
		}
		pid, err := strconv.Atoi(columns[1])
		if err != nil || pid < 1 {
			continue
		}
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, columns[4])
		kib, _ := strconv.ParseInt(digits, 10, 42)
		list = append(list, process{pid: pid, memory: kib << 10, command: columns[0]})
	}
	return list
}
