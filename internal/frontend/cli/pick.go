package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// Pick lets the user choose one of the newest sessions of workdir by its
// number, and returns its ID. It asks on Err: Out is for answers.
func (c *CLI) Pick(ctx context.Context, workdir string) (string, error) {
	const most = 20
	page, err := client.Query[agent.SessionList](ctx, c.Client, agent.ListSessions{Workdir: workdir, Limit: most})
	if err != nil {
		return "", err
	}
	list := page.Sessions
	if len(list) == 0 {
		return "", &agent.Problem{Code: agent.ProblemMissing, Message: c.Text.Say(text.NoSessions), Fix: c.Text.Say(text.FixMissing)}
	}
	var rows [][]string
	for i, s := range list {
		rows = append(rows, []string{
			fmt.Sprintf("%2d.", i+1), text.Cut(text.OneLine(bounded(s.Title)), 60), c.ago(s.Updated), text.OneLine(s.ID),
		})
	}
	const least = 12
	rows = fit(rows, 1, c.columns(), least, 3, 2)
	w := bufio.NewWriter(c.Err)
	table(w, rows)
	if page.More > 0 {
		c.remark(w, c.Text.Say(text.PickMore, "n", page.More))
	}
	fmt.Fprint(w, c.Text.Say(text.PickPrompt))
	if err := w.Flush(); err != nil {
		return "", err
	}
	n, err := strconv.Atoi(readLine(c.In))
	if err != nil || n < 1 || n > len(list) {
		return "", &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.PickNone), Fix: c.Text.Say(text.FixMissing)}
	}
	return list[n-1].ID, nil
}

// readLine reads one short line and not a byte behind it: what follows belongs
// to somebody else.
func readLine(r io.Reader) string {
	const longest = 64 // bytes
	var line []byte
	for b := make([]byte, 1); len(line) < longest; {
		n, err := r.Read(b)
		if n == 0 || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
		if err != nil {
			break
		}
	}
	return strings.TrimSpace(string(line))
}
