package script

import (
	"net/http"
	"strings"
	"testing"
)

// talks are requests with all that is allowed: two answers with two calls, and
// more words of the user's.
var talks = map[Format]struct{ path, body string }{
	Messages: {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"system":"Be brief.",` +
		`"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[` +
		`{"role":"user","content":"hello"},` +
		`{"role":"assistant","content":[{"type":"text","text":"I look."}]},` +
		`{"role":"user","content":"do"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"sunny"},{"type":"text","text":"and now?"}]}]}`},
	Chat: {"/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"temperature":0.5,` +
		`"tools":[{"type":"function","function":{"name":"look","description":"","parameters":{"type":"object","properties":{"at":{"type":["string","null"]}}},"strict":false}}],` +
		`"tool_choice":"auto","parallel_tool_calls":true,"messages":[` +
		`{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"auto"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c0","content":"rain"},` +
		`{"role":"assistant","content":"Hm.","reasoning_content":"why","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"x\"}"}},` +
		`{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c2","content":"sunny"},` +
		`{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"and now?"}]}]}`},
	Responses: {"/v1/responses", `{"model":"m","stream":true,"store":false,"instructions":"Be brief.","include":["reasoning.encrypted_content"],` +
		`"max_output_tokens":16,"reasoning":{"effort":"low","summary":"auto"},"tools":[{"type":"function","name":"look","description":"d","parameters":{"type":"object"},"strict":false}],` +
		`"tool_choice":{"type":"function","name":"look"},"input":[` +
		`{"role":"user","content":[{"type":"input_text","text":"hello"},{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"}]},` +
		`{"type":"reasoning","id":"rs_r00000001","summary":[{"type":"summary_text","text":"why"}],"encrypted_content":"` + seal("reasoning", "rs_r00000001", "why") + `"},` +
		`{"type":"function_call","id":"fc_r00000001_0_0","call_id":"c0","name":"look","arguments":"{}","status":"completed"},` +
		`{"type":"function_call_output","call_id":"c0","output":"rain"},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hm.","annotations":[]}]},` +
		`{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"sunny"}]},` +
		`{"type":"message","role":"user","content":"and now?"}]}`},
	Gemini: {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"systemInstruction":{"parts":[{"text":"Be brief."}]},` +
		`"tools":[{"functionDeclarations":[{"name":"look","description":"d","parametersJsonSchema":{"type":"object","properties":{"at":{"type":["string","null"]}},"additionalProperties":false}},` +
		`{"name":"old","parameters":{"type":"OBJECT","properties":{"at":{"type":"STRING","enum":["a","b"]}},"required":["at"]}}]}],` +
		`"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` +
		`"generationConfig":{"temperature":1,"maxOutputTokens":9,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1}},"contents":[` +
		`{"role":"user","parts":[{"text":"hello"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},` +
		`{"role":"model","parts":[{"text":"why","thought":true},{"text":"Hm."},{"text":"","thoughtSignature":"` + signText("Hm.") + `"}]},` +
		`{"role":"user","parts":[{"text":"do"}]},` +
		`{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"x"}},"thoughtSignature":"` + signCall("look", map[string]any{"at": "x"}) + `"},{"functionCall":{"name":"look","id":"c2"}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"look","id":"c2","response":{"output":"sunny"}}},{"functionResponse":{"name":"look","response":{"output":"and now?"}}}]}]}`},
}

