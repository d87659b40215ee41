package script

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

const leastOutput = 16 // of max_output_tokens

// reasoned begins the mark in the IDs of an answer that came with reasoning.
const reasoned = "r"

var (
	responseParams = []string{
		"model", "input", "instructions", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls",
		"max_output_tokens", "max_tool_calls", "temperature", "top_p", "top_logprobs", "reasoning", "include", "store",
		"text", "truncation", "metadata", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "user",
		"service_tier", "previous_response_id", "conversation", "background", "prompt", "context_management",
	}
	includes = []string{
		"reasoning.encrypted_content", "message.output_text.logprobs", "message.input_image.image_url",
		"file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
		"code_interpreter_call.outputs", "computer_call_output.output.image_url",
	}
	// otherItems are taken as they are: what the provider's own tools leave.
	otherItems = []string{
		"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call", "computer_call_output",
		"local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
		"mcp_list_tools", "mcp_call", "custom_tool_call", "custom_tool_call_output", "tool_search_call", "tool_search_output", "compaction",
	}
	efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
)

// checkResponses refuses what Responses refuses.
func checkResponses(r node) error {
	if t := r.get("max_tokens"); t.has {
		t.refuse("Unsupported parameter: in the Responses API, this parameter has moved to 'max_output_tokens'")
	}
	r.only(responseParams...)
	model := r.get("model").text()
	if !r.get("stream").flag() {
		r.get("stream").refuse("the scripted model only streams")
	}
	if i := r.get("instructions"); i.has {
		i.text()
	}
	r.get("max_output_tokens").whole(leastOutput)
	r.get("temperature").within(0, 2)
	if t := r.get("temperature"); t.has && ownSampling().MatchString(model) {
		t.refuse("Unsupported parameter: 'temperature' is not supported with this model")
	}
	if e := r.get("reasoning"); e.has {
		e.only("effort", "summary", "generate_summary")
		if e.get("effort").has {
			e.get("effort").oneOf(efforts...)
		}
		if e.get("summary").has {
			e.get("summary").oneOf("auto", "concise", "detailed")
		}
	}
	for _, i := range r.get("include").list() {
		i.oneOf(includes...)
	}
	r.get("store").flag()
	r.get("truncation").oneOf("auto", "disabled")
	checkCaching(r, model)
	checkChoice(r, checkTools(r, func(tool node) node {
		tool.only("type", "name", "description", "parameters", "strict")
		return tool
	}))
	c := itemsCheck{stored: r.get("store").v != false, made: map[string]bool{}, ids: map[string]bool{}}
	c.input(r.get("input"))
	return r.err()
}

// itemsCheck checks the items of an input one by one.
type itemsCheck struct {
	stored bool            // items without their encrypted content are known
	made   map[string]bool // call IDs of all calls
	open   []string        // calls without output so far
	ids    map[string]bool // of all items

	thought node            // the last reasoning
	waiting bool            // it waits for what it led to
	marks   map[string]bool // answers whose reasoning came
}

func (c *itemsCheck) input(n node) {
	c.marks = map[string]bool{}
	if n.isString() {
		n.text()
		return
	}
	for _, item := range n.filled() {
		c.item(item)
	}
	c.other()
	if len(c.open) > 0 {
		n.refuse("No tool output found for function call %s.", c.open[0])
	}
}

func (c *itemsCheck) item(n node) {
	kind := n.get("type")
	if !kind.has && n.get("role").has {
		c.message(n)
		return
	}
	switch kind.text() {
	case "message":
		c.message(n)
	case "reasoning":
		c.reasoning(n)
	case "function_call":
		n.only("type", "id", "call_id", "name", "arguments", "status")
		c.madeBy(n, "fc_")
		checkCall(n)
		id := n.get("call_id")
		if c.made[id.id(maxCallID)] {
			id.refuse("duplicate call_id: %s", id.str())
		}
		c.made[id.str()] = true
		c.open = append(c.open, id.str())
	case "function_call_output":
		n.only("type", "id", "call_id", "output", "status")
		c.other()
		c.id(n, "fc")
		id := n.get("call_id")
		if i := slices.Index(c.open, id.id(maxCallID)); i >= 0 {
			c.open = slices.Delete(c.open, i, i+1)
		} else {
			id.refuse("No tool call found for function call output with call_id %s.", id.str())
		}
		checkOutput(n.get("output"), inputParts)
	default:
		if !slices.Contains(otherItems, kind.str()) {
			kind.refuse("unknown type %q", kind.str())
		}
		c.madeBy(n, "")
	}
}

