package completions

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// entry is a model as the API lists it.
type entry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// entries are a list of models.
type entries struct {
	Object string  `json:"object"`
	Data   []entry `json:"data"`
}

// known returns the models that can be asked: those of providers with a key, or that need none.
func (d *Desk) known(ctx context.Context) ([]agent.ModelInfo, error) {
	providers, err := client.Query[[]query.ProviderInfo](ctx, d.c.Client, query.ListProviders{})
	if err != nil {
		return nil, err
	}
	all, err := client.Query[[]agent.ModelInfo](ctx, d.c.Client, query.ListModels{})
	return slices.DeleteFunc(slices.Clone(all), func(m agent.ModelInfo) bool {
		return !slices.ContainsFunc(providers, func(p query.ProviderInfo) bool {
			return p.Name == m.Provider && (p.Key != "" || p.Local)
		})
	}), err
}

// resolve returns the ID of a model by one of its names. What is not in the catalog is left
// to the session.
func (d *Desk) resolve(ctx context.Context, name string) (string, error) {
	all, err := client.Query[[]agent.ModelInfo](ctx, d.c.Client, query.ListModels{})
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if m.ID == name || slices.Contains(m.Aliases, name) {
			return m.ID, nil
		}
	}
	return name, nil
}

func (d *Desk) listed(ctx context.Context) ([]entry, error) {
	all, err := d.known(ctx)
	out := []entry{{usual, "model", 0, "dure"}}
	for _, m := range all {
		out = append(out, entry{m.ID, "model", 0, m.Provider})
	}
	return out, err
}

// models answers GET /v1/models.
func (d *Desk) models(w http.ResponseWriter, r *http.Request) {
	all, err := d.listed(r.Context())
	if err != nil {
		refusalOf(err).write(w)
		return
	}
	give(w, entries{"list", all})
}

// model answers GET /v1/models/ID.
func (d *Desk) model(w http.ResponseWriter, r *http.Request) {
	all, err := d.listed(r.Context())
	if err != nil {
		refusalOf(err).write(w)
		return
	}
	i := slices.IndexFunc(all, func(e entry) bool { return e.ID == r.PathValue("model") })
	if i < 0 {
		refuse(http.StatusNotFound, "model_not_found", "model", "there is no such model; GET /v1/models lists them").write(w)
		return
	}
	give(w, all[i])
}

func give(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		refusalOf(err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // a client that is gone reads nothing
}
