package bundle

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"dure/agent/query"
	"dure/internal/base/near"
)

// The two versions in which bundles are written.
const (
	API    = "goondan.ai/v1"
	OldAPI = "agents.example.io/v1alpha1"
)

// The kinds of resources.
const (
	KindPackage    = "Package"
	KindModel      = "Model"
	KindAgent      = "Agent"
	KindSwarm      = "Swarm"
	KindTool       = "Tool"
	KindExtension  = "Extension"
	KindConnector  = "Connector"
	KindConnection = "Connection"
	KindOAuthApp   = "OAuthApp"
)

var kinds = []string{KindPackage, KindModel, KindAgent, KindSwarm, KindTool, KindExtension, KindConnector, KindConnection, KindOAuthApp}

// gone are kinds of the older version that nothing takes the place of by itself, and what to
// write instead.
var gone = map[string]string{
	"ResourceType":     "remove it: kinds of one's own are not read any more",
	"ExtensionHandler": "write it as an Extension",
	"Bundle":           "write it as a Package, the first document of goondan.yaml",
	"SwarmBundle":      "write it as a Package, the first document of goondan.yaml",
}

// A Resource is one document.
type Resource struct {
	Kind    string            `json:"kind"`
	Name    string            `json:"name"`
	Package string            `json:"package,omitempty"` // "" = that of the bundle itself
	Labels  map[string]string `json:"labels,omitempty"`
	Source  string            `json:"source,omitempty"` // where it comes from
	Place   Place             `json:"-"`
	Spec    any               `json:"spec"` // *Tool, *Agent ...

	n     *node
	trust int
	src   *source
}

// Dir is the folder that entries of the resource are relative to, in that of the bundle.
func (r *Resource) Dir() string {
	if r.src == nil {
		return "."
	}
	return path.Join(".", r.src.dir)
}

// ID is Kind/Name, with the package before it if there is one.
func (r *Resource) ID() string { return Ref{Kind: r.Kind, Name: r.Name, Package: r.Package}.ID() }

