package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Providers lists the providers, and where their keys come from.
func (c *CLI) Providers(ctx context.Context, asJSON bool) error {
	return tell(ctx, c, query.ListProviders{}, asJSON, func(w *bufio.Writer, list []query.ProviderInfo) {
		rows := [][]string{c.heads(text.ColName, text.ColType, text.ColKey, text.ColURL)}
		for _, p := range list {
			rows = append(rows, []string{text.OneLine(p.Name), text.OneLine(p.Type), c.keySource(p), text.OneLine(bounded(p.URL))})
		}
		const least = 16
		rows = fit(rows, 3, c.columns(), least, 1, 3)
		table(w, rows)
	})
}

// keySource says where the key of a provider comes from.
func (c *CLI) keySource(p query.ProviderInfo) string {
	if p.Key == "" && p.Local {
		return c.Text.Say(text.KeyNotNeeded)
	}
	return c.Text.KeySource(p.Key)
}

// AskProvider lets the user choose the provider that a key is of, by its number
// or name.
func (c *CLI) AskProvider(ctx context.Context) (string, error) {
	list, err := client.Query[[]query.ProviderInfo](ctx, c.Client, query.ListProviders{})
	if err != nil {
		return "", err
	}
	var names []string
	w := bufio.NewWriter(c.Err)
	for _, p := range list {
		if !p.Local {
			names = append(names, p.Name)
			fmt.Fprintf(w, "%2d. %s (%s)\n", len(names), text.OneLine(p.Title), text.OneLine(p.Name))
		}
	}
	fmt.Fprint(w, c.Text.Say(text.LoginWhich)+" ")
	if err := w.Flush(); err != nil {
		return "", err
	}
	answer := readLine(c.In)
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(names) {
		return names[n-1], nil
	}
	if answer == "" {
		return "", &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.LoginNoName), Fix: c.Text.Say(text.FixLoginNoName)}
	}
	return strings.TrimSpace(answer), nil
}

// AskLine asks for a line; "" = none came.
func (c *CLI) AskLine(prompt string) string {
	if _, err := io.WriteString(c.Out, prompt); err != nil {
		return ""
	}
	return strings.TrimSpace(readLine(c.In))
}

// LoggedIn says where a key is kept. shadow is a variable that is stronger; "" =
// none.
func (c *CLI) LoggedIn(provider, place, shadow string, asJSON bool) error {
	done := struct {
		Provider string `json:"provider"`
		Place    string `json:"place"` // keychain or file
		Shadow   string `json:"shadowed_by,omitempty"`
	}{provider, place, shadow}
	where := c.Text.Say(text.PlaceFile)
	if place == "keychain" {
		where = c.Text.Say(text.PlaceKeychain)
	}
	line := c.Text.Say(text.LoginDone, "provider", provider, "place", where)
	if shadow != "" {
		line += "\n" + c.Text.Say(text.LoginShadow, "variable", shadow)
	}
	return c.put(done, asJSON, func(w *bufio.Writer) { fmt.Fprintln(w, line) })
}

// LoggedOut says that a key is forgotten, or that there was none.
func (c *CLI) LoggedOut(provider string, removed, asJSON bool) error {
	done := struct {
		Provider string `json:"provider"`
		Removed  bool   `json:"removed"`
	}{provider, removed}
	k := text.LogoutDone
	if !removed {
		k = text.LogoutNone
	}
	return c.put(done, asJSON, func(w *bufio.Writer) { fmt.Fprintln(w, c.Text.Say(k, "provider", text.OneLine(provider))) })
}
