package script

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"dure/agent"
)

// A Format is the wire format of one API.
type Format string

// Wires are the protocols of the formats, as the settings of providers name them.
var Wires = []string{"anthropic", "chat", "responses", "gemini"}

// The formats, with the ends of the paths by which requests are recognised.
const (
	Messages  Format = "messages"  // /messages: Anthropic Messages
	Chat      Format = "chat"      // /chat/completions: OpenAI Chat Completions
	Responses Format = "responses" // /responses: OpenAI Responses
	Gemini    Format = "gemini"    // /models/NAME:streamGenerateContent: Google Gemini
)

var geminiPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/models/([^/:]+):streamGenerateContent$`)
})

// FormatOf returns the format that is spoken at a path, which may have a query.
func FormatOf(path string) (f Format, ok bool) {
	path, _, _ = strings.Cut(path, "?")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat, true
	case strings.HasSuffix(path, "/messages"):
		return Messages, true
	case strings.HasSuffix(path, "/responses"):
		return Responses, true
	case geminiPath().MatchString(path):
		return Gemini, true
	}
	return "", false
}

// Validate checks a request as the API of a format would, and rather more
// strictly than less: what only some servers refuse is refused here. path is
// that of the request with its query, and needed by Gemini alone; a nil header
// is not checked. The error says what the API would say.
func Validate(f Format, path string, header http.Header, body []byte) error {
	a, ok := apis[f]
	if !ok {
		return fmt.Errorf("validating request: unknown format %q", f)
	}
	if err := checkHeader(f, header); err != nil {
		return err
	}
	p, err := a.read(path, body, false)
	if err != nil {
		return err
	}
	return p.check()
}

// checkHeader refuses headers without which the API does not read a body.
func checkHeader(f Format, header http.Header) error {
	if header == nil {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != "application/json" {
		return invalid("Content-Type must be application/json")
	}
	if f == Messages && header.Get("Anthropic-Version") == "" {
		return invalid("anthropic-version: header is required")
	}
	return nil
}

// An api is one wire format, in both directions.
type api interface {
	// read takes a request apart. With quick it finds no more than what a reply
	// depends on, without parsing the body where that is possible.
	read(path string, body []byte, quick bool) (prompt, error)

	// refusal returns the body of an answer that is an error.
	refusal(f *failure, id string) []byte

	play(p *player, t take)        // a whole reply
	trouble(p *player, f *failure) // an error in the middle of a stream
	ping(p *player)                // a sign of life that says nothing
}

var apis = map[Format]api{Messages: messagesAPI{}, Chat: chatAPI{}, Responses: responsesAPI{}, Gemini: geminiAPI{}}

// A prompt is a request that was taken apart.
type prompt struct {
	step  int    // answers in it
	last  string // text of its last message
	model string

	counts bool // chat: the stream is to end with the usage
	sealed bool // responses: reasoning is to come with its encrypted content

	check func() error         // refuses what the API refuses; nil when quick
	count func(c *cache) usage // what reading it costs; nil when quick
}

// A take is one reply as it is played.
type take struct {
	prompt
	reply Reply
	cost  usage
	usage agent.Usage
	body  []byte // of the request
	sum   string // the same for the same request
}

// thinks reports whether the reply comes with reasoning.
func (t take) thinks() bool { return t.reply.Thinking != "" || t.reply.Redacted != "" }

// thought is how many of the output's tokens are reasoning.
func (t take) thought() int { return min(tokens(len(t.reply.Thinking)), t.usage.Output) }

// callID returns the ID of call i: what the script says, or one that is unique
// in the conversation and the same for the same request. made counts the calls
// that the conversation has.
func (t take) callID(prefix string, made, i int) string {
	if id := t.reply.Calls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("%s%d_%s_%d", prefix, made, t.sum, i)
}

// failure is an answer that is an error of the API. An empty kind is that of
// the status.
type failure struct {
	status  int
	kind    string
	code    string // the formats of OpenAI have one
	param   string // where the request is wrong
	message string

	after string // what Retry-After says
	last  bool   // in a stream: what ends it for good
}

func (f *failure) Error() string { return f.message }

func invalid(format string, args ...any) error {
	return &failure{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// compact returns a value as JSON without spaces and without escapes for HTML.
func compact(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // only called with what encodes
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
