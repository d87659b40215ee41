package mcp

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
)

// Bounds of results.
const (
	maxText       = 8 << 20
	maxStructured = 1 << 20
	maxImages     = 20
	maxImage      = 5 << 20
	maxParts      = 1000
)

// parts gathers what a model reads of contents.
type parts struct {
	s      *Set
	text   strings.Builder
	blocks []agent.Block
	full   bool
}

// result makes a result of the answer to a call.
func (s *Set) result(res *sdk.CallToolResult) agent.Result {
	if res == nil {
		return agent.Failure(agent.ErrTool, "The server gave no answer.", "")
	}
	p := &parts{s: s}
	p.all(res.Content)
	out := agent.Result{Status: agent.StatusOK, Text: p.text.String(), Blocks: p.blocks}
	if res.StructuredContent != nil {
		data, err := json.Marshal(res.StructuredContent)
		switch {
		case err != nil || len(data) > maxStructured:
			p.say("[its structured answer is longer than 1 MiB and left out]")
			out.Text = p.text.String()
		default:
			out.Output = data
		}
	}
	if out.Text == "" && out.Output == nil && len(out.Blocks) == 0 {
		out.Text = "[the answer is empty]"
	}
	if res.IsError {
		if out.Text == "" {
			out.Text = string(out.Output)
		}
		out.Status = agent.StatusError
		out.Error = &agent.ToolError{Code: agent.ErrTool, Message: tidy(out.Text, maxProblem)}
	}
	return out
}

// all takes contents.
func (p *parts) all(list []sdk.Content) {
	for i, c := range list {
		if i == maxParts {
			p.say(fmt.Sprintf("[%d more parts are left out]", len(list)-i))
			return
		}
		p.take(c)
	}
}

func (p *parts) take(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		p.say(c.Text)
	case *sdk.ImageContent:
		p.media("image", c.MIMEType, "", c.Data)
	case *sdk.AudioContent:
		p.say(fmt.Sprintf("[audio, %s, %d bytes: models here do not hear]", line(c.MIMEType, 64), len(c.Data)))
	case *sdk.ResourceLink:
		p.link(c)
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			p.resource(c.Resource)
		}
	default:
		p.say("[a part that this program does not know]")
	}
}

// say adds a text on lines of its own.
func (p *parts) say(text string) {
	if p.full || text == "" {
		return
	}
	if p.text.Len() > 0 {
		p.text.WriteByte('\n')
	}
	if room := maxText - p.text.Len(); len(text) > room {
		p.text.WriteString(strings.ToValidUTF8(text[:room], "") + "\n[the rest is left out: an answer has at most 8 MiB]")
		p.full = true
		return
	}
	p.text.WriteString(strings.ToValidUTF8(text, "\ufffd"))
}

// link names something that can be read.
func (p *parts) link(c *sdk.ResourceLink) {
	text := fmt.Sprintf("[resource %s: %s", line(c.Name, maxRemote), line(c.URI, maxURI))
	if c.MIMEType != "" {
		text += ", " + line(c.MIMEType, 64)
	}
	if c.Description != "" {
		text += ": " + line(c.Description, maxWords)
	}
	p.say(text + "]")
}

// resource takes what a resource holds.
func (p *parts) resource(r *sdk.ResourceContents) {
	if r.Blob == nil {
		p.say(fmt.Sprintf("[resource %s]", line(r.URI, maxURI)))
		p.say(r.Text)
		return
	}
	p.media("resource "+line(r.URI, maxURI), r.MIMEType, r.URI, r.Blob)
}

// media takes an image or a document.
func (p *parts) media(what, kind, name string, data []byte) {
	b, ok := picture(kind, data)
	if !ok && mediaType(kind) == "application/pdf" && len(data) <= maxImage {
		b, ok = agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", Name: line(name, maxRemote), Data: data}}, true
	}
	if !ok || len(p.blocks) >= maxImages {
		p.say(fmt.Sprintf("[%s, %s, %d bytes: it cannot be shown]", what, line(kind, 64), len(data)))
		return
	}
	p.blocks = append(p.blocks, b)
}

// picture makes a block of an image that models take.
func picture(kind string, data []byte) (agent.Block, bool) {
	kind = mediaType(kind)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) || len(data) == 0 || len(data) > maxImage {
		return agent.Block{}, false
	}
	return agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: kind, Data: data}}, true
}

// mediaType is a MIME type without its parameters.
func mediaType(kind string) string {
	t, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return ""
	}
	return t
}