// Package says what a bundle is, and what it needs.
type Package struct {
	Version      string       `json:"version,omitempty"`
	Description  string       `json:"description,omitempty"`
	Access       string       `json:"access,omitempty"`
	Registry     string       `json:"registry,omitempty"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// A Dependency is a package that a bundle needs.
type Dependency struct {
	Name    string `json:"name"`
	Version string `json:"version"` // a range
	n       *node
	path    string
}

// Model is a model that agents are asked with.
type Model struct {
	Provider     string          `json:"provider"`
	Model        string          `json:"model"`
	APIKey       Value           `json:"apiKey,omitzero"`
	Endpoint     string          `json:"endpoint,omitempty"`
	Options      json.RawMessage `json:"options,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// Agent is what a conversation runs as.
type Agent struct {
	Model         Ref             `json:"model,omitzero"`
	Params        json.RawMessage `json:"params,omitempty"`
	Prompt        string          `json:"prompt,omitempty"`
	PromptFile    string          `json:"promptFile,omitempty"` // in the folder of the bundle
	Tools         []Use           `json:"-"`
	Extensions    []Use           `json:"-"`
	RequiredTools []string        `json:"requiredTools,omitempty"` // names as a model sees them; one of them has to be called
	Allowed       []string        `json:"allowedFiles,omitempty"`  // that a change of the bundle by itself may touch
	promptNode    *node
	required      *node
}

// Swarm is a set of agents that work together.
type Swarm struct {
	Entry       Ref    `json:"entryAgent"`
	Agents      []Ref  `json:"agents"`
	InstanceKey string `json:"instanceKey,omitempty"`
	MaxSteps    int    `json:"maxStepsPerTurn"`
	TTL         int    `json:"ttlSeconds,omitempty"`
	Grace       int    `json:"gracePeriodSeconds"`
}

// The values that a swarm has where it does not say otherwise.
const (
	DefaultSteps = 10 // of a turn
	DefaultGrace = 30 // seconds until what does not end is ended
)

// How the code of a tool or an extension runs.
const (
	RuntimeNode    = "node"
	RuntimeProcess = "process"
	RuntimeHTTP    = "http"
	RuntimeBuiltin = "builtin"
	RuntimeMCP     = "mcp"
)

var runtimes = []string{RuntimeNode, RuntimeProcess, RuntimeHTTP, RuntimeBuiltin, RuntimeMCP}

// DefaultErrorLimit is how many characters of a tool's error a model reads.
const DefaultErrorLimit = 1000

// Auth is what a tool needs a sign-in for.
type Auth struct {
	App    Ref      `json:"oauthApp,omitzero"`
	Scopes []string `json:"scopes,omitempty"`
	n      *node
	path   string
}

// Tool is code that models call.
type Tool struct {
	Runtime    string   `json:"runtime"`
	Entry      string   `json:"entry"` // a file of the bundle; an address for http, a name for builtin and mcp
	ErrorLimit int      `json:"errorMessageLimit"`
	Auth       Auth     `json:"auth,omitzero"`
	Exports    []Export `json:"exports"`
	Kit        bool     `json:"-"` // its exports are tools of the program, of the kit of its entry
	entry      *node
}

// An Export is one function of a tool.
type Export struct {
	Name        string          `json:"name"`
	Call        string          `json:"call"`            // the name that models call it by
	Alias       string          `json:"alias,omitempty"` // the older spelling of it, for rules and prompts
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Scopes      []string        `json:"scopes,omitempty"`
	Default     bool            `json:"default,omitempty"` // the module itself is the function
	n           *node
	path        string
}

// Extension is code that takes part in turns.
type Extension struct {
	Runtime string          `json:"runtime"`
	Entry   string          `json:"entry"`
	Config  json.RawMessage `json:"config,omitempty"`
	entry   *node
	version string // that it was compiled with
}

// OAuthApp is what tools sign in with.
type OAuthApp struct {
	Provider     string            `json:"provider"`
	Flow         string            `json:"flow"`        // authorizationCode or deviceCode
	Subject      string            `json:"subjectMode"` // global or user
	ClientID     Value             `json:"clientId"`
	ClientSecret Value             `json:"clientSecret,omitzero"`
	Endpoints    map[string]string `json:"endpoints"`
	Scopes       []string          `json:"scopes"`
	Callback     string            `json:"callbackPath,omitempty"`
	Options      json.RawMessage   `json:"options,omitempty"`
}

// readSpec reads what a resource is. It returns nil for a kind that has nothing to read.
func readSpec(ps *problems, r *Resource) any {
	f := fieldsOf(ps, r.n.get("spec"), "spec")
	if f.n == nil && r.Kind != KindPackage {
		if r.n.get("spec") == nil {
			ps.at(query.BundleSchema, r.n, "spec", "write spec: and its fields below it, indented", "%s is missing", "spec")
		}
		return nil
	}
	var spec any
	switch r.Kind {
	case KindPackage:
		spec = readPackage(f)
	case KindModel:
		spec = readModel(f)
	case KindAgent:
		spec = readAgent(f)
	case KindSwarm:
		spec = readSwarm(f)
	case KindTool:
		spec = readTool(f, r.Name)
	case KindExtension:
		e := &Extension{Runtime: f.runtime(), Entry: f.needText("entry"), Config: f.free("config"), entry: f.n.get("entry")}
		spec = e
	case KindConnector:
		spec = readConnector(f)
	case KindConnection:
		spec = readConnection(f)
	case KindOAuthApp:
		spec = readOAuthApp(f)
	}
	f.done()
	return spec
}

func readPackage(f *fields) *Package {
	p := &Package{Version: f.text("version"), Description: f.text("description"), Access: f.oneOf("access", "public", "restricted", "private")}
	reg := f.in("registry")
	p.Registry = reg.text("url")
	reg.done()
	for i, n := range f.items("dependencies") {
		d := fieldsOf(f.ps, n, index("spec.dependencies", i))
		dep := Dependency{Name: d.needText("name"), Version: d.text("version"), n: n, path: d.path}
		d.done()
		if dep.Name == "" {
			continue
		}
		if !isPackage(dep.Name) {
			f.ps.at(query.BundleName, n, join(d.path, "name"), "write it as name or @scope/name", "%q cannot be the name of a package", dep.Name)
			continue
		}
		if _, err := parseRange(dep.Version); err != nil {
			f.ps.at(query.BundleSchema, n, join(d.path, "version"), "write a version as 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3 or *", "%q is no range of versions", dep.Version)
			continue
		}
		p.Dependencies = append(p.Dependencies, dep)
	}
	return p
}

func readModel(f *fields) *Model {
	m := &Model{
		Provider: f.needText("provider"), APIKey: valueOf(f.ps, f.get("apiKey"), "spec.apiKey"), Endpoint: f.text("endpoint"),
		Options: f.free("options"),
	}
	m.Model = text(f.ps, f.either("model", "name"), "spec.model")
	if m.Model == "" && f.n.get("model") == nil && f.n.get("name") == nil {
		f.missing("model", "write: model: ...")
	}
	if n := f.get("capabilities"); n != nil {
		m.Capabilities = n.json()
	}
	if m.Endpoint != "" {
		address(f, "endpoint", m.Endpoint)
	}
	return m
}

// address checks that a field is an address of the web.
func address(f *fields, name, s string) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		f.ps.at(query.BundleSchema, f.n.get(name), join(f.path, name), "write it as: https://host/path", "%q is no address of the web", s)
	}
}

