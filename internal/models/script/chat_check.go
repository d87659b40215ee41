package script

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Limits of OpenAI's APIs.
const (
	maxChatID      = 40 // bytes of a tool call's ID
	maxCallID      = 64 // bytes of a call_id or an item's ID in Responses
	maxTools       = 128
	maxStops       = 4
	maxCacheKey    = 64
	maxBreakpoints = 4 // cache marks of a request
)

// The parameters of Chat Completions, and those that compatible servers add.
var (
	chatParams = []string{
		"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "seed", "n", "user",
		"frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format",
		"reasoning_effort", "verbosity", "store", "metadata", "service_tier", "prediction", "modalities",
		"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier",
	}
	chatExtras = []string{
		"reasoning", "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs", "extra_body",
		"top_k", "min_p", "repetition_penalty", "usage", "provider", "models", "transforms", "keep_alive", "options",
	}
)

// ownSampling are the models that take neither max_tokens nor a temperature.
var ownSampling = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(o\d|gpt-([5-9]|\d\d))`)
})

// checkChat refuses what Chat Completions refuses.
func checkChat(r node) error {
	r.only(slices.Concat(chatParams, chatExtras)...)
	model := r.get("model").text()
	if !r.get("stream").flag() {
		r.get("stream").refuse("the scripted model only streams")
	}
	if o := r.get("stream_options"); o.has {
		o.only("include_usage", "include_obfuscation")
		o.get("include_usage").flag()
	}
	checkChatLimits(r, model)
	tools := checkTools(r, func(tool node) node {
		tool.only("type", "function", "cache_control")
		f := tool.get("function")
		f.only("name", "description", "parameters", "strict")
		return f
	})
	checkChoice(r, tools)
	checkChatMessages(r.get("messages"))
	return r.err()
}

func checkChatLimits(r node, model string) {
	r.get("max_tokens").whole(1)
	r.get("max_completion_tokens").whole(1)
	r.exclusive("max_tokens", "max_completion_tokens")
	r.get("temperature").within(0, 2)
	r.get("top_p").within(0, 1)
	if ownSampling().MatchString(model) {
		if t := r.get("max_tokens"); t.has {
			t.refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
		if t := r.get("temperature"); t.has && t.v != json.Number("1") {
			t.refuse("Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", t.v)
		}
	}
	if e := r.get("reasoning_effort"); e.has || e.null {
		e.text()
	}
	if s := r.get("stop"); s.has && !s.isString() {
		if l := s.filled(); len(l) > maxStops {
			s.refuse("list too long. Expected at most %d", maxStops)
		}
	}
	checkCaching(r, model)
}

// oldGPT are the models that take no cache marks.
var oldGPT = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(o\d|gpt-(3|4|5($|-|\.[0-5])))`)
})

// checkCaching checks what is said of the prompt's cache.
func checkCaching(r node, model string) {
	r.get("prompt_cache_key").short(maxCacheKey)
	r.exclusive("prompt_cache_retention", "prompt_cache_options")
	o := r.get("prompt_cache_options")
	if !o.has {
		return
	}
	o.only("mode", "ttl", "prewarm")
	o.get("mode").oneOf("implicit", "explicit")
	o.get("ttl").oneOf("30m")
	if oldGPT().MatchString(model) {
		o.refuse("Unsupported parameter: 'prompt_cache_options' is not supported with this model")
	}
}

// breakpoint counts a cache mark on a part of a content.
func (n node) breakpoint() {
	m := n.get("prompt_cache_breakpoint")
	if !m.has {
		return
	}
	m.only("mode")
	m.get("mode").oneOf("explicit")
	if n.says.marks++; n.says.marks > maxBreakpoints {
		m.refuse("a maximum of %d blocks with prompt_cache_breakpoint may be provided", maxBreakpoints)
	}
}

// short complains about a string that is there and longer than most.
func (n node) short(most int) {
	if n.has {
		n.id(most)
	}
}