func TestValidTalks(t *testing.T) {
	for f, talk := range talks {
		if err := Validate(f, talk.path, nil, []byte(talk.body)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if got, ok := FormatOf(talk.path); !ok || got != f {
			t.Errorf("%s is taken for %s", talk.path, got)
		}
	}
}

// A mutation makes a valid request invalid: the first old is replaced by new.
type mutation struct{ name, old, new, say string }

func checkMutations(t *testing.T, f Format, list []mutation) {
	t.Helper()
	talk := talks[f]
	for _, m := range list {
		body := strings.Replace(talk.body, m.old, m.new, 1)
		if body == talk.body {
			t.Errorf("%s: nothing to replace", m.name)
			continue
		}
		if err := Validate(f, talk.path, nil, []byte(body)); err == nil || !strings.Contains(err.Error(), m.say) {
			t.Errorf("%s: got %v, want %q", m.name, err, m.say)
		}
	}
}

func TestChatRules(t *testing.T) {
	const tool0 = `{"role":"tool","tool_call_id":"c0","content":"rain"},`
	const answer0 = `"tool_calls":[{"id":"c0","type":"function","function":{"name":"look","arguments":"{}"}}]`
	checkMutations(t, Chat, []mutation{
		{"no JSON", `{"model"`, `{"model`, "no valid JSON"},
		{"something behind it", `"and now?"}]}]}`, `"and now?"}]}]} {}`, "something follows"},
		{"an unknown parameter", `"stream":true`, `"stream":true,"maximum":1`, "unknown parameter"},
		{"no model", `"model":"m",`, ``, "'model': expected a string"},
		{"no stream", `"stream":true,`, ``, "only streams"},
		{"a limit of nothing", `"max_tokens":9`, `"max_tokens":0`, "below minimum"},
		{"two limits", `"max_tokens":9`, `"max_tokens":9,"max_completion_tokens":9`, "cannot be set together"},
		{"the old limit", `"model":"m"`, `"model":"gpt-5"`, "'max_tokens' is not supported"},
		{"a temperature", `"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9`, `"model":"o3","stream":true`, "'temperature' does not support 0.5"},
		{"a high temperature", `"temperature":0.5`, `"temperature":3`, "from 0 to 2"},
		{"an unknown option", `"include_usage"`, `"usage"`, "unknown parameter"},
		{"a long key of the cache", `"max_tokens":9`, `"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`, "maximum length 64"},
		{"old and new caching", `"max_tokens":9`, `"prompt_cache_retention":"24h","prompt_cache_options":{}`, "cannot be set together"},
		{"caching of an old model", `"model":"m"`, `"model":"gpt-4.1","prompt_cache_options":{"mode":"explicit"}`, "not supported with this model"},
		{"no tools", `"tools":[{"type":"function","function":{"name":"look","description":"","parameters":{"type":"object","properties":{"at":{"type":["string","null"]}}},"strict":false}}]`, `"tools":[]`, "not empty"},
		{"a choice without tools", `"tools":[{"type":"function","function":{"name":"look","description":"","parameters":{"type":"object","properties":{"at":{"type":["string","null"]}}},"strict":false}}],`, ``, "only allowed when 'tools'"},
		{"an unknown choice", `"tool_choice":"auto"`, `"tool_choice":"any"`, "unknown value"},
		{"the choice of no tool", `"tool_choice":"auto"`, `"tool_choice":{"type":"function","function":{"name":"x"}}`, "no such tool"},
		{"an odd name of a tool", `"name":"look","description"`, `"name":"look.at","description"`, "does not match pattern"},
		{"a tool of another type", `"tools":[{"type":"function"`, `"tools":[{"type":"custom"`, "unknown value"},
		{"a schema that is no object", `"parameters":{"type":"object"`, `"parameters":{"type":"string"`, "must be a JSON Schema"},
		{"a schema with a union at the top", `"parameters":{"type":"object"`, `"parameters":{"type":"object","anyOf":[{}]`, "top level"},
		{"a list of anything", `"type":["string","null"]`, `"type":"array"`, "missing items"},
		{"an unknown type in a schema", `"type":["string","null"]`, `"type":"text"`, "unknown value"},
		{"no messages", `"messages":[`, `"messages":[],"user":[`, "not empty"},
		{"an unknown role", `"role":"user"`, `"role":"human"`, "unknown value"},
		{"no role", `"role":"user",`, ``, "expected a role"},
		{"a system message later", `{"role":"system","content":"Be brief."},`, `{"role":"user","content":"x"},{"role":"system","content":"y"},`, "at the beginning"},
		{"an empty system message", `"content":"Be brief."`, `"content":""`, "empty string"},
		{"an empty text", `"text":"hello"`, `"text":" "`, "empty string"},
		{"no parts", `"content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"auto"}}]`, `"content":[]`, "not empty"},
		{"an unknown part", `"type":"image_url","image_url":{`, `"type":"image","image_url":{`, "unknown type"},
		{"a picture of another kind", `data:image/png`, `data:image/tiff`, "unsupported image type"},
		{"a picture that is none", `data:image/png`, `data:text/plain`, "begins with"},
		{"a broken picture", `base64,aGk=`, `base64,aGk`, "invalid base64"},
		{"a call without result", tool0, ``, "must be followed by tool messages"},
		{"a result that comes late", tool0, `{"role":"user","content":"x"},` + tool0, "must be followed by tool messages"},
		{"a result without call", `"content":null,` + answer0, `"content":"x"`, "must be a response to"},
		{"two results", tool0, tool0 + tool0, "must be a response to"},
		{"the result of another call", `"tool_call_id":"c0"`, `"tool_call_id":"c1"`, "must be a response to"},
		{"a call at the end", `,{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"and now?"}]}`, ``, "No response to: c1"},
		{"one ID twice", `"id":"c2"`, `"id":"c1"`, "duplicate ID"},
		{"one ID in two answers", `"id":"c2"`, `"id":"c0"`, "duplicate ID"},
		{"a long ID", `"id":"c0"`, `"id":"` + strings.Repeat("c", 41) + `"`, "maximum length 40"},
		{"no ID", `"id":"c0",`, ``, "tool_calls[0].id"},
		{"an empty result", `"content":"rain"`, `"content":""`, "empty string"},
		{"a result of null", `"content":"rain"`, `"content":null`, "expected a string"},
		{"a picture as result", `{"type":"text","text":"and now?"}`, `{"type":"image_url","image_url":{"url":"https://example.com"}}`, "unknown type"},
		{"no calls", answer0, `"tool_calls":[]`, "not empty"},
		{"an answer of null", `,` + answer0, ``, "got null"},
		{"an odd name in a call", `{"name":"look","arguments":"{}"}`, `{"name":"lo ok","arguments":"{}"}`, "does not match pattern"},
		{"arguments that are an object", `"arguments":"{}"`, `"arguments":{}`, "expected a string"},
		{"arguments that are no object", `"arguments":"{}"`, `"arguments":"[]"`, "holds a JSON object"},
		{"broken arguments", `"arguments":"{}"`, `"arguments":"{"`, "holds a JSON object"},
		{"reasoning in parts", `"reasoning_content":"why"`, `"reasoning_content":["why"]`, "expected a string"},
		{"an answer of nothing", `"content":"Hm.","reasoning_content":"why","tool_calls"`, `"content":"","reasoning_content":"why"},{"role":"user","content":"x","tool_calls"`, "empty string"},
		{"reasoning of the user's", `{"role":"user",`, `{"role":"user","reasoning_content":"why",`, "unknown parameter"},
		{"five marks", `{"type":"text","text":"hello"}`, strings.Repeat(`{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}},`, 5) + `{"type":"text","text":"hello"}`, "maximum of 4"},
	})
}

func TestResponsesRules(t *testing.T) {
	const (
		call   = `{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},`
		output = `{"type":"function_call_output","call_id":"c0","output":"rain"},`
		first  = `{"type":"function_call","id":"fc_r00000001_0_0","call_id":"c0","name":"look","arguments":"{}","status":"completed"},`
	)
	think, _, _ := strings.Cut(talks[Responses].body[strings.Index(talks[Responses].body, `{"type":"reasoning"`):], first)
	checkMutations(t, Responses, []mutation{
		{"the other API's limit", `"max_output_tokens":16`, `"max_tokens":16`, "moved to 'max_output_tokens'"},
		{"an unknown parameter", `"store":false`, `"store":false,"n":1`, "unknown parameter"},
		{"a low limit", `"max_output_tokens":16`, `"max_output_tokens":15`, "Expected a value >= 16"},
		{"a temperature", `"model":"m"`, `"model":"gpt-5.1","temperature":1`, "'temperature' is not supported"},
		{"empty instructions", `"Be brief."`, `""`, "empty string"},
		{"an unknown effort", `"effort":"low"`, `"effort":"some"`, "unknown value"},
		{"an unknown summary", `"summary":"auto"`, `"summary":"none"`, "unknown value"},
		{"an unknown include", `"reasoning.encrypted_content"]`, `"reasoning"]`, "unknown value"},
		{"a nested tool", `"type":"function","name":"look","description":"d","parameters":{"type":"object"},"strict":false`, `"type":"function","function":{"name":"look"}`, "unknown parameter"},
		{"the choice of no tool", `"tool_choice":{"type":"function","name":"look"}`, `"tool_choice":{"type":"function","name":"x"}`, "no such tool"},
		{"no input", `"input":[`, `"input":[],"user":[`, "not empty"},
		{"empty input", `"input":[`, `"input":"","user":[`, "empty string"},
		{"an unknown item", `"type":"function_call_output","call_id":"c0"`, `"type":"function_result","call_id":"c0"`, "unknown type"},
		{"an unknown role", `"type":"message","role":"user"`, `"type":"message","role":"tool"`, "unknown value"},
		{"the other API's part", `"type":"input_text","text":"hello"`, `"type":"text","text":"hello"`, "unknown type"},
		{"an empty part", `"text":"hello"`, `"text":""`, "empty string"},
		{"an answer in the user's words", `"type":"output_text"`, `"type":"input_text"`, "unknown type"},
		{"a picture that is none", `"https://example.com/a.png"`, `"a.png"`, "data URL"},
		{"a picture twice", `"detail":"low"`, `"file_id":"f"`, "cannot be set together"},
		{"a call without output", output, ``, "No tool output found for function call c0"},
		{"an output without call", call, ``, "No tool call found for function call output with call_id c1"},
		{"two outputs", output, output + output, "No tool call found"},
		{"an output in front of its call", call, `{"type":"function_call_output","call_id":"c1","output":"x"},` + call, "No tool call found"},
		{"one ID twice", `"call_id":"c1","name"`, `"call_id":"c0","name"`, "duplicate call_id"},
		{"a long ID", `"call_id":"c1","name"`, `"call_id":"` + strings.Repeat("c", 65) + `","name"`, "maximum length 64"},
		{"an ID of a call as that of the item", `"type":"function_call","call_id":"c1"`, `"type":"function_call","id":"call_1","call_id":"c1"`, "begins with 'fc'"},
		{"an item twice", `"type":"function_call","call_id":"c1"`, `"type":"function_call","id":"fc_r00000001_0_0","call_id":"c1"`, "Duplicate item"},
		{"arguments that are an object", `"arguments":"{}"`, `"arguments":{}`, "expected a string"},
		{"broken arguments", `"arguments":"{}"`, `"arguments":"{"`, "holds a JSON object"},
		{"an empty output", `"output":"rain"`, `"output":""`, "empty string"},
		{"an output of parts of an answer", `[{"type":"input_text","text":"sunny"}]`, `[{"type":"output_text","text":"sunny"}]`, "unknown type"},
		{"other reasoning", `"text":"why"`, `"text":"because"`, "could not be verified"},
		{"reasoning of another answer", `rs_r00000001","summary"`, `rs_r00000002","summary"`, "could not be verified"},
		{"reasoning that is not kept", `,"encrypted_content":"` + seal("reasoning", "rs_r00000001", "why") + `"`, ``, "Items are not persisted"},
		{"reasoning without a summary", `"summary":[{"type":"summary_text","text":"why"}],`, ``, "expected a list"},
		{"reasoning without an ID", `"id":"rs_r00000001",`, ``, "expected a string"},
		{"reasoning that leads to nothing", first, ``, "without its required following item"},
		{"reasoning in another place", think + first, first + think, "without its required 'reasoning' item"},
		{"reasoning of another item", `fc_r00000001_0_0`, `fc_r00000002_0_0`, "without its required following item"},
		{"no reasoning", think, ``, "without its required 'reasoning' item: 'rs_r00000001'"},
		{"reasoning at the end", `,{"type":"message","role":"user","content":"and now?"}`, `,{"type":"reasoning","id":"rs_x","summary":[],"encrypted_content":"` + seal("reasoning", "rs_x") + `"}`, "without its required following item"},
	})
}

func TestGeminiRules(t *testing.T) {
	const (
		asked    = `{"role":"user","parts":[{"text":"do"}]},`
		response = `{"functionResponse":{"name":"look","id":"c2","response":{"output":"sunny"}}},`
	)
	checkMutations(t, Gemini, []mutation{
		{"an unknown member", `"toolConfig":{`, `"tool_config":{`, "unknown parameter"},
		{"an empty system instruction", `"Be brief."`, `""`, "empty string"},
		{"a system instruction that is text", `{"parts":[{"text":"Be brief."}]}`, `"Be brief."`, "expected an object"},
		{"no contents", `"contents":[`, `"contents":[],"labels":[`, "not empty"},
		{"the model first", `{"role":"user","parts":[{"text":"hello"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},`, ``, "roles alternate"},
		{"the user twice", asked, asked + asked, "roles alternate"},
		{"another API's role", `"role":"model"`, `"role":"assistant"`, "unknown value"},
		{"the model last", `,{"role":"user","parts":[{"functionResponse":{"name":"look","id":"c2","response":{"output":"sunny"}}},{"functionResponse":{"name":"look","response":{"output":"and now?"}}}]}`, ``, "ends with a user turn"},
		{"no parts", `"parts":[{"text":"do"}]`, `"parts":[]`, "not empty"},
		{"an empty text", `{"text":"do"}`, `{"text":""}`, "empty string"},
		{"an empty text of the model's", `{"text":"Hm."}`, `{"text":""}`, "empty text parameter"},
		{"a part of nothing", `{"text":"do"}`, `{}`, "must have one initialized field"},
		{"a part of two kinds", `{"text":"do"}`, `{"text":"do","inlineData":{"mimeType":"image/png","data":"aGk="}}`, "already set"},
		{"data that is no base64", `"data":"aGk="`, `"data":"%"`, "Base64 decoding failed"},
		{"no type of data", `"mimeType":"image/png"`, `"mimeType":"png"`, "Unsupported MIME type"},
		{"a result less", response, ``, "equal to the number of function call parts"},
		{"a result more", response, response + response, "no open call look c2"},
		{"a result for nothing", `{"text":"do"}`, response + `{"text":"do"}`, "no open call"},
		{"a result of another name", `{"functionResponse":{"name":"look","id"`, `{"functionResponse":{"name":"old","id"`, "no open call old c2"},
		{"a result of another ID", `{"functionResponse":{"name":"look","id":"c2"`, `{"functionResponse":{"name":"look","id":"c3"`, "no open call look c3"},
		{"a result behind words", response, `{"text":"x"},` + response, "must come first"},
		{"a result by the model", `{"text":"Hm."}`, `{"functionResponse":{"name":"look","response":{}}}`, "not allowed"},
		{"a call by the user", `{"text":"do"}`, `{"functionCall":{"name":"look","args":{}}}`, "not allowed"},
		{"a result that is text", `"response":{"output":"sunny"}`, `"response":"sunny"`, "expected an object"},
		{"arguments that are a string", `"args":{"at":"x"}`, `"args":"{}"`, "expected an object"},
		{"an odd name in a call", `"functionCall":{"name":"look","id"`, `"functionCall":{"name":"lo ok","id"`, "Invalid function name"},
		{"other arguments", `"args":{"at":"x"}`, `"args":{"at":"y"}`, "Corrupted thought signature"},
		{"other words", `{"text":"Hm."}`, `{"text":"Oh."}`, "Corrupted thought signature"},
		{"a signature of another's", signText("Hm."), "Zm9yZWlnbg==", "Corrupted thought signature"},
		{"a signature that is no base64", signText("Hm."), "%", "Base64 decoding failed"},
		{"thoughts of the user's", `{"text":"do"}`, `{"text":"do","thought":true}`, "belong to the model"},
		{"an odd name of a tool", `{"name":"old"`, `{"name":"1old"`, "Invalid function name"},
		{"a tool twice", `{"name":"old"`, `{"name":"look"`, "Duplicate function declaration"},
		{"a long name", `{"name":"old"`, `{"name":"` + strings.Repeat("o", 65) + `"`, "Invalid function name"},
		{"two schemas", `"parametersJsonSchema":{`, `"parameters":{"type":"OBJECT"},"parametersJsonSchema":{`, "cannot be set together"},
		{"a keyword of JSON Schema", `"parameters":{"type":"OBJECT"`, `"parameters":{"additionalProperties":false,"type":"OBJECT"`, "unknown parameter"},
		{"a keyword that nobody takes", `"parametersJsonSchema":{`, `"parametersJsonSchema":{"patternProperties":{},`, "unknown parameter"},
		{"two types", `"type":"STRING"`, `"type":["STRING"]`, "expected a string"},
		{"no type", `"type":"STRING",`, ``, "does not say its type"},
		{"an empty choice", `"enum":["a","b"]`, `"enum":["a",""]`, "empty string"},
		{"a choice of numbers", `{"type":"STRING","enum":["a","b"]}`, `{"type":"INTEGER","enum":["1"]}`, "only allowed for STRING"},
		{"an object of nothing", `{"type":"STRING","enum":["a","b"]}`, `{"type":"OBJECT"}`, "non-empty for OBJECT"},
		{"a list of anything", `{"type":"STRING","enum":["a","b"]}`, `{"type":"ARRAY"}`, "missing items"},
		{"one ID twice", `"functionCall":{"name":"look","args"`, `"functionCall":{"name":"look","id":"c2","args"`, "duplicate ID"},
		{"a required member that is none", `"required":["at"]`, `"required":["to"]`, "property is not defined"},
		{"something beside a reference", `"at":{"type":["string","null"]}`, `"at":{"$ref":"#/$defs/x","type":"string"}`, "beside $ref"},
		{"an unknown mode", `"mode":"AUTO"`, `"mode":"auto"`, "unknown value"},
		{"a mode without tools", `"tools":[`, `"labels":[`, "without function_declarations"},
		{"budget and level", `"thinkingBudget":-1`, `"thinkingBudget":-1,"thinkingLevel":"low"`, "cannot be set together"},
		{"an unknown level", `"thinkingBudget":-1`, `"thinkingLevel":"much"`, "unknown value"},
	})
}

// TestGeminiDemandsSignatures checks the rules that depend on the model.
func TestGeminiDemandsSignatures(t *testing.T) {
	talk := talks[Gemini]
	unsigned := strings.Replace(talk.body, `,"thoughtSignature":"`+signCall("look", map[string]any{"at": "x"})+`"`, "", 1)
	dummy := strings.Replace(talk.body, signCall("look", map[string]any{"at": "x"}), dummies[0], 1)
	level := strings.Replace(talk.body, `"thinkingBudget":-1`, `"thinkingLevel":"low"`, 1)
	earlier := strings.Replace(unsigned, `"and now?"}}}]}`, `"and now?"}}}]},{"role":"model","parts":[{"text":"So."}]},{"role":"user","parts":[{"text":"go on"}]}`, 1)
	for _, c := range []struct{ name, model, body, say string }{
		{"an older model", "gemini-2.5-pro", unsigned, ""},
		{"a signed call", "gemini-3-pro", talk.body, ""},
		{"no signature", "gemini-3-pro", unsigned, "missing a thought_signature"},
		{"no signature in an earlier turn", "gemini-3-pro", earlier, ""},
		{"a signature for want of one", "gemini-3.1-flash", dummy, ""},
		{"a level", "gemini-3-pro", level, ""},
		{"a level for an older model", "gemini-2.5-pro", level, "not supported for this model"},
	} {
		err := Validate(Gemini, "/v1beta/models/"+c.model+":streamGenerateContent?alt=sse", nil, []byte(c.body))
		if c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestPathsAndHeaders(t *testing.T) {
	for _, c := range []struct {
		format       Format
		path, header string
		say          string
	}{
		{Gemini, "/v1beta/models/m:streamGenerateContent", "application/json", "alt=sse"},
		{Gemini, "/v1beta/models/m:generateContent?alt=sse", "application/json", "alt=sse"},
		{Chat, "/v1/chat/completions", "text/plain", "Content-Type"},
		{Chat, "/v1/chat/completions", "application/json; charset=utf-8", ""},
		{Messages, "/v1/messages", "application/json", "anthropic-version"},
		{"morse", "/", "application/json", "unknown format"},
	} {
		err := Validate(c.format, c.path, http.Header{"Content-Type": {c.header}}, []byte(talks[c.format].body))
		if c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s %s: got %v", c.path, c.header, err)
		}
	}
	for path, want := range map[string]Format{
		"/v1/messages?beta=true":                                          Messages,
		"/openai/deployments/x/chat/completions?api-version=1":            Chat,
		"/v1/projects/p/publishers/google/models/g:streamGenerateContent": Gemini,
		"/v1/models": "", "/v1beta/models/m:countTokens": "", "/v1/completions": "",
	} {
		if got, _ := FormatOf(path); got != want {
			t.Errorf("%s is taken for %q", path, got)
		}
	}
}

// A model whose name has a slash is asked by its escaped name.
func TestEscapedNameOfAModel(t *testing.T) {
	h := NewHandler(Script{Models: []string{"org/m"}, Replies: []Reply{{Text: "x"}}}, Options{})
	if w := post(h, "/v1beta/models/org%2Fm:streamGenerateContent?alt=sse", hello[Gemini].body); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// FuzzValidate checks that no request breaks the checks, and that one which
// passes is answered.
func FuzzValidate(f *testing.F) {
	for i, format := range formats {
		f.Add(byte(i), []byte(talks[format].body))
		f.Add(byte(i), []byte(hello[format].body))
		f.Add(byte(i), []byte(`{"messages":[null,{"role":1,"content":[[]]}],"input":[{"type":[]}],"contents":[{"parts":{}}],"tools":{}}`))
	}
	f.Fuzz(func(t *testing.T, i byte, body []byte) {
		format := formats[int(i)%len(formats)]
		err := Validate(format, talks[format].path, nil, body)
		h := NewHandler(Script{Replies: []Reply{{Thinking: "a", Text: "b", Calls: []Call{{Tool: "c"}}}}}, Options{})
		if w := post(h, talks[format].path, string(body)); (w.Code == 200) != (err == nil) {
			t.Errorf("checked: %v; answered: %d %s", err, w.Code, w.Body)
		}
	})
}
