package cli

import (
	"encoding/json"

	"dure/agent"
	"dure/internal/frontend/text"
)

// signInLine says what a person has to do before a call can do its work; "" = nothing.
func signInLine(t text.Catalog, r agent.Result) string {
	var out struct {
		URL      string `json:"authorizationUrl"`
		UserCode string `json:"userCode"`
		Message  string `json:"message"`
	}
	if r.Error == nil || r.Error.Code != agent.ErrOAuthRequired || json.Unmarshal(r.Output, &out) != nil || out.URL == "" {
		return ""
	}
	what, where := text.OneLine(bounded(out.Message)), text.OneLine(out.URL)
	if out.UserCode != "" {
		return t.Say(text.NeedsSignInCode, "what", what, "url", where, "code", text.OneLine(bounded(out.UserCode)))
	}
	return t.Say(text.NeedsSignIn, "what", what, "url", where)
}