func readAgent(f *fields) *Agent {
	a := &Agent{}
	config := f.in("modelConfig")
	model := config.either("modelRef", "model")
	if model != nil {
		a.Model = refOf(f.ps, model, join(config.path, "modelRef"), KindModel)
	} else if config.n != nil {
		config.missing("modelRef", "write: modelRef: Model/NAME")
	}
	a.Params = config.free("params")
	config.done()
	if f.n.get("modelConfig") == nil {
		f.missing("modelConfig", "write: modelConfig: {modelRef: Model/NAME}")
	}
	prompt := fieldsOf(f.ps, f.either("prompt", "prompts"), "spec.prompt")
	system, file := prompt.either("system", "systemPrompt"), prompt.get("systemRef")
	prompt.done()
	if system != nil && file != nil {
		f.ps.at(query.BundleSchema, file, join(prompt.path, "systemRef"), "remove one of them", "%s and %s exclude each other", join(prompt.path, "system"), join(prompt.path, "systemRef"))
	}
	a.Prompt, a.PromptFile, a.promptNode = text(f.ps, system, join(prompt.path, "system")), text(f.ps, file, join(prompt.path, "systemRef")), file
	a.Tools, a.Extensions = f.uses("tools", KindTool), f.uses("extensions", KindExtension)
	a.RequiredTools, a.required = f.texts("requiredTools"), f.n.get("requiredTools")
	if n := f.get("hooks"); n != nil {
		f.ps.warn(query.BundleMigrate, n, "spec.hooks", "write them as hooks in the settings, or as an Extension", "%s is not read any more", "spec.hooks")
	}
	changes := f.in("changesets")
	if changes.n != nil {
		in := changes.in("allowed")
		a.Allowed = in.texts("files")
		in.done()
		changes.done()
	}
	return a
}

func readSwarm(f *fields) *Swarm {
	s := &Swarm{InstanceKey: f.text("instanceKey"), MaxSteps: DefaultSteps, Grace: DefaultGrace}
	if n := f.either("entryAgent", "entrypoint"); n != nil {
		s.Entry = refOf(f.ps, n, "spec.entryAgent", KindAgent)
	} else {
		f.missing("entryAgent", "write: entryAgent: Agent/NAME")
	}
	if f.get("agents") == nil {
		f.missing("agents", "write: agents: [Agent/NAME]")
	}
	for _, u := range f.uses("agents", KindAgent) {
		if u.Ref.Given() {
			s.Agents = append(s.Agents, u.Ref)
		} else {
			f.ps.at(query.BundleRef, u.n, u.path, "write: Agent/NAME", "a swarm names each of its agents")
		}
	}
	member := slices.ContainsFunc(s.Agents, func(r Ref) bool { return r.ID() == s.Entry.ID() })
	if s.Entry.Given() && len(s.Agents) > 0 && !member {
		f.ps.at(query.BundleSchema, s.Entry.n, "spec.entryAgent", "add it to agents", "the entry agent %s is none of the agents", s.Entry.Name)
	}
	policy := f.in("policy")
	const most = 10_000_000
	if n := policy.whole("maxStepsPerTurn", 1, 1000); n > 0 {
		s.MaxSteps = n
	}
	policy.oneOf("queueMode", "serial")
	life := policy.in("lifecycle")
	s.TTL = life.whole("ttlSeconds", 1, most)
	life.whole("gcGraceSeconds", 0, most)
	life.whole("autoPauseIdleSeconds", 0, most)
	life.done()
	shutdown := policy.in("shutdown")
	if n := shutdown.whole("gracePeriodSeconds", 1, 3600); n > 0 {
		s.Grace = n
	}
	shutdown.done()
	policy.done()
	return s
}

