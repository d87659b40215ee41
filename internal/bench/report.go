package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
)

// A Figure is one line of the report.
type Figure struct {
	Case string  `json:"case"`
	What string  `json:"what"`
	Unit string  `json:"unit,omitempty"` // "" = the case was skipped, and What says why
	Aim  float64 `json:"aim,omitempty"`  // at most this; 0 = none
	Load string  `json:"load"`           // load averages when the case began
	Spread
}

// limit returns what the figure may be at most. A time may be as many times its
// aim as the machine is slow. The most memory that a process had depends on when
// it collected its garbage, and a ratio of two measurements on both: they have some
// room. The size of a file or a request is what it is everywhere.
func (f Figure) limit(slack float64) float64 {
	switch {
	case f.Unit == "ms":
		return f.Aim * slack
	case f.Unit == "×", f.Unit == "MB" && strings.Contains(f.What, "peak"):
		return f.Aim * room
	}
	return f.Aim
}

// over reports whether the figure is more than it may be. Without slack all may be.
func (f Figure) over(slack float64) bool {
	return slack > 0 && f.Aim > 0 && f.Median > f.limit(slack)
}

// room is how many times their aims peaks and ratios may be.
const room = 1.3

// A Report is everything that one run of the benchmark found.
type Report struct {
	Machine   string   `json:"machine"`
	Load      string   `json:"load"` // load averages when it began
	LoadAfter string   `json:"load_after"`
	Disk      string   `json:"disk"` // file system that holds the logs
	Runs      int      `json:"runs"`
	Figures   []Figure `json:"figures"`
}

// Markdown returns the report as a table.
func (r Report) Markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s; logs on %s; load before: %s, after: %s; median of %d runs (least to most).\n\n", r.Machine, r.Disk, r.Load, r.LoadAfter, r.Runs)
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| case\t| figure\t| median\t| least to most\t| aim\t| load\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|")
	last := ""
	for _, f := range r.Figures {
		name, load := f.Case, strings.Fields(f.Load + " ?")[0]
		if name == last {
			name, load = "", ""
		}
		last = f.Case
		aim := ""
		if f.Aim > 0 {
			aim = "≤ " + number(f.Aim) + " " + f.Unit
		}
		if f.Unit == "" {
			fmt.Fprintf(w, "| %s\t| %s\t| \t| \t| \t| %s\t|\n", name, f.What, load)
			continue
		}
		span := number(f.Min) + " to " + number(f.Max)
		if f.Min == f.Max {
			span = ""
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s %s\t| %s\t| %s\t| %s\t|\n", name, f.What, number(f.Median), f.Unit, span, aim, load)
	}
	w.Flush()
	return b.String()
}

// number returns v with the digits that a reader can use.
func number(v float64) string {
	switch {
	case v >= 10_000:
		digits := fmt.Sprintf("%.0f", v)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
}

// machine describes the machine: processor, kernel and compiler.
func machine() string {
	cpu := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		number, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
		kernel = " " + number
	}
	return fmt.Sprintf("%d × %s, %s/%s%s, %s", runtime.NumCPU(), cpu, runtime.GOOS, runtime.GOARCH, kernel, runtime.Version())
}

// load returns the load averages of the machine.
func load() string {
	avg, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(avg))[:3], " ")
}

// disk returns the type of the file system that holds dir.
func disk(dir string) string {
	out, err := exec.Command("df", "-T", dir).Output()
	if err != nil {
		return "unknown"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	f := strings.Fields(lines[len(lines)-1])
	if len(f) < 2 {
		return "unknown"
	}
	return f[1]
}
