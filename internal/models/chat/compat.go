package chat

import (
	"net"
	"net/url"
	"strings"
)

// Compat is what is peculiar to an endpoint, as plain data. The zero value is
// what unknown servers understand.
type Compat struct {
	CompletionTokens bool // the limit is called max_completion_tokens, not max_tokens
	Developer        bool // the system prompt has the role developer, not system
	NoUsage          bool // stream_options are refused: counts come unasked, or not at all
	Unpadded         bool // ask that events are not padded (include_obfuscation)
	NoEffort         bool // reasoning_effort is refused
	Strict           bool // mark tools as strict whose schemas are fit for it
	CacheKey         bool // send a prompt_cache_key that stays the same for a conversation
	FixedTemperature bool // models that think take no temperature

	// Parallel is sent as parallel_tool_calls when there are tools, and Store as
	// store. Nil leaves it to the endpoint.
	Parallel *bool
	Store    *bool

	TextOnly  bool // every content is a string: neither images nor documents can be sent
	ToolParts bool // results are a list of parts rather than a string
	EmptyText bool // an answer without text has the content "" rather than null

	// Bridge puts a word of the assistant between a result and what the user
	// says next, for servers that refuse a user behind a tool.
	Bridge bool

	// CallIDs is the number of letters and digits that the ID of a call has to
	// have. 0 = up to 40 of any that are usual.
	CallIDs int

	// Reasoning is the member in which thinking goes back with the answer that
	// it led to: reasoning_content or reasoning. "" = it does not go back.
	Reasoning string

	// ReasoningDetails keeps the list of that name, as it came, and sends it back.
	ReasoningDetails bool

	// ThinkTags takes what stands between <think> and </think> at the start of
	// an answer for thinking.
	ThinkTags bool
}

// CompatFor returns what is known of the endpoint at a base URL: of the public
// services from their documentation, of a server on this machine that it may
// leave thinking in the text. Others get the zero value.
func CompatFor(base string) Compat {
	u, err := url.Parse(base)
	if err != nil {
		return Compat{}
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case base == "" || within(host, "api.openai.com"):
		return Compat{
			CompletionTokens: true, Developer: true, Unpadded: true, FixedTemperature: true,
			Strict: true, Store: new(bool), CacheKey: true,
		}
	case within(host, "api.deepseek.com"):
		return Compat{Reasoning: "reasoning_content"}
	case within(host, "api.mistral.ai"):
		return Compat{NoUsage: true, Bridge: true, CallIDs: 9, EmptyText: true}
	case within(host, "openrouter.ai"):
		return Compat{ReasoningDetails: true}
	case within(host, "api.x.ai"), within(host, "api.groq.com"):
		return Compat{}
	case isLoopback(host):
		return Compat{ThinkTags: true}
	}
	return Compat{}
}

// within reports whether host is domain, or below it.
func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
