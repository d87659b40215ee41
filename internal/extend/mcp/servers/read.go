package servers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dure/internal/base/jsonc"
	"dure/internal/base/near"
	"dure/internal/tools/kit"
)

// The bounds of what definitions may hold.
const (
	maxFile    = 1 << 20  // bytes of a file
	maxServers = 200      // of a file
	maxName    = 128      // bytes
	maxList    = 500      // arguments, variables, headers
	maxText    = 32 << 10 // bytes of each
	maxFaults  = 100      // that are told of one file
	maxWait    = 24 * time.Hour
)

// FileName is the file with the servers of a project.
const FileName = ".mcp.json"

// The scopes, from the strongest to the weakest.
const (
	Managed = "managed" // the administrator's
	Given   = "given"   // on the command line, for one run
	Local   = "local"   // a person's own, for one folder
	Project = "project" // what a folder brings
	User    = "user"    // a person's own, everywhere
	Agent   = "agent"   // of a type of agents
	Plugin  = "plugin"
)

// Scopes are the scopes that servers are written to, the usual one first.
func Scopes() []string { return []string{Local, Project, User} }

// A Definition is what a file says of a server, before variables are put in.
type Definition struct {
	Server
	Line, Column int      // where it stands in its source; 0 = that is no file
	Hash         string   // of what it says: another text with the same meaning has the same one
	Vars         []string // the variables that it names
	Off          bool     // it says itself that it is not to be used
	Agent        string   // the type of agents that alone has it; "" = sessions have it
	Trusted      bool     // of a project: its source is trusted

	Lookup func(name string) (string, bool) // variables of its own, before all others; nil = none
}

// A Fault is what is wrong in a source.
type Fault struct {
	Path         string `json:"path"`
	Line, Column int    `json:",omitempty"`
	Server       string `json:"server,omitempty"` // "" = it is about the source as a whole
	What         string `json:"what"`
	Fix          string `json:"fix,omitempty"`
	Odd          bool   `json:"odd,omitempty"` // the server can be used all the same
}

func (f Fault) Error() string {
	where := f.Path
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.Path, f.Line, f.Column)
	}
	if f.Server != "" {
		return fmt.Sprintf("%s: the server %s: %s", where, f.Server, f.What)
	}
	return where + ": " + f.What
}

// A Source is a text with definitions.
type Source struct {
	Path  string // of the file, or how it was given
	Scope string
	Data  []byte // JSON, with comments or without

	// Bare is the object of the servers itself, and not one that has it at mcpServers.
	Bare bool
	Line int // where Data begins in its file, less one

	// Prefix begins the names of servers that belong to something else, and were taken out of
	// its file: where they are in that is not known. "" = it is a source by itself.
	Prefix string

	Agent   string // these are for all its Definitions
	Trusted bool
	Lookup  func(name string) (string, bool)
}

// Read reads the definitions of a source, in the order in which they stand there. What is
// wrong with one leaves the others as they are.
func Read(s Source) ([]Definition, []Fault) {
	r := &reader{s: s}
	r.all()
	for i := range r.list {
		d := &r.list[i]
		d.Name, d.Agent, d.Trusted, d.Lookup = s.Prefix+d.Name, s.Agent, s.Trusted, s.Lookup
		if s.Prefix != "" {
			d.Line, d.Column = 0, 0
		}
	}
	for i := range r.faults {
		if s.Prefix != "" {
			r.faults[i].Line, r.faults[i].Column = 0, 0
		}
	}
	return r.list, r.faults
}

type reader struct {
	s      Source
	data   []byte // as JSON without comments, byte for byte where it was
	list   []Definition
	faults []Fault
	server string // that is read
}

// fault tells what is wrong at a byte.
func (r *reader) fault(at int, odd bool, fix, format string, args ...any) {
	if len(r.faults) >= maxFaults {
		return
	}
	line, column := r.place(at)
	r.faults = append(r.faults, Fault{r.s.Path, line, column, r.server, fmt.Sprintf(format, args...), fix, odd})
}

