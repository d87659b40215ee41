package completions

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dure/agent"
)

// The bounds of what a request holds.
const (
	maxMessages = 2000
	maxParts    = 2000 // of all messages
	maxMedia    = 20
	maxImage    = 10 << 20 // bytes of an image or a document, decoded
	maxText     = 8 << 20  // bytes of the prompt
	maxName     = 200      // bytes of a name of a model, a session, a file
	maxURL      = 4 << 10  // bytes of an address of an image
)

// request is what the API lets a client say, as far as it counts here. What would change
// the answer, and is not done, is refused; what only advises the model is not read.
type request struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	Store         *bool           `json:"store"`
	Metadata      map[string]any  `json:"metadata"`
	N             *int            `json:"n"`
	Tools         []any           `json:"tools"`
	Functions     []any           `json:"functions"`
	ToolChoice    any             `json:"tool_choice"`
	Stop          any             `json:"stop"`
	Logprobs      *bool           `json:"logprobs"`
	Modalities    []string        `json:"modalities"`
	Format        *responseFormat `json:"response_format"`
	Search        any             `json:"web_search_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type responseFormat struct {
	Type string `json:"type"`
}

// message is one of a conversation.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Refusal string          `json:"refusal"`
	Calls   []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// part is a part of a message.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
		ID   string `json:"file_id"`
	} `json:"file"`
}

// asked is what a request comes to.
type asked struct {
	model   string // "" = that of the session, or of the settings
	session string // "" = a new one
	keep    bool
	stream  bool
	usage   bool // at the end of a stream

	text   string
	blocks []agent.Block
}

// read reads a request.
func read(w http.ResponseWriter, r *http.Request) (asked, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return asked{}, refuse(http.StatusUnsupportedMediaType, "content_type", "", "the request has to be application/json")
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		return asked{}, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return asked{}, refuse(http.StatusRequestEntityTooLarge, "too_large", "", fmt.Sprintf("a request has at most %d bytes", maxBody))
	}
	if err != nil {
		return asked{}, refuse(http.StatusBadRequest, "incomplete", "", "the request did not come to its end")
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil { // else it would seem that the client has left
		return asked{}, err
	}
	return parse(data, r.Header.Values(Header))
}

// parse reads the body of a request, and the header that names its session.
func parse(data []byte, header []string) (asked, error) {
	var q request
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&q); err != nil {
		return asked{}, invalid("", "the request is no JSON that says one: "+err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return asked{}, invalid("", "the request goes on behind its JSON")
	}
	if err := q.possible(); err != nil {
		return asked{}, err
	}
	in := asked{stream: q.Stream, usage: q.StreamOptions != nil && q.StreamOptions.IncludeUsage, keep: q.Store == nil || *q.Store}
	if q.Model != usual {
		in.model = q.Model
	}
	if len(q.Model) > maxName {
		return asked{}, invalid("model", "the name of the model is too long")
	}
	var err error
	if in.session, err = q.session(header); err != nil {
		return asked{}, err
	}
	return q.prompt(in)
}

func invalid(param, message string) error {
	return refuse(http.StatusBadRequest, "invalid_value", param, message)
}

// possible refuses what a session cannot do.
func (q request) possible() error {
	no := func(param, message string) error {
		return refuse(http.StatusBadRequest, "unsupported_parameter", param, message)
	}
	stops, _ := q.Stop.([]any)
	switch {
	case q.N != nil && *q.N != 1:
		return no("n", "there is one answer to a request: leave n out")
	case len(q.Tools) > 0 && q.ToolChoice != "none":
		return no("tools", "tools run inside of dure, which has its own: leave tools out, or give them to dure as a server of the Model Context Protocol")
	case len(q.Functions) > 0:
		return no("functions", "functions run inside of dure, which has its own: leave functions out")
	case q.Stop != nil && (stops == nil || len(stops) > 0):
		return no("stop", "a turn is not stopped at a text: leave stop out")
	case q.Logprobs != nil && *q.Logprobs:
		return no("logprobs", "probabilities are not told: leave logprobs out")
	case q.Format != nil && q.Format.Type != "" && q.Format.Type != "text":
		return no("response_format", "the answer is text: leave response_format out")
	case q.Search != nil:
		return no("web_search_options", "whether the web is searched is up to the tools of dure: leave web_search_options out")
	}
	for _, m := range q.Modalities {
		if m != "text" {
			return no("modalities", "the answer is text: leave modalities out")
		}
	}
	return nil
}

// session returns the session that a request names.
func (q request) session(header []string) (string, error) {
	named, given := q.Metadata["session"]
	id, ok := named.(string)
	switch {
	case given && !ok:
		return "", invalid("metadata.session", "metadata.session is the ID of a session, a string")
	case len(header) > 1 || len(header) == 1 && given && header[0] != id:
		return "", invalid("metadata.session", "the request names two sessions")
	case len(header) == 1:
		id = header[0]
	}
	if len(id) > maxName {
		return "", invalid("metadata.session", "the ID of the session is too long")
	}
	return id, nil
}

// prompt makes one input of the messages. A session that goes on has heard what stands up
// to the last answer.
func (q request) prompt(in asked) (asked, error) {
	if len(q.Messages) == 0 || len(q.Messages) > maxMessages {
		return in, invalid("messages", fmt.Sprintf("a request has 1 to %d messages", maxMessages))
	}
	last := -1
	for i, m := range q.Messages {
		if m.Role == "assistant" {
			last = i
		}
	}
	if last == len(q.Messages)-1 {
		return in, invalid("messages", "the last message is an answer: there is nothing to say to it")
	}
	messages := q.Messages
	if in.session != "" {
		messages = messages[last+1:]
		last = -1
	}
	t := telling{}
	for i, m := range messages {
		if err := t.add(m, i <= last); err != nil {
			return in, err
		}
	}
	in.text, in.blocks = t.prompt(), t.blocks
	if len(in.text) > maxText {
		return in, invalid("messages", fmt.Sprintf("the messages have more than %d bytes of text", maxText))
	}
	if strings.TrimSpace(in.text) == "" && len(in.blocks) == 0 {
		return in, invalid("messages", "the messages say nothing")
	}
	return in, nil
}

// telling gathers the messages of a request.
type telling struct {
	rules  []string // of the client's system messages
	past   []string
	now    []string
	blocks []agent.Block
	parts  int
}

// add adds a message; past says that an answer came behind it.
func (t *telling) add(m message, past bool) error {
	text, err := t.text(m)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		t.rules = append(t.rules, text)
	case "user":
		if past {
			t.past = append(t.past, "[user]\n"+text)
		} else {
			t.now = append(t.now, text)
		}
	case "assistant":
		for _, c := range m.Calls {
			text += "\n[called " + c.Function.Name + " with " + c.Function.Arguments + "]"
		}
		t.past = append(t.past, "[assistant]\n"+text)
	case "tool", "function":
		if past {
			t.past = append(t.past, "[result of a call]\n"+text)
		} else {
			t.now = append(t.now, "[result of a call]\n"+text)
		}
	default:
		return invalid("messages", "the role of a message is system, developer, user, assistant or tool")
	}
	return nil
}

// prompt is what the messages say, as one input.
func (t *telling) prompt() string {
	present := func(s string) bool { return strings.TrimSpace(s) == "" }
	t.rules, t.now = slices.DeleteFunc(t.rules, present), slices.DeleteFunc(t.now, present)
	var out []string
	if len(t.rules) > 0 {
		out = append(out, "<instructions>\n"+strings.Join(t.rules, "\n\n")+"\n</instructions>")
	}
	if len(t.past) > 0 {
		out = append(out, "<conversation>\n"+strings.Join(t.past, "\n\n")+"\n</conversation>")
	}
	return strings.Join(append(out, t.now...), "\n\n")
}

// text returns the text of a message, and takes what else there is of it.
func (t *telling) text(m message) (string, error) {
	content := bytes.TrimSpace(m.Content)
	if len(content) == 0 || string(content) == "null" {
		return m.Refusal, nil
	}
	if content[0] == '"' {
		var s string
		err := json.Unmarshal(content, &s)
		return s, err
	}
	var parts []part
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", invalid("messages", "the content of a message is a string, or a list of parts")
	}
	if t.parts += len(parts); t.parts > maxParts {
		return "", invalid("messages", fmt.Sprintf("the messages have more than %d parts", maxParts))
	}
	var said []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			said = append(said, p.Text)
		case p.Type == "refusal":
			said = append(said, p.Refusal)
		case p.Type == "image_url" && p.Image != nil:
			b, err := image(p.Image.URL)
			if err != nil {
				return "", err
			}
			t.blocks = append(t.blocks, b)
		case p.Type == "file" && p.File != nil:
			b, err := document(p.File.Data, p.File.Name)
			if err != nil {
				return "", err
			}
			t.blocks = append(t.blocks, b)
		default:
			return "", invalid("messages", "a part of a message is of type text, image_url or file")
		}
		if len(t.blocks) > maxMedia {
			return "", invalid("messages", fmt.Sprintf("the messages have more than %d images and files", maxMedia))
		}
	}
	return strings.Join(said, "\n"), nil
}

var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// image is an image of a message. Nothing is fetched for a client: an address goes to the
// model's provider as it is.
func image(address string) (agent.Block, error) {
	if !strings.HasPrefix(address, "data:") {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" || u.Host == "" || len(address) > maxURL {
			return agent.Block{}, invalid("messages", "an image is a data: or an https: URL")
		}
		return agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: kindOf(u.Path), URL: address}}, nil
	}
	kind, data, err := inline(address)
	if err != nil {
		return agent.Block{}, err
	}
	if !slices.Contains(images, kind) || !slices.Contains(images, http.DetectContentType(data)) {
		return agent.Block{}, invalid("messages", "an image is one of "+strings.Join(images, ", "))
	}
	return agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: kind, Data: data}}, nil
}

// kindOf guesses the type of an image by the end of its path.
func kindOf(path string) string {
	if kind := mime.TypeByExtension(path[max(0, strings.LastIndexByte(path, '.')):]); slices.Contains(images, kind) {
		return kind
	}
	return "image/png"
}

// document is a file of a message.
func document(address, name string) (agent.Block, error) {
	kind, data, err := inline(address)
	if err != nil {
		return agent.Block{}, err
	}
	if kind != "application/pdf" || http.DetectContentType(data) != kind {
		return agent.Block{}, invalid("messages", "a file is a PDF, as a data: URL in file_data")
	}
	if len(name) > maxName {
		name = ""
	}
	return agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: kind, Name: strings.ToValidUTF8(name, ""), Data: data}}, nil
}

// inline is what a data: URL holds.
func inline(address string) (kind string, data []byte, err error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ",")
	kind, base64ed := strings.CutSuffix(head, ";base64")
	if !ok || !base64ed || !strings.HasPrefix(address, "data:") {
		return "", nil, invalid("messages", "an image or a file is a data: URL in base64")
	}
	if base64.StdEncoding.DecodedLen(len(body)) > maxImage+2 {
		return "", nil, invalid("messages", fmt.Sprintf("an image or a file has more than %d bytes", maxImage))
	}
	if data, err = base64.StdEncoding.DecodeString(body); err != nil || len(data) == 0 {
		return "", nil, invalid("messages", "the base64 of an image or a file is broken")
	}
	return kind, data, nil
}
