package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Doctor looks over the installation. more is what only the caller can see. A
// fault is an [*Exited].
func (c *CLI) Doctor(ctx context.Context, more []query.Finding, asJSON bool) error {
	list, err := wait[[]query.Finding](ctx, c, text.BusyDoctor, query.Diagnose{})
	if err != nil {
		return err
	}
	return c.Findings(append(list, more...), asJSON)
}

// Findings writes a diagnosis. A fault in it is an [*Exited].
func (c *CLI) Findings(list []query.Finding, asJSON bool) error {
	warn, fail := 0, 0
	for _, f := range list {
		switch f.State {
		case "warn":
			warn++
		case "fail":
			fail++
		}
	}
	err := c.writeFindings(list, asJSON, warn, fail)
	if err == nil && fail > 0 {
		return &Exited{Code: ExitFailed, Err: fmt.Errorf("%d findings are faults", fail)}
	}
	return err
}

func (c *CLI) writeFindings(list []query.Finding, asJSON bool, warn, fail int) error {
	return c.put(list, asJSON, func(w *bufio.Writer) {
		c.writeGroups(w, list)
		if warn+fail == 0 {
			fmt.Fprintln(w, c.Text.Say(text.DoctorAll))
		} else {
			fmt.Fprintln(w, c.Text.Say(text.DoctorSome, "fail", fail, "warn", warn))
		}
	})
}

// writeGroups writes the findings below the headings of their groups. What is
// said is wrapped where there is a terminal.
func (c *CLI) writeGroups(w *bufio.Writer, list []query.Finding) {
	states := map[string]text.Key{"ok": text.DoctorOK, "warn": text.DoctorWarn, "fail": text.DoctorFail}
	var heads [][]string
	var bodies [][2]string
	for _, f := range list {
		name, detail, fix := c.Text.Finding(f)
		state := f.State
		if k, ok := states[f.State]; ok {
			state = c.Text.Say(k)
		}
		heads = append(heads, []string{state, text.OneLine(name)})
		bodies = append(bodies, [2]string{text.OneLine(bounded(detail)), text.OneLine(bounded(fix))})
	}
	if len(heads) == 0 {
		return
	}
	widths := widthsOf(heads)
	indent := widths[0] + widths[1] + 2*gap
	for i, f := range list {
		if f.Group != "" && (i == 0 || list[i-1].Group != f.Group) {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, c.Text.Group(f.Group))
		}
		head := pad(heads[i][0], widths[0]+gap) + pad(heads[i][1], widths[1]+gap)
		Hang(w, c.columns(), head, bodies[i][0], indent)
		if bodies[i][1] != "" {
			Hang(w, c.columns(), "", c.Text.Say(text.DoctorFix, "fix", bodies[i][1]), indent)
		}
	}
}

func pad(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-text.Width(s)))
}

// Hang writes body behind head, which is padded to indent, and what does not fit
// into columns below it. Where little room would be left, or head is too long, it
// all goes below. With 0 columns nothing is wrapped.
func Hang(w *bufio.Writer, columns int, head, body string, indent int) {
	const everything = 1 << 30
	if columns <= 0 {
		columns = everything
	}
	if head != "" && text.Width(head) >= indent && !strings.HasSuffix(head, " ") {
		fmt.Fprintln(w, text.Cut(head, columns))
		head = ""
	}
	const least = 20 // cells for the body
	if columns-indent < least {
		if head != "" {
			fmt.Fprintln(w, strings.TrimRight(text.Cut(strings.TrimRight(head, " "), columns), " "))
		}
		head, indent = "", min(8, columns/5)
	}
	for i, line := range text.Wrap(body, columns-indent) {
		if i > 0 {
			head = ""
		}
		fmt.Fprintln(w, strings.TrimRight(pad(head, indent)+line, " "))
	}
}
