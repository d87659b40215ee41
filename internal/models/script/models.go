package script

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// What the lists say of every model.
const (
	listedWindow = 131_072 // tokens
	listedOutput = 32_768  // tokens
	listedDate   = "2025-01-01T00:00:00Z"

	maxShow = 1 << 20 // bytes of a request for what one model is
)

// list answers requests for lists of models, and GET requests for what is not
// there, and reports whether r was one. They are not recorded. A list is at
// GET .../models, but not below /api/, in the form of Google, Anthropic or
// OpenAI, as path and headers tell; one model is at GET .../models/ID. Of Ollama
// there are /api/tags and /api/show.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) bool {
	names := h.script.Models
	if len(names) == 0 {
		names = []string{Provider}
	}
	var answer any
	format, one := Chat, ""
	switch _, id, found := strings.Cut(r.URL.Path+"/", "/models/"); {
	case r.Method == http.MethodGet && found && !strings.Contains(r.URL.Path, "/api/"):
		format, one = listFormat(r), strings.TrimSuffix(id, "/")
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/api/tags"):
		answer = map[string]any{"models": each(names, ollamaModel)}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/show"):
		ollamaShow(w, r, names)
		return true
	default:
		if _, ok := FormatOf(r.URL.EscapedPath()); ok || r.Method != http.MethodGet {
			return false
		}
		refuse(w, apis[format], &failure{status: http.StatusNotFound, message: "no such path: " + r.URL.Path})
		return true
	}
	if h.opts.Key != "" && !slices.Contains(keys(r), h.opts.Key) {
		refuse(w, apis[format], wrongKey(format))
		return true
	}
	if answer == nil {
		if one != "" && !slices.Contains(names, one) {
			refuse(w, apis[format], &failure{status: http.StatusNotFound, code: "model_not_found", message: "model: " + one})
			return true
		}
		answer = listing(format, names, one)
	}
	reply(w, http.StatusOK, answer)
	return true
}

func reply(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(compact(answer))
}

// listFormat returns the format in which a list is asked for.
func listFormat(r *http.Request) Format {
	switch {
	case strings.Contains(r.URL.Path, "/v1beta/"), r.Header.Get("X-Goog-Api-Key") != "", r.URL.Query().Has("key"):
		return Gemini
	case r.Header.Get("Anthropic-Version") != "":
		return Messages
	}
	return Chat
}

// listing returns the list, or the entry of one model.
func listing(format Format, names []string, one string) any {
	entry := map[Format]func(string) any{Chat: openModel, Messages: messagesModel, Gemini: geminiModel}[format]
	if one != "" {
		return entry(one)
	}
	list := each(names, entry)
	switch format {
	case Gemini:
		return map[string]any{"models": list}
	case Messages:
		return map[string]any{"data": list, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]}
	}
	return map[string]any{"object": "list", "data": list}
}

func each(names []string, entry func(string) any) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = entry(name)
	}
	return list
}

func openModel(name string) any {
	return map[string]any{"id": name, "object": "model", "created": created, "owned_by": Provider}
}

func messagesModel(name string) any {
	return map[string]any{"type": "model", "id": name, "display_name": name, "created_at": listedDate}
}

func geminiModel(name string) any {
	return map[string]any{
		"name": "models/" + name, "version": "001", "displayName": name, "description": "A model that follows a script.",
		"inputTokenLimit": listedWindow, "outputTokenLimit": listedOutput,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		"temperature":                1, "topP": 0.95, "topK": 64, "maxTemperature": 2, "thinking": true,
	}
}

// ollamaDetails are the details of every local model.
func ollamaDetails() map[string]any {
	return map[string]any{
		"parent_model": "", "format": "gguf", "family": Provider, "families": []string{Provider},
		"parameter_size": "1.0B", "quantization_level": "Q4_K_M",
	}
}

func ollamaModel(name string) any {
	return map[string]any{
		"name": name, "model": name, "modified_at": listedDate, "size": 1 << 30,
		"digest": strings.Repeat("0", 64), "details": ollamaDetails(),
	}
}

// ollamaShow says what one local model is.
func ollamaShow(w http.ResponseWriter, r *http.Request, names []string) {
	var ask struct{ Model, Name string }
	err := json.NewDecoder(io.LimitReader(r.Body, maxShow)).Decode(&ask)
	name := or(ask.Model, ask.Name)
	switch {
	case err != nil || name == "":
		reply(w, http.StatusBadRequest, map[string]string{"error": "model is required"})
	case !slices.Contains(names, name):
		reply(w, http.StatusNotFound, map[string]string{"error": "model '" + name + "' not found"})
	default:
		reply(w, http.StatusOK, map[string]any{
			"modelfile": "FROM " + name, "parameters": "num_ctx 8192", "template": "{{ .Prompt }}", "details": ollamaDetails(),
			"model_info":   map[string]any{"general.architecture": Provider, Provider + ".context_length": listedWindow},
			"capabilities": []string{"completion", "tools", "thinking"}, "modified_at": listedDate,
		})
	}
}
