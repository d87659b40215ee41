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
	Unit string  `json:"unit"`
	Aim  float64 `json:"aim,omitempty"` // at most this; 0 = none
	Spread
}

// over reports whether the figure is more than its aim times slack.
func (f Figure) over(slack float64) bool { return f.Aim > 0 && f.Median > f.Aim*slack }

// A Report is everything that one run of the benchmark found.
type Report struct {
	Machine string   `json:"machine"`
	Load    string   `json:"load"` // load averages when it began
	Disk    string   `json:"disk"` // file system that holds the logs
	Runs    int      `json:"runs"`
	Figures []Figure `json:"figures"`
}

// Markdown returns the report as a table.
func (r Report) Markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s; logs on %s; load before: %s; median of %d runs (least to most).\n\n", r.Machine, r.Disk, r.Load, r.Runs)
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| case\t| figure\t| median\t| least to most\t| aim\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|")
	last := ""
	for _, f := range r.Figures {
		name := f.Case
		if name == last {
			name = ""
		}
		last = f.Case
		aim := ""
		if f.Aim > 0 {
			aim = "≤ " + number(f.Aim) + " " + f.Unit
		}
		span := number(f.Min) + " to " + number(f.Max)
		if f.Min == f.Max {
			span = ""
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s %s\t| %s\t| %s\t|\n", name, f.What, number(f.Median), f.Unit, span, aim)
	}
	w.Flush()
	return b.String()
}

// number returns v with the digits that a reader can use.
func number(v float64) string {
	switch {
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