func (f *fields) runtime() string {
	if rt := f.oneOf("runtime", runtimes...); rt != "" {
		return rt
	}
	return RuntimeNode
}

func readTool(f *fields, name string) *Tool {
	t := &Tool{Runtime: f.runtime(), Entry: f.needText("entry"), ErrorLimit: DefaultErrorLimit, entry: f.n.get("entry")}
	if n := f.whole("errorMessageLimit", 1, 1_000_000); n > 0 {
		t.ErrorLimit = n
	}
	t.Auth = readAuth(f, true)
	if t.Runtime == RuntimeHTTP && t.Entry != "" {
		address(f, "entry", t.Entry)
	}
	exports := f.get("exports")
	if params := f.n.get("parameters"); exports == nil && (params != nil || f.n.get("description") != nil) {
		f.ps.warn(query.BundleMigrate, f.n, "spec", "write it below exports, with a name", "the parameters of a function stand in %s itself", "spec")
		f.known = append(f.known, "description", "parameters")
		e := Export{Name: "default", Default: true, n: f.n, path: "spec"}
		e.Description, e.Parameters = text(f.ps, f.n.get("description"), "spec.description"), parameters(f.ps, params, "spec.parameters")
		t.Exports = []Export{e}
	}
	switch {
	case exports == nil:
		if t.Exports == nil {
			f.missing("exports", "write: exports: [{name: ..., description: ...}]")
		}
	case exports.shape == object:
		for _, e := range exports.keys {
			t.Exports = append(t.Exports, readExport(f.ps, e.node, "spec.exports."+e.name, e.name))
		}
	default:
		for i, n := range f.items("exports") {
			t.Exports = append(t.Exports, readExport(f.ps, n, index("spec.exports", i), ""))
		}
	}
	if exports != nil && exports.shape != scalar && len(t.Exports) == 0 {
		f.ps.at(query.BundleSchema, exports, "spec.exports", "write: exports: [{name: ..., description: ...}]", "a tool has at least one export")
	}
	t.named(f.ps, name)
	t.scoped(f.ps)
	return t
}

func readExport(ps *problems, n *node, path, name string) Export {
	f := fieldsOf(ps, n, path)
	e := Export{Name: name, n: n, path: path}
	if name == "" {
		e.Name = f.needText("name")
	} else {
		f.text("name")
	}
	e.Description, e.Parameters = f.text("description"), parameters(ps, f.get("parameters"), join(path, "parameters"))
	e.Scopes = readAuth(f, false).Scopes
	f.done()
	return e
}

func readAuth(f *fields, app bool) Auth {
	n := f.get("auth")
	if n == nil {
		return Auth{}
	}
	in := fieldsOf(f.ps, n, join(f.path, "auth"))
	a := Auth{n: n, path: in.path}
	if app && in.n != nil {
		a.App = in.needRef("oauthAppRef", KindOAuthApp)
	}
	a.Scopes = in.texts("scopes")
	in.done()
	return a
}

// parameters reads the schema of an input: an object.
func parameters(ps *problems, n *node, path string) json.RawMessage {
	if n == nil {
		return nil
	}
	f := fieldsOf(ps, n, path)
	if f.n == nil {
		return nil
	}
	if kind := n.get("type"); kind == nil || kind.text != "object" {
		at := n
		if kind != nil {
			at = kind
		}
		ps.at(query.BundleSchema, at, join(path, "type"), "write: type: object", "the parameters of a function are an object")
		return nil
	}
	f.free("properties")
	f.texts("required")
	return n.json()
}

// maxCall is how long the name may be that a model calls a tool by.
const maxCall = 64

// named gives the exports the names that models call them by.
func (t *Tool) named(ps *problems, name string) {
	seen := map[string]bool{}
	for i := range t.Exports {
		e := &t.Exports[i]
		if e.Name == "" {
			continue
		}
		switch {
		case strings.Contains(e.Name, "__") || strings.HasPrefix(e.Name, "_") || strings.HasSuffix(e.Name, "_"):
			ps.at(query.BundleName, e.n, join(e.path, "name"), "use single _ between letters", "%q may have no __ and no _ at its ends", e.Name)
			continue
		case !isName(e.Name):
			ps.at(query.BundleName, e.n, join(e.path, "name"), "use a to z, A to Z, 0 to 9, _, - and .", "%q cannot be the name of an export", e.Name)
			continue
		}
		part := strings.ReplaceAll(e.Name, ".", "_")
		if part != e.Name {
			e.Alias = e.Name
		}
		e.Call = strings.ReplaceAll(name, ".", "_") + "__" + part
		switch {
		case len(e.Call) > maxCall:
			ps.at(query.BundleName, e.n, join(e.path, "name"), "shorten one of the two names", "the name %s has %d characters; %d are the most that models take", e.Call, len(e.Call), maxCall)
		case seen[e.Call]:
			ps.at(query.BundleDuplicate, e.n, join(e.path, "name"), "choose another one", "the export %s stands here a second time", e.Name)
		}
		seen[e.Call] = true
	}
}

