package script

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// geminiName is what the API takes as the name of a function.
var geminiName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)
})

// dummies are signatures that the API takes from whoever has none to give: for
// calls that were made by another model.
var dummies = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkGemini refuses what Gemini refuses. Lists of unknown members are
// refused, as everywhere; so are the names in snake case, which the API takes.
func checkGemini(r node, model string) error {
	r.only("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent", "labels", "store", "serviceTier")
	if s := r.get("systemInstruction"); s.has || s.null {
		s.only("role", "parts")
		for _, p := range s.get("parts").filled() {
			p.only("text")
			p.get("text").text()
		}
	}
	names := checkDeclarations(r.get("tools"))
	if c := r.get("toolConfig"); c.has {
		checkToolConfig(c, names)
	}
	if g := r.get("generationConfig"); g.has || g.null {
		checkGeneration(g, model)
	}
	c := contentsCheck{demands: demandsSignatures(model)}
	c.contents(r.get("contents"))
	return r.err()
}

func checkDeclarations(list node) (names []string) {
	for _, tool := range list.list() {
		tool.only("functionDeclarations", "googleSearch", "codeExecution", "urlContext")
		if !tool.get("functionDeclarations").has {
			continue
		}
		for _, f := range tool.get("functionDeclarations").filled() {
			f.only("name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior")
			name := f.get("name")
			if !geminiName().MatchString(name.text()) {
				name.refuse("Invalid function name. It must fit %s", geminiName())
			}
			if slices.Contains(names, name.str()) {
				name.refuse("Duplicate function declaration found: %s", name.str())
			}
			names = append(names, name.str())
			f.get("description").str()
			f.exclusive("parameters", "parametersJsonSchema")
			if p := f.get("parameters"); p.has || p.null {
				geminiSchema.check(p)
			}
			if p := f.get("parametersJsonSchema"); p.has || p.null {
				geminiJSON.check(p)
			}
		}
	}
	return names
}

func checkToolConfig(c node, names []string) {
	c.only("functionCallingConfig", "retrievalConfig")
	f := c.get("functionCallingConfig")
	if !f.has {
		return
	}
	f.only("mode", "allowedFunctionNames")
	f.get("mode").oneOf("AUTO", "ANY", "NONE", "VALIDATED")
	if len(names) == 0 {
		f.refuse("Function calling config is set without function_declarations.")
	}
	for _, name := range f.get("allowedFunctionNames").list() {
		name.oneOf(names...)
	}
}

func checkGeneration(g node, model string) {
	g.only("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed", "presencePenalty",
		"frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "responseLogprobs",
		"logprobs", "mediaResolution", "thinkingConfig")
	g.get("temperature").within(0, 2)
	g.get("maxOutputTokens").whole(1)
	t := g.get("thinkingConfig")
	if !t.has {
		return
	}
	t.only("includeThoughts", "thinkingBudget", "thinkingLevel")
	t.get("includeThoughts").flag()
	t.get("thinkingBudget").whole(-1)
	t.exclusive("thinkingBudget", "thinkingLevel")
	if l := t.get("thinkingLevel"); l.has {
		if !slices.Contains([]string{"minimal", "low", "medium", "high"}, strings.ToLower(l.str())) {
			l.refuse("unknown value %q", l.str())
		}
		if geminiVersion().MatchString(model) && !demandsSignatures(model) {
			l.refuse("Thinking level is not supported for this model.")
		}
	}
}

// contentsCheck checks the turns of a conversation.
type contentsCheck struct {
	demands bool // calls of the current turn must be signed

	open []madeCall // calls of the last model turn that wait for their results
}

type madeCall struct{ name, id string }

func (c *contentsCheck) contents(list node) {
	contents := list.filled()
	current := 0 // content with which the current turn began: the last of the user's own
	for i, content := range contents {
		if role(content) == "user" && slices.ContainsFunc(content.get("parts").list(), func(p node) bool { return p.get("text").has || p.get("inlineData").has }) {
			current = i
		}
	}
	want := "user"
	for i, content := range contents {
		content.only("role", "parts")
		got := content.get("role").oneOf("user", "model", "function")
		if role(content) != want {
			content.get("role").refuse("Please ensure that roles alternate between user and model, from the user: got %q", got)
		}
		parts := content.get("parts").filled()
		if want == "model" {
			c.answer(parts, c.demands && i > current)
			want = "user"
		} else {
			c.asked(content, parts)
			want = "model"
		}
	}
	if want == "user" {
		list.refuse("Please ensure that the conversation ends with a user turn or a function response turn.")
	}
}

// role returns user for function, its older name.
func role(content node) string {
	s, _ := content.get("role").v.(string)
	if s == "function" {
		return "user"
	}
	return s
}

