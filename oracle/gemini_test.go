package oracle_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"dure/agent"
)

func readGemini(ctx context.Context, baseURL string) (said, error) {
	client, err := geminiClient(ctx, baseURL)
	if err != nil {
		return said{}, err
	}
	w := &geminiAnswer{}
	for chunk, err := range client.Models.GenerateContentStream(ctx, "gemini-3-pro", genai.Text("hello"), nil) {
		if err != nil {
			return w.said(), err
		}
		w.add(chunk)
	}
	return w.said(), nil
}

// geminiClient returns Google's client for a server on loopback.
func geminiClient(ctx context.Context, baseURL string) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: baseURL},
	})
}

// geminiAnswer adds up chunks, which the library leaves to its user.
type geminiAnswer struct {
	id, model, reason, message string
	blocked                    bool
	parts                      []*genai.Part
	usage                      agent.Usage
}

func (a *geminiAnswer) add(c *genai.GenerateContentResponse) {
	a.id, a.model = c.ResponseID, c.ModelVersion
	if u := c.UsageMetadata; u != nil {
		a.usage = agent.Usage{
			Input:     int(u.PromptTokenCount - u.CachedContentTokenCount + u.ToolUsePromptTokenCount),
			Output:    int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			CacheRead: int(u.CachedContentTokenCount),
		}
	}
	if f := c.PromptFeedback; f != nil {
		a.blocked, a.reason, a.message = true, string(f.BlockReason), f.BlockReasonMessage
	}
	for _, candidate := range c.Candidates {
		if candidate.Content != nil {
			for _, p := range candidate.Content.Parts {
				a.part(p)
			}
		}
		if candidate.FinishReason != "" {
			a.reason, a.message = string(candidate.FinishReason), candidate.FinishMessage
		}
	}
}

// part adds a part: text goes on with the text in front of it, unless one of the
// two is signed.
func (a *geminiAnswer) part(p *genai.Part) {
	if p.FunctionCall == nil && plain(p) {
		if p.Text == "" && p.ThoughtSignature == nil {
			return
		}
		if n := len(a.parts); n > 0 && p.ThoughtSignature == nil {
			last := a.parts[n-1]
			if plain(last) && last.ThoughtSignature == nil && last.Thought == p.Thought {
				last.Text += p.Text
				return
			}
		}
	}
	a.parts = append(a.parts, p)
}

// plain reports whether a part is nothing but text.
func plain(p *genai.Part) bool {
	return p.FunctionCall == nil && p.InlineData == nil && p.FileData == nil && p.ExecutableCode == nil &&
		p.CodeExecutionResult == nil && p.FunctionResponse == nil && p.ToolCall == nil && p.ToolResponse == nil
}

// geminiStops are the reasons that the API documents, but for those of calls.
var geminiStops = map[string]agent.StopReason{
	"STOP": agent.StopEnd, "MAX_TOKENS": agent.StopLength, "SAFETY": agent.StopRefusal, "RECITATION": agent.StopRefusal,
	"LANGUAGE": agent.StopRefusal, "BLOCKLIST": agent.StopRefusal, "PROHIBITED_CONTENT": agent.StopRefusal, "SPII": agent.StopRefusal,
}

func (a *geminiAnswer) said() said {
	s := said{ID: a.id, Model: a.model, Stop: a.reason, Usage: a.usage}
	calls := false
	for _, p := range a.parts {
		b := block{Kind: "text", Text: p.Text}
		switch {
		case p.FunctionCall != nil:
			calls = true
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil || p.FunctionCall.Args == nil {
				args = nil
			}
			b = call(p.FunctionCall.ID, p.FunctionCall.Name, string(args))
			b.Text = canonical(b.Text, true)
		case !plain(p):
			raw, _ := json.Marshal(p) // a struct of the library's, which encodes
			b = block{Kind: "raw", Raw: canonical(string(raw), false)}
		case p.Thought:
			b.Kind = "thinking"
		}
		b.Signature = base64.StdEncoding.EncodeToString(p.ThoughtSignature)
		s.Blocks = append(s.Blocks, b)
	}
	if known, ok := geminiStops[a.reason]; ok {
		s.Stop = string(known)
	}
	switch {
	case a.blocked:
		s.Stop = string(agent.StopRefusal)
	case a.reason == "STOP" && calls:
		s.Stop = string(agent.StopCalls)
	}
	if s.Stop != string(agent.StopEnd) && s.Stop != string(agent.StopCalls) && s.Stop != string(agent.StopLength) {
		s.Detail = a.reason
		if a.blocked {
			s.Detail = "the prompt was blocked: " + s.Detail
		}
		if a.message != "" {
			s.Detail = strings.Join([]string{s.Detail, a.message}, ": ")
		}
	}
	return s
}

// geminiUntold takes out the IDs that the adapter gives to calls that came
// without one, and the message about the end of the answer, which the library
// leaves out although the API has it.
func geminiUntold(ours *said, theirs said) {
	if theirs.Detail != "" && strings.HasPrefix(ours.Detail, theirs.Detail+": ") {
		ours.Detail = theirs.Detail
	}
	for i := range ours.Blocks {
		if i < len(theirs.Blocks) && theirs.Blocks[i].Kind == "call" && theirs.Blocks[i].ID == "" {
			ours.Blocks[i].ID = ""
		}
	}
}

// geminiRequest is the body of a request in the library's types. The library
// takes the members of generationConfig, and some others, as one config.
type geminiRequest struct {
	SystemInstruction *genai.Content          `json:"systemInstruction"`
	Contents          []*genai.Content        `json:"contents"`
	Tools             []*genai.Tool           `json:"tools"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
}

// geminiSender returns what has the library read a request and send it to a
// model, whose name is not in the body.
func geminiSender(model string) func(ctx context.Context, baseURL string, body []byte) error {
	return func(ctx context.Context, baseURL string, body []byte) error {
		return sendGemini(ctx, baseURL, model, body)
	}
}

// anySignature is what the API documents for a call that another model made. As
// base64 it is of the alphabet for addresses, which the API reads as well as the
// other, and the library does not.
const anySignature = "skip_thought_signature_validator"

func sendGemini(ctx context.Context, baseURL, model string, body []byte) error {
	var r geminiRequest
	body = bytes.ReplaceAll(body, []byte(anySignature), []byte(standard.Replace(anySignature)))
	if err := decode(body, &r); err != nil {
		return err
	}
	config := &genai.GenerateContentConfig{SystemInstruction: r.SystemInstruction, Tools: r.Tools, ToolConfig: r.ToolConfig}
	if g := r.GenerationConfig; g != nil {
		config.Temperature, config.MaxOutputTokens, config.ThinkingConfig = g.Temperature, g.MaxOutputTokens, g.ThinkingConfig
	}
	client, err := geminiClient(ctx, baseURL)
	if err != nil {
		return err
	}
	for _, err := range client.Models.GenerateContentStream(ctx, model, r.Contents, config) {
		if err != nil {
			return err
		}
	}
	return nil
}
