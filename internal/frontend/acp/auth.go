package acp

import (
	"context"

	"dure/internal/frontend/text"
)

// The ways to sign in.
const (
	loginKept     = "kept-key" // somebody has run dure login, or set a variable
	loginTerminal = "terminal"
)

// logins are the ways to sign in that a client can be shown.
func (s *Server) logins() []authMethod {
	t := s.c.Text
	all := []authMethod{{ID: loginKept, Name: t.Say(text.ACPKept), Description: t.Say(text.ACPKeptIs)}}
	if s.can().Auth.Terminal {
		all = append(all, authMethod{Type: "terminal", ID: loginTerminal, Name: t.Say(text.ACPLogin), Description: t.Say(text.ACPLoginIs), Args: s.c.Login})
	}
	return all
}

// authenticate looks whether a model can be asked. Keys go through a terminal alone, and
// never through a client.
func (s *Server) authenticate(ctx context.Context, in loginIn) (any, error) {
	switch in.Method {
	case loginKept:
		if err := s.c.Ready(ctx); err != nil {
			return nil, s.unsigned(err)
		}
		return struct{}{}, nil
	case loginTerminal:
		return nil, badParams("%q is run in a terminal", loginTerminal)
	}
	return nil, badParams("there is no way to sign in called %q", text.Cut(text.OneLine(in.Method), 80))
}

// unsigned is an error that says that somebody has to sign in.
func (s *Server) unsigned(err error) error {
	w := *s.fault(err)
	w.Code = codeAuth
	return &w
}