// id checks the optional ID of an item and returns it.
func (c *itemsCheck) id(n node, prefix string) string {
	id := n.get("id")
	if !id.has {
		return ""
	}
	s := id.id(maxCallID)
	if !strings.HasPrefix(s, prefix) {
		id.refuse("Expected an ID that begins with '%s'.", strings.TrimSuffix(prefix, "_"))
	}
	if c.ids[s] {
		id.refuse("Duplicate item found with id %s. Remove duplicate items from your input and try again.", s)
	}
	c.ids[s] = true
	if st := n.get("status"); st.has {
		st.oneOf("in_progress", "completed", "incomplete")
	}
	return s
}

// gaveOut matches the IDs of items that the player gave out with reasoning.
var gaveOut = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]+_(` + reasoned + `[0-9a-f]{8})(_|$)`)
})

// mark returns the mark in the ID of such an item, or "".
func mark(id string) string {
	if m := gaveOut().FindStringSubmatch(id); m != nil {
		return m[1]
	}
	return ""
}

// madeBy checks an item of the model's against the reasoning that led to it.
func (c *itemsCheck) madeBy(n node, prefix string) {
	id := c.id(n, prefix)
	if c.waiting && id != "" && mark(id) != mark(c.thought.get("id").str()) {
		c.lonely()
	}
	c.waiting = false
	if m := mark(id); m != "" && !c.marks[m] {
		n.refuse("Item '%s' of type '%s' was provided without its required 'reasoning' item: 'rs_%s'.", id, or(n.get("type").str(), "message"), m)
	}
}

// other is called for what is no item of the model's: reasoning cannot stand
// before it.
func (c *itemsCheck) other() {
	if c.waiting {
		c.lonely()
	}
	c.waiting = false
}

func (c *itemsCheck) lonely() {
	c.thought.refuse("Item '%s' of type 'reasoning' was provided without its required following item.", c.thought.get("id").str())
}

func (c *itemsCheck) reasoning(n node) {
	n.only("type", "id", "summary", "encrypted_content", "content", "status")
	c.other()
	id := n.get("id")
	id.text()
	c.id(n, "rs_")
	words := []string{id.str()}
	if s := n.get("summary"); !s.has {
		s.refuse("expected a list, but got %s", s.kind())
	}
	for _, part := range n.get("summary").list() {
		part.only("type", "text")
		part.get("type").oneOf("summary_text")
		words = append(words, part.get("text").text())
	}
	switch sealed := n.get("encrypted_content"); {
	case sealed.has && sealed.str() != seal("reasoning", words...):
		sealed.refuse("The encrypted content for item %s could not be verified.", id.str())
	case !sealed.has && !c.stored:
		n.refuse("Item with id '%s' not found. Items are not persisted when `store` is set to false.", id.str())
	}
	c.marks[mark(id.str())] = true
	c.thought, c.waiting = n, true
}

func (c *itemsCheck) message(n node) {
	n.only("type", "role", "content", "id", "status", "phase")
	role := n.get("role")
	switch role.oneOf("user", "assistant", "system", "developer") {
	case "assistant":
		c.madeBy(n, "msg_")
		checkParts(n.get("content"), outputParts)
	case "":
		role.refuse("expected a role")
	default:
		c.other()
		c.id(n, "msg_")
		checkParts(n.get("content"), inputParts)
	}
}

var (
	inputParts = partRules{
		"input_text": func(p node) {
			p.only("type", "text", "prompt_cache_breakpoint")
			p.get("text").text()
			p.breakpoint()
		},
		"input_image": func(p node) {
			p.only("type", "image_url", "file_id", "detail", "prompt_cache_breakpoint")
			p.breakpoint()
			p.get("detail").oneOf("auto", "low", "high", "original")
			if p.exclusive("image_url", "file_id") == "" {
				p.refuse("expected image_url or file_id")
			}
			if u := p.get("image_url"); u.has {
				checkImageURL(u)
			}
		},
		"input_file": func(p node) {
			p.only("type", "file_data", "file_id", "file_url", "filename", "prompt_cache_breakpoint")
			p.breakpoint()
			if p.exclusive("file_data", "file_id", "file_url") == "" {
				p.refuse("expected file_data, file_id or file_url")
			}
			if d := p.get("file_data"); d.has {
				checkData(d, "")
				p.get("filename").text()
			}
		},
	}
	outputParts = partRules{
		"output_text": func(p node) {
			p.only("type", "text", "annotations", "logprobs")
			p.get("text").text()
			p.get("annotations").list()
		},
		"refusal": func(p node) { p.only("type", "refusal"); p.get("refusal").text() },
	}
)
