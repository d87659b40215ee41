package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// ModelsOptions say which models are shown.
type ModelsOptions struct {
	Filter string // a part of a name, an alias or a provider; "" = all
	Local  bool   // those that are served on this machine too
	JSON   bool
}

// Models lists the models that can be named.
func (c *CLI) Models(ctx context.Context, o ModelsOptions) error {
	stop := func() {}
	if o.Local {
		stop = c.busy(text.BusyModels)
	}
	list, err := client.Query[[]agent.ModelInfo](ctx, c.Client, query.ListModels{Local: o.Local})
	stop()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(m agent.ModelInfo) bool { return !fits(m, o.Filter) })
	return c.put(append([]agent.ModelInfo{}, list...), o.JSON, func(w *bufio.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.NoModels, "filter", text.OneLine(bounded(o.Filter))))
			return
		}
		rows := [][]string{c.heads(text.ColModel, text.ColProvider, text.ColWindow, text.ColOut, text.ColPrice)}
		for _, m := range list {
			name := m.ID
			if len(m.Aliases) > 0 {
				name += " (" + strings.Join(m.Aliases, ", ") + ")"
			}
			rows = append(rows, []string{
				text.OneLine(name), text.OneLine(m.Provider), c.size(m.Window), c.size(m.MaxOut), c.price(m.Price),
			})
		}
		const least = 16
		rows = fit(rows, 0, c.columns(), least, 3, 2, 1)
		var numbers uint
		if len(rows[0]) == 5 {
			numbers = 0b01100
		}
		aligned(w, rows, numbers)
	})
}

// fits reports whether a filter is a part of what a model is called.
func fits(m agent.ModelInfo, filter string) bool {
	filter = strings.ToLower(filter)
	names := append([]string{m.Provider + "/" + m.ID, m.Name}, m.Aliases...)
	return slices.ContainsFunc(names, func(s string) bool { return strings.Contains(strings.ToLower(s), filter) })
}

// size is a number of tokens; 0 = not known.
func (c *CLI) size(n int) string {
	if n == 0 {
		return "-"
	}
	return tokens(n)
}

func (c *CLI) price(p *agent.Price) string {
	if p == nil {
		return c.Text.Say(text.Unknown)
	}
	one := func(rate *float64) string {
		if rate == nil {
			return c.Text.Say(text.Unknown)
		}
		return strconv.FormatFloat(*rate, 'f', -1, 64)
	}
	return one(p.Input) + "/" + one(p.Output)
}

// CheckModel asks a model for one word. A model that does not answer is an
// [*Exited].
func (c *CLI) CheckModel(ctx context.Context, name string, asJSON bool) error {
	r, err := wait[query.ModelCheck](ctx, c, text.BusyCheck, query.CheckModel{Model: name})
	if err != nil {
		return err
	}
	err = c.put(r, asJSON, func(w *bufio.Writer) { writeLines(w, c.checkLines(r)) })
	if err == nil && !r.OK {
		return &Exited{Code: failureCode(r.Class), Err: fmt.Errorf("asking %s: %s", r.Model, r.Error)}
	}
	return err
}

// checkLines say whether a model answers.
func (c *CLI) checkLines(r query.ModelCheck) []string {
	ms := func(n int64) string { return took(time.Duration(n) * time.Millisecond) }
	if r.OK {
		return []string{c.Text.Say(text.CheckGood,
			"model", text.OneLine(r.Model), "url", text.OneLine(r.URL), "time", ms(r.Millis), "first", ms(r.First),
			"in", strconv.Itoa(r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite), "out", strconv.Itoa(r.Usage.Output),
			"cost", cost(c.Text, r.Cost))}
	}
	what, fix := c.Text.Failure(r.Class, "")
	switch r.Class {
	case agent.FailRate, agent.FailServer, agent.FailTimeout, agent.FailInvalid, "":
		fix = c.Text.Say(text.FixTryLater)
	}
	if isCertificate(r.Error) {
		fix = c.Text.Say(text.FixCertificate)
	}
	return []string{
		c.Text.Say(text.CheckBad, "model", text.OneLine(r.Model), "url", text.OneLine(r.URL), "what", what),
		"  " + c.Text.Phrase(text.OneLine(bounded(r.Error))),
		fix,
	}
}
