package mcpserve

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// The addresses of resources.
const (
	sessionsURI = "dure://sessions"
	filesURI    = "dure://files/"
	maxPrompts  = 500
	maxValues   = 50
)

// offerResources offers the sessions and the files of the workspace.
func (s *Server) offerResources() {
	if s.c.Sessions != None {
		s.mcp.AddResource(&mcp.Resource{URI: sessionsURI, Name: "sessions", Description: "the sessions, newest first", MIMEType: "application/json"}, s.readSessions)
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: sessionsURI + "/{id}", Name: "session", Description: "what was said in a session, as Markdown", MIMEType: "text/markdown",
		}, s.readSession)
	}
	for _, t := range s.c.Tools {
		if t.Name == s.c.Read {
			s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
				URITemplate: filesURI + "{+path}", Name: "file", Description: "a file of the workspace, with the numbers of its lines", MIMEType: "text/plain",
			}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return s.readFile(ctx, req, t)
			})
		}
	}
}

func (s *Server) readSessions(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	all, err := s.listed(ctx, maxListed)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(all)
	return contents(req, "application/json", string(data)), err
}

func contents(req *mcp.ReadResourceRequest, mime, said string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mime, Text: said}}}
}

// readSession shows what was said in a session, its end if it is long.
func (s *Server) readSession(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	info, err := s.may(ctx, strings.TrimPrefix(req.Params.URI, sessionsURI+"/"))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var parts []string
	size := 0
	for e, err := range s.c.Client.Attach(info.ID).Events(reading, 0) {
		if err != nil {
			return nil, err
		}
		part := ""
		switch b := e.Body.(type) {
		case agent.InputAdded:
			part = "## Input\n\n" + b.Text
		case agent.ModelAnswered:
			if b.Purpose == "" && b.Said() != "" {
				part = "## Answer\n\n" + b.Said()
			}
		case agent.CallFinished:
			part = "- " + s.c.Name(b.Tool) + ": " + string(b.Result.Status)
		}
		if part != "" {
			parts, size = append(parts, cut(part, maxEvent)), size+min(len(part), maxEvent)
		}
		for ; size > maxAnswer && len(parts) > 1; parts = parts[1:] {
			size -= len(parts[0])
		}
		if !e.Live() && e.Seq >= info.Head {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return contents(req, "text/markdown", strings.Join(parts, "\n\n")), nil
}

// readFile reads a file by the tool that reads files: what that may not, nobody may. Nobody
// is asked.
func (s *Server) readFile(ctx context.Context, req *mcp.ReadResourceRequest, tool agent.Spec) (*mcp.ReadResourceResult, error) {
	path, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, filesURI))
	if err != nil || path == "" {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	input, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return nil, err
	}
	r, err := s.call(ctx, person{show: func(string) {}}, caller(req.ClientInfo()), tool, input)
	switch {
	case err != nil:
		return nil, err
	case r.Failed():
		return nil, invalid("%s", cut(r.Unfenced(), maxShownLine))
	}
	res := contents(req, "text/plain", r.Text)
	for _, b := range r.Blocks {
		if b.Media != nil && len(b.Media.Data) > 0 {
			res.Contents = append(res.Contents, &mcp.ResourceContents{URI: req.Params.URI, MIMEType: b.Media.Type, Blob: b.Media.Data})
		}
	}
	return res, nil
}

// offerPrompts offers the commands of files, and the skills.
func (s *Server) offerPrompts(ctx context.Context) error {
	all, err := client.Query[[]query.CommandInfo](ctx, s.c.Client, query.ListCommands{Workdir: s.c.Workdir, Language: s.c.Text.Language()})
	if err != nil {
		return err
	}
	n := 0
	for _, c := range all {
		if c.Kind == query.CommandBuiltIn || c.Off != "" || n >= maxPrompts {
			continue
		}
		n++
		s.mcp.AddPrompt(&mcp.Prompt{
			Name: c.Name, Description: c.Description,
			Arguments: []*mcp.PromptArgument{{Name: "arguments", Description: c.Hint}},
		}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			l, err := s.loan(false)
			if err != nil {
				return nil, err
			}
			said, err := l.Text(ctx, c.Name, req.Params.Arguments["arguments"])
			if err != nil {
				return nil, invalid("%s: %v", c.Name, err)
			}
			return &mcp.GetPromptResult{Description: c.Description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: said}}}}, nil
		})
	}
	return nil
}

// complete proposes the values of what resources take: paths and IDs of sessions.
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	ref, given := req.Params.Ref, req.Params.Argument.Value
	switch {
	case ref == nil || ref.Type != "ref/resource":
	case ref.URI == filesURI+"{+path}" && s.lends(s.c.Read):
		list, err := client.Query[[]string](ctx, s.c.Client, query.FindFiles{Text: given, Workdir: s.c.Workdir, Limit: maxValues})
		if err != nil {
			return nil, err
		}
		res.Completion.Values = append(res.Completion.Values, list...)
	case ref.URI == sessionsURI+"/{id}" && s.c.Sessions != None:
		all, err := s.listed(ctx, maxListed)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			if strings.HasPrefix(i.ID, given) && len(res.Completion.Values) < maxValues {
				res.Completion.Values = append(res.Completion.Values, i.ID)
			}
		}
	}
	return res, nil
}

// lends reports whether a tool is lent.
func (s *Server) lends(name string) bool {
	for _, t := range s.c.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