// place is the line and the column of a byte, from 1.
func (r *reader) place(at int) (line, column int) {
	before := r.s.Data[:min(at, len(r.s.Data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1 + r.s.Line, utf8.RuneCount(before[start:]) + 1
}

const fixJSON = "write it as {\"mcpServers\": {\"NAME\": {\"command\": \"...\"}}}"

func (r *reader) all() {
	if len(r.s.Data) > maxFile {
		r.fault(0, false, "name the servers that are needed", "it is larger than %d bytes", maxFile)
		return
	}
	data, err := jsonc.Plain(r.s.Data)
	if open, ok := errors.AsType[*jsonc.OpenError](err); ok {
		r.fault(int(open.Offset), false, "close it with */", "a comment is not closed")
		return
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		copy(data, "   ")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return
	}
	root, err := jsonc.Parse(data)
	if err != nil {
		at := len(data)
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(int(bad.Offset)-1, 0)
		}
		r.fault(at, false, "mend the text there", "this is no valid JSON: %v", err)
		return
	}
	r.data = data
	if root.Kind != '{' {
		r.fault(root.Start, false, fixJSON, "it is no object")
		return
	}
	servers, ok := r.servers(root)
	if !ok {
		return
	}
	last := map[string]int{}
	for i, m := range servers.Members {
		last[m.Key] = i
	}
	for i, m := range servers.Members {
		if last[m.Key] != i {
			r.server = kit.Clip(m.Key)
			r.fault(m.Start, true, "take one of them out", "it stands there twice, and the last one counts")
			continue
		}
		if len(r.list) >= maxServers {
			r.server = ""
			r.fault(m.Start, false, "name the servers that are needed", "there are more than %d servers", maxServers)
			return
		}
		r.one(m)
	}
}

// servers finds the object of the servers.
func (r *reader) servers(root jsonc.Value) (jsonc.Value, bool) {
	if r.s.Bare {
		return root, true
	}
	flat := len(root.Members) > 0
	for _, m := range root.Members {
		if m.Key == "mcpServers" {
			if m.Value.Kind != '{' {
				r.fault(m.Value.Start, false, fixJSON, "mcpServers is no object")
				return jsonc.Value{}, false
			}
			return m.Value, true
		}
		flat = flat && m.Value.Kind == '{' && slices.ContainsFunc(m.Value.Members, func(k jsonc.Member) bool {
			return k.Key == "command" || k.Key == "url"
		})
	}
	if flat {
		return root, true // plugins write it so
	}
	for _, m := range root.Members {
		if near.Distance(strings.ToLower(m.Key), "mcpservers", 4) < 4 || m.Key == "servers" {
			r.fault(m.Start, false, "write mcpServers", "the key %s means nothing here", kit.Clip(m.Key))
			return jsonc.Value{}, false
		}
	}
	if len(root.Members) > 0 {
		r.fault(root.Start, false, fixJSON, "it has no mcpServers")
	}
	return jsonc.Value{}, false
}

// keys are what a definition may say.
var keys = []string{
	"type", "command", "args", "env", "cwd", "url", "headers", "headersHelper", "oauth", "timeout", "startupTimeout", "alwaysLoad", "unconfined",
	"disabled", "name", "description", "transport", "version", "autoApprove", "alwaysAllow",
}

// one reads a definition.
func (r *reader) one(m jsonc.Member) {
	r.server = kit.Clip(m.Key)
	defer func() { r.server = "" }()
	before := len(r.faults)
	d := Definition{Server: Server{Name: m.Key, Source: r.s.Path, Scope: r.s.Scope}}
	d.Line, d.Column = r.place(m.Start)
	if why := badName(m.Key); why != "" {
		r.fault(m.Start, false, "give it a name of letters, digits, - and _", "%s", why)
	}
	if m.Value.Kind != '{' {
		r.fault(m.Value.Start, false, `write it as {"command": "..."} or {"type": "http", "url": "..."}`, "it is no object")
		return
	}
	kind := m.Value.Start
	for _, f := range m.Value.Members {
		if f.Key == "type" || f.Key == "transport" {
			kind = f.Value.Start
		}
		r.field(&d, f)
	}
	r.finish(&d, m.Value.Start, kind)
	d.Hash, d.Vars = r.hash(m), variables(d.Server)
	if !slices.ContainsFunc(r.faults[before:], func(f Fault) bool { return !f.Odd }) {
		r.list = append(r.list, d)
	}
}

func badName(name string) string {
	switch {
	case name == "":
		return "it has no name"
	case len(name) > maxName:
		return fmt.Sprintf("its name is longer than %d bytes", maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "its name has signs that cannot be shown"
	case strings.HasPrefix(name, "plugin:"), strings.HasPrefix(name, "agent:"):
		return "its name begins as those of plugins and of types of agents do"
	case strings.Contains(name, "__"):
		return "its name has __ in it, which parts the names of its tools"
	}
	return ""
}

// CheckName says what is wrong with the name of a new server; "" = nothing.
func CheckName(name string) string {
	if why := badName(name); why != "" {
		return why
	}
	if strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return "its name has other signs than letters, digits, - and _"
	}
	return ""
}

func (r *reader) field(d *Definition, f jsonc.Member) {
	switch f.Key {
	case "type", "transport":
		d.Type = r.kind(f)
	case "command":
		d.Command = r.text(f)
	case "args":
		d.Args = r.texts(f)
	case "env":
		d.Env = r.pairs(f)
	case "cwd":
		d.Dir = r.text(f)
	case "url":
		d.URL = r.text(f)
	case "headers":
		d.Headers = r.pairs(f)
	case "headersHelper":
		d.HeadersHelper = r.text(f)
	case "oauth":
		d.OAuth = r.oauth(f)
	case "timeout":
		d.Timeout = r.wait(f)
	case "startupTimeout":
		d.Startup = r.wait(f)
	case "alwaysLoad":
		d.AlwaysLoad = r.yes(f)
	case "unconfined":
		if r.s.Scope == Project || r.s.Scope == Plugin {
			r.fault(f.Start, true, "name the server in your own settings", "only a person takes a server out of the sandbox")
			return
		}
		d.Unconfined = r.yes(f)
	case "disabled":
		d.Off = r.yes(f)
	case "name", "description", "version": // for people
	case "autoApprove", "alwaysAllow":
		r.fault(f.Start, true, "allow tools with a rule: mcp__"+r.server+"__TOOL", "%s is not taken from here", f.Key)
	default:
		fix := ""
		if like := near.Nearest(f.Key, keys); like != "" {
			fix = "did you mean " + like + "?"
		}
		r.fault(f.Start, true, fix, "the key %s means nothing here", kit.Clip(f.Key))
	}
}

func (r *reader) kind(f jsonc.Member) string {
	given := strings.ToLower(r.text(f))
	switch given {
	case Stdio, HTTP, SSE, SDK, "":
		return given
	case "streamable-http", "streamablehttp", "streamable_http":
		return HTTP
	}
	r.fault(f.Value.Start, false, "write stdio, http or sse", "%q is no way to speak with a server", kit.Clip(given))
	return ""
}

// finish says what is missing or does not fit together.
func (r *reader) finish(d *Definition, at, kind int) {
	if d.Type == "" {
		d.Type = Stdio
		if d.URL != "" && d.Command == "" {
			d.Type = HTTP
		}
	}
	switch d.Type {
	case Stdio:
		if strings.TrimSpace(d.Command) == "" {
			r.fault(at, false, `name the program: "command": "..."`, "it has no command")
		}
		if d.URL != "" {
			r.fault(kind, false, "write a command, or type http with a url", "it has both a command and an address")
		}
	case HTTP, SSE:
		if d.URL == "" {
			r.fault(at, false, `name the address: "url": "https://..."`, "it has no url")
		} else if why := badURL(d.URL); why != "" {
			r.fault(at, false, "write an address such as https://host/path", "%s", why)
		}
		if d.Command != "" {
			r.fault(kind, false, "write a command, or type http with a url", "it has both a command and an address")
		}
	case SDK:
		if r.s.Scope != Given {
			r.fault(kind, false, "write stdio, http or sse", "servers inside of programs are given by those programs")
		}
	}
}

// badURL looks at an address that may still have variables in it.
func badURL(s string) string {
	plain := variable().ReplaceAllString(s, "x")
	if strings.HasPrefix(s, "${") {
		return "" // it is looked at when its variables are put in
	}
	u, err := url.Parse(plain)
	switch {
	case err != nil:
		return "its url is none"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "its url is no address of http or https"
	case u.User != nil:
		return "its url has a name or a password in it: send it in a header"
	}
	return ""
}

func (r *reader) raw(v jsonc.Value) json.RawMessage { return r.data[v.Start:v.End] }

func (r *reader) text(f jsonc.Member) string {
	return r.textAt(f.Value, f.Key)
}

func (r *reader) textAt(v jsonc.Value, what string) (s string) {
	if v.Kind != '"' || json.Unmarshal(r.raw(v), &s) != nil {
		r.fault(v.Start, false, "write it in quotes", "%s has to be a text", kit.Clip(what))
		return ""
	}
	if len(s) > maxText || strings.ContainsRune(s, 0) {
		r.fault(v.Start, false, "", "%s has to be a text of at most %d bytes", kit.Clip(what), maxText)
		return ""
	}
	return s
}

func (r *reader) texts(f jsonc.Member) (list []string) {
	if f.Value.Kind != '[' || len(f.Value.Items) > maxList {
		r.fault(f.Value.Start, false, `write it as ["...", "..."]`, "%s has to be a list of texts", f.Key)
		return nil
	}
	for _, item := range f.Value.Items {
		list = append(list, r.textAt(item, f.Key))
	}
	return list
}

func (r *reader) pairs(f jsonc.Member) map[string]string {
	if f.Value.Kind != '{' || len(f.Value.Members) > maxList {
		r.fault(f.Value.Start, false, `write it as {"NAME": "..."}`, "%s has to be an object of texts", f.Key)
		return nil
	}
	all := map[string]string{}
	for _, m := range f.Value.Members {
		v := r.textAt(m.Value, f.Key+"."+m.Key)
		switch {
		case m.Key == "" || strings.ContainsFunc(m.Key, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '=' || c == ':' }):
			r.fault(m.Start, false, "", "%s has %q, which is no name", f.Key, kit.Clip(m.Key))
		case f.Key == "headers" && strings.ContainsAny(v, "\r\n"):
			r.fault(m.Value.Start, false, "write it in one line", "headers.%s has more than one line", kit.Clip(m.Key))
		default:
			all[m.Key] = v
		}
	}
	return all
}

func (r *reader) yes(f jsonc.Member) bool {
	if f.Value.Kind != 't' && f.Value.Kind != 'f' {
		r.fault(f.Value.Start, false, "write true or false", "%s has to be true or false", f.Key)
	}
	return f.Value.Kind == 't'
}

// wait reads milliseconds.
func (r *reader) wait(f jsonc.Member) time.Duration {
	var ms float64
	if f.Value.Kind != '0' || json.Unmarshal(r.raw(f.Value), &ms) != nil || ms <= 0 || ms > float64(maxWait/time.Millisecond) {
		r.fault(f.Value.Start, false, "write milliseconds, such as 30000", "%s has to be a number of milliseconds", f.Key)
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (r *reader) oauth(f jsonc.Member) *OAuth {
	if f.Value.Kind != '{' {
		r.fault(f.Value.Start, false, `write it as {"clientId": "..."}`, "%s has to be an object", f.Key)
		return nil
	}
	o := &OAuth{}
	for _, m := range f.Value.Members {
		switch m.Key {
		case "clientId":
			o.ClientID = r.text(m)
		case "clientSecret":
			o.ClientSecret = r.text(m)
		case "authServerMetadataUrl":
			if o.MetadataURL = r.text(m); o.MetadataURL != "" && badURL(o.MetadataURL) != "" {
				r.fault(m.Value.Start, false, "write an address such as https://host/path", "%s is no address of http or https", m.Key)
			}
		case "scopes":
			if m.Value.Kind == '"' {
				o.Scopes = strings.Fields(r.text(m))
			} else {
				o.Scopes = r.texts(m)
			}
		case "callbackPort":
			var port float64
			if m.Value.Kind != '0' || json.Unmarshal(r.raw(m.Value), &port) != nil || port < 1 || port > 65535 || port != float64(int(port)) {
				r.fault(m.Value.Start, false, "write a number from 1 to 65535", "%s is no port", m.Key)
			}
			o.CallbackPort = int(port)
		default:
			fix := ""
			if like := near.Nearest(m.Key, []string{"clientId", "clientSecret", "callbackPort", "scopes", "authServerMetadataUrl"}); like != "" {
				fix = "did you mean " + like + "?"
			}
			r.fault(m.Start, true, fix, "the key %s means nothing here", kit.Clip(m.Key))
		}
	}
	return o
}

// hash names what a definition says: the same for other blanks, comments and orders.
func (r *reader) hash(m jsonc.Member) string {
	var v map[string]any
	if json.Unmarshal(r.raw(m.Value), &v) != nil {
		return ""
	}
	for _, key := range []string{"description", "version", "name"} {
		delete(v, key)
	}
	data, err := json.Marshal([]any{m.Key, v}) // its keys are sorted
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Shown is what is started or reached, as people read it. Values of variables and of
// headers are not in it.
func (s Server) Shown() string {
	if s.Type == Stdio {
		words := []string{s.Command}
		for _, a := range s.Args {
			if a == "" || strings.ContainsFunc(a, unicode.IsSpace) {
				a = fmt.Sprintf("%q", a)
			}
			words = append(words, a)
		}
		return strings.Join(words, " ")
	}
	return s.URL
}

// Names are the variables of its environment and its headers, by name alone.
func (s Server) Names() (env, headers []string) {
	return slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))
}