// scoped checks that exports ask for no more than their tool.
func (t *Tool) scoped(ps *problems) {
	for _, e := range t.Exports {
		for _, s := range e.Scopes {
			if !slices.Contains(t.Auth.Scopes, s) {
				ps.at(query.BundleSchema, e.n, join(e.path, "auth.scopes"), "add it to the scopes of the tool", "the scope %q is none of those of the tool", s)
			}
		}
	}
}

func readOAuthApp(f *fields) *OAuthApp {
	a := &OAuthApp{
		Provider: f.needText("provider"), Flow: f.oneOf("flow", "authorizationCode", "deviceCode"),
		Subject: f.oneOf("subjectMode", "global", "user"), Scopes: f.texts("scopes"), Options: f.free("options"),
	}
	if a.Flow == "" {
		a.Flow = "authorizationCode"
	}
	if a.Subject == "" {
		a.Subject = "user"
	}
	client := f.in("client")
	a.ClientID = valueOf(f.ps, client.get("clientId"), "spec.client.clientId")
	a.ClientSecret = valueOf(f.ps, client.get("clientSecret"), "spec.client.clientSecret")
	client.done()
	if !a.ClientID.Given() && (f.n.get("client") == nil || client.n != nil) {
		f.missing("client.clientId", "write: client: {clientId: {valueFrom: {env: NAME}}}")
	}
	a.Endpoints = f.words("endpoints")
	ends := &fields{ps: f.ps, n: f.n.get("endpoints"), path: "spec.endpoints"}
	needed := []string{"authorizationUrl", "tokenUrl"}
	if a.Flow == "deviceCode" {
		needed[0] = "deviceAuthorizationUrl"
	}
	for _, name := range needed {
		if a.Endpoints[name] == "" {
			f.missing("endpoints."+name, "write: endpoints: {"+name+": https://...}")
		}
	}
	for name, s := range a.Endpoints {
		if s != "" {
			address(ends, name, s)
		}
	}
	if f.n.get("scopes") == nil || f.n.get("scopes").shape == list && len(a.Scopes) == 0 {
		f.missing("scopes", "write: scopes: [...]")
	}
	redirect := f.in("redirect")
	if a.Callback = redirect.text("callbackPath"); a.Callback != "" && !strings.HasPrefix(a.Callback, "/") {
		f.ps.at(query.BundleSchema, redirect.n, "spec.redirect.callbackPath", "begin it with /", "%q is no path of an address", a.Callback)
	}
	redirect.done()
	return a
}

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`) })

// isName reports whether a name is one of Latin letters, digits, _, - and dots.
func isName(s string) bool { return len(s) <= maxCall && nameForm().MatchString(s) }

var packageForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
})

func isPackage(s string) bool {
	return len(s) <= 214 && packageForm().MatchString(s) && path.Clean(s) == s
}

// nameFault says why a resource cannot have a name; "" = it can.
func nameFault(kind, name string) (message, fix string) {
	const most = 128 // bytes
	switch {
	case kind == KindPackage:
		if !isPackage(name) {
			return fmt.Sprintf("%q cannot be the name of a package", name), "write it as name or @scope/name"
		}
	case kind == KindTool:
		if !isName(name) {
			return fmt.Sprintf("%q cannot be the name of a tool", name), "use a to z, A to Z, 0 to 9, _ and -"
		}
		if strings.Contains(name, "__") || strings.HasSuffix(name, "_") {
			return fmt.Sprintf("%q may have no __ and no _ at its ends", name), "use single _ between letters"
		}
	case len(name) > most || !utf8.ValidString(name) || strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) >= 0 || strings.HasPrefix(name, "."):
		return fmt.Sprintf("%q cannot be the name of a resource", name), "use letters, digits, _, - and ."
	}
	return "", ""
}

// kindLike is the kind that a word most likely means.
func kindLike(word string) string { return near.Nearest(word, kinds) }
