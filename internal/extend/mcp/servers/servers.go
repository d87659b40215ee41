// Package servers knows which servers of the Model Context Protocol a person,
// a folder, a plugin or an administrator has named: what starts or reaches each of
// them, and where that was written. It starts and reaches none itself.
package servers

import "time"

// The ways to speak with a server.
const (
	Stdio = "stdio" // a process of ours, over its standard streams
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // the transport that streamable HTTP took the place of
	SDK   = "sdk"   // inside the program that embeds this one
)

// A Server is one definition, with its variables expanded.
type Server struct {
	Name string
	Type string // Stdio, HTTP, SSE or SDK

	Command string // of Stdio
	Args    []string
	Env     map[string]string
	Dir     string

	URL           string // of HTTP and SSE
	Headers       map[string]string
	HeadersHelper string // a command that prints further headers as a JSON object
	OAuth         *OAuth

	Timeout    time.Duration // of a call; 0: the usual one
	Startup    time.Duration // until it answers; 0: the usual one
	AlwaysLoad bool          // its tools are always listed
	Unconfined bool          // of Stdio: it runs outside of the sandbox; a person has said so, and no project

	Values map[string]string // of the variables that were put in, by name: nobody is told them

	Source string // the file, or how it was given
	Scope  string // one of the scopes
}

// OAuth is what a definition says of signing in.
type OAuth struct {
	ClientID     string
	ClientSecret string
	CallbackPort int
	Scopes       []string
	MetadataURL  string
}