// answer checks the parts of a model turn. demands says that the first call of
// it must be signed.
func (c *contentsCheck) answer(parts []node, demands bool) {
	said := "" // text so far
	for i, p := range parts {
		signature := p.get("thoughtSignature")
		c.signed(signature)
		switch c.kind(p, "text", "functionCall", "inlineData", "executableCode", "codeExecutionResult") {
		case "text":
			thought := p.get("thought").flag()
			text := p.get("text").str()
			if !thought {
				said += text
			}
			if text == "" && !signature.has {
				p.get("text").refuse("empty text parameter")
			}
			if s := signature.str(); s != "" && !slices.Contains(dummies, s) && !signsText(s, said) {
				signature.refuse("Corrupted thought signature.")
			}
		case "functionCall":
			f := p.get("functionCall")
			f.only("name", "args", "id")
			if !geminiName().MatchString(f.get("name").text()) {
				f.get("name").refuse("Invalid function name. It must fit %s", geminiName())
			}
			if a := f.get("args"); a.has || a.null {
				a.object()
			}
			c.call(f)
			if s := signature.str(); s != "" && !slices.Contains(dummies, s) && s != signCall(f.get("name").str(), f.get("args").v) {
				signature.refuse("Corrupted thought signature.")
			}
			if demands && len(c.open) == 1 && !signature.has {
				p.refuse("Function call is missing a thought_signature in functionCall parts. Additional data, function call %s, position %d.", f.get("name").str(), i)
			}
		}
	}
}

func (c *contentsCheck) call(f node) {
	id := f.get("id").str()
	if id != "" && slices.ContainsFunc(c.open, func(m madeCall) bool { return m.id == id }) {
		f.get("id").refuse("duplicate ID of a function call: %s", id)
	}
	c.open = append(c.open, madeCall{f.get("name").str(), id})
}

// signed checks the form of a signature: bytes are in base64.
func (c *contentsCheck) signed(s node) {
	if !s.has || slices.Contains(dummies, s.str()) {
		return
	}
	if _, err := base64.StdEncoding.DecodeString(s.text()); err != nil {
		s.refuse("Invalid value (TYPE_BYTES): Base64 decoding failed")
	}
}

// partKinds are the members of a part that are its data.
var partKinds = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}

// kind returns which of some kinds a part is, which must be exactly one.
func (c *contentsCheck) kind(p node, kinds ...string) string {
	p.only(slices.Concat(partKinds, []string{"thought", "thoughtSignature", "videoMetadata", "mediaResolution"})...)
	found := ""
	for _, key := range partKinds {
		if !p.get(key).has {
			continue
		}
		if found != "" {
			p.refuse("oneof field 'data' is already set. Cannot set '%s'", key)
		}
		found = key
	}
	if found == "" {
		p.refuse("required oneof field 'data' must have one initialized field")
	} else if !slices.Contains(kinds, found) {
		p.get(found).refuse("not allowed in a content of this role")
	}
	return found
}

// asked checks the parts of a user turn: results of all open calls, or none of
// them when there is none, and what the user says.
func (c *contentsCheck) asked(content node, parts []node) {
	answered := 0
	want := len(c.open)
	for i, p := range parts {
		if p.get("thoughtSignature").has || p.get("thought").has {
			p.refuse("thoughts belong to the model")
		}
		switch c.kind(p, "text", "inlineData", "fileData", "functionResponse") {
		case "text":
			p.get("text").text()
		case "inlineData":
			checkInline(p.get("inlineData"))
		case "fileData":
			p.get("fileData").get("fileUri").text()
		case "functionResponse":
			if i != answered {
				p.refuse("function responses must come first")
			}
			answered++
			c.result(p.get("functionResponse"))
		}
	}
	if answered != want {
		content.refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn: %d and %d.", answered, want)
	}
	c.open = nil
}

// result checks one result and takes its call from the open ones.
func (c *contentsCheck) result(f node) {
	f.only("name", "response", "id", "parts", "willContinue", "scheduling")
	f.get("response").object()
	for _, p := range f.get("parts").list() {
		p.only("inlineData")
		checkInline(p.get("inlineData"))
	}
	name, id := f.get("name").text(), f.get("id").str()
	i := slices.IndexFunc(c.open, func(m madeCall) bool { return m.name == name && m.id == id })
	if i < 0 {
		f.refuse("Please ensure that function response turn comes immediately after a function call turn: no open call %s %s", name, id)
		return
	}
	c.open = slices.Delete(c.open, i, i+1)
}

var mimeType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)
})

func checkInline(d node) {
	if !d.only("mimeType", "data", "displayName") {
		return
	}
	if !mimeType().MatchString(d.get("mimeType").text()) {
		d.get("mimeType").refuse("Unsupported MIME type: %s", d.get("mimeType").str())
	}
	if _, err := base64.StdEncoding.DecodeString(d.get("data").text()); err != nil {
		d.get("data").refuse("Invalid value (TYPE_BYTES): Base64 decoding failed")
	}
}