// checkTools checks the functions of a request, which open finds in a tool, and
// returns their names.
func checkTools(r node, open func(tool node) node) (names []string) {
	list := r.get("tools")
	if !list.has && !list.null {
		return nil
	}
	tools := list.filled()
	if len(tools) > maxTools {
		list.refuse("list too long. Expected at most %d", maxTools)
	}
	for _, tool := range tools {
		if tool.get("type").oneOf("function") != "function" {
			tool.get("type").refuse("expected function")
			continue
		}
		f := open(tool)
		name := f.get("name")
		if !toolName().MatchString(name.text()) {
			name.refuse("string does not match pattern. Expected a string that matches the pattern %s", toolName())
		}
		if slices.Contains(names, name.str()) {
			name.refuse("duplicate function %s", name.str())
		}
		names = append(names, name.str())
		f.get("description").str()
		f.get("strict").flag()
		if p := f.get("parameters"); p.has || p.null {
			openSchema.check(p)
		}
	}
	return names
}

// checkChoice checks the parameters that need tools.
func checkChoice(r node, tools []string) {
	choice, parallel := r.get("tool_choice"), r.get("parallel_tool_calls")
	parallel.flag()
	for _, n := range []node{choice, parallel} {
		if n.has && len(tools) == 0 {
			n.refuse("only allowed when 'tools' are specified")
		}
	}
	switch {
	case choice.isString():
		choice.oneOf("none", "auto", "required")
	case choice.has || choice.null:
		choice.object()
		f := choice
		if choice.get("function").has {
			f = choice.get("function")
		}
		if name := f.get("name"); !slices.Contains(tools, name.text()) {
			name.refuse("no such tool: %s", name.str())
		}
	}
}

// checkChatMessages checks the messages: the system's first, and behind each
// message with calls exactly one result for each of them.
func checkChatMessages(list node) {
	made := map[string]bool{} // IDs of all calls
	var open []string         // calls that wait for their results
	begun := false
	for _, m := range list.filled() {
		role := m.get("role")
		name := role.oneOf("system", "developer", "user", "assistant", "tool")
		if name != "tool" && len(open) > 0 {
			m.refuse("an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. No response to: %s", strings.Join(open, ", "))
		}
		switch name {
		case "system", "developer":
			m.only("role", "content", "name")
			checkParts(m.get("content"), systemParts)
			if begun {
				m.refuse("a %s message must be at the beginning", name)
			}
			continue
		case "user":
			m.only("role", "content", "name")
			checkParts(m.get("content"), userParts)
		case "assistant":
			open = checkChatAnswer(m, made)
		case "tool":
			m.only("role", "content", "tool_call_id", "name")
			id := m.get("tool_call_id")
			if i := slices.Index(open, id.id(maxChatID)); i >= 0 {
				open = slices.Delete(open, i, i+1)
			} else {
				id.refuse("messages with role 'tool' must be a response to a preceding message with 'tool_calls': %s", id.str())
			}
			checkOutput(m.get("content"), toolParts)
		default:
			role.refuse("expected a role")
		}
		begun = true
	}
	if len(open) > 0 {
		list.refuse("an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. No response to: %s", strings.Join(open, ", "))
	}
	if !begun {
		list.refuse("there is no message but the system's")
	}
}

// checkChatAnswer checks an assistant message and returns the IDs of its calls.
func checkChatAnswer(m node, made map[string]bool) (open []string) {
	m.only("role", "content", "name", "refusal", "tool_calls", "reasoning_content", "reasoning", "reasoning_details", "extra_content", "prefix")
	list, content, refusal := m.get("tool_calls"), m.get("content"), m.get("refusal")
	if content.has && !(list.has && content.v == "") || !list.has && !refusal.has {
		checkParts(content, answerParts)
	}
	if refusal.has {
		refusal.text()
	}
	m.get("reasoning_content").str() // some servers want it empty with calls for which there was none
	if !list.has && !list.null {
		return nil
	}
	for _, c := range list.filled() {
		c.only("id", "type", "function", "extra_content", "index")
		if c.get("type").oneOf("function") == "" {
			c.get("type").refuse("expected function")
		}
		f := c.get("function")
		f.only("name", "arguments")
		checkCall(f)
		id := c.get("id")
		if made[id.id(maxChatID)] {
			id.refuse("duplicate ID of a tool call: %s", id.str())
		}
		made[id.str()] = true
		open = append(open, id.str())
	}
	return open
}

// checkCall checks name and arguments of a call.
func checkCall(f node) {
	if name := f.get("name"); !toolName().MatchString(name.text()) {
		name.refuse("string does not match pattern. Expected a string that matches the pattern %s", toolName())
	}
	arguments := f.get("arguments")
	var v map[string]any
	if err := json.Unmarshal([]byte(arguments.text()), &v); err != nil || v == nil {
		arguments.refuse("expected a string that holds a JSON object")
	}
}

// The parts of a content: what each kind of part must have.
type partRules map[string]func(part node)

var (
	textPart = func(p node) {
		p.only("type", "text", "cache_control", "prompt_cache_breakpoint")
		p.get("text").text()
		p.breakpoint()
	}
	saidPart = func(p node) { p.only("type", "text", "cache_control"); p.get("text").text() }

	systemParts = partRules{"text": textPart}
	toolParts   = partRules{"text": textPart}
	answerParts = partRules{
		"text":    saidPart,
		"refusal": func(p node) { p.only("type", "refusal"); p.get("refusal").text() },
	}
	userParts = partRules{
		"text": textPart,
		"image_url": func(p node) {
			p.only("type", "image_url", "cache_control", "prompt_cache_breakpoint")
			p.breakpoint()
			p.get("image_url").only("url", "detail")
			p.get("image_url").get("detail").oneOf("auto", "low", "high")
			checkImageURL(p.get("image_url").get("url"))
		},
		"input_audio": func(p node) {
			p.only("type", "input_audio")
			p.get("input_audio").get("data").text()
			p.get("input_audio").get("format").oneOf("wav", "mp3")
		},
		"file": func(p node) {
			p.only("type", "file", "cache_control", "prompt_cache_breakpoint")
			p.breakpoint()
			f := p.get("file")
			f.only("file_data", "file_id", "filename")
			if f.exclusive("file_data", "file_id") == "" {
				f.refuse("expected file_data or file_id")
			}
			if d := f.get("file_data"); d.has {
				checkData(d, "")
				f.get("filename").text()
			}
		},
	}
)

// checkParts checks a content: a string that says something, or a list of
// parts that are allowed.
func checkParts(content node, rules partRules) {
	if content.isString() || !content.has {
		content.text()
		return
	}
	for _, part := range content.filled() {
		kind := part.get("type")
		rule, ok := rules[kind.text()]
		if !ok {
			kind.refuse("unknown type %q", kind.str())
			continue
		}
		rule(part)
	}
}

// checkOutput checks the content of a result, which may be blank but not empty.
func checkOutput(content node, rules partRules) {
	if s, ok := content.v.(string); !ok || s == "" {
		checkParts(content, rules)
	}
}

var dataURL = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^data:([a-z]+/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]+={0,2})$`)
})

// checkImageURL complains about what is neither a web address nor an image.
func checkImageURL(url node) {
	if s := url.text(); !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		checkData(url, "image/")
	}
}

// checkData complains about what is no data URL of a type that begins with kind.
func checkData(url node, kind string) {
	m := dataURL().FindStringSubmatch(url.text())
	if m == nil || !strings.HasPrefix(m[1], kind) {
		url.refuse("expected a base64-encoded data URL with a MIME type that begins with %q", kind)
		return
	}
	if kind == "image/" && !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, m[1]) {
		url.refuse("unsupported image type %s", m[1])
	}
	if len(m[2])%4 != 0 {
		url.refuse("invalid base64")
	}
}
