package bundle

import (
	"encoding/json"
	"slices"
	"strings"

	"dure/agent/query"
)

// Connector brings messages in from outside.
type Connector struct {
	Runtime string   `json:"runtime"`
	Entry   string   `json:"entry"` // a file of the bundle; terminal, webhook or schedule for builtin
	Events  []Signal `json:"events,omitempty"`
	entry   *node
}

// A Signal is a kind of message that a connector brings.
type Signal struct {
	Name       string          `json:"name"`
	Properties json.RawMessage `json:"properties,omitempty"`
}

// The connectors of the program.
const (
	Terminal = "terminal"
	Webhook  = "webhook"
	Schedule = "schedule"
)

var builtinConnectors = []string{Terminal, Webhook, Schedule}

// Connection leads what a connector brings to the agents of a swarm.
type Connection struct {
	Connector Ref              `json:"connectorRef"`
	Swarm     Ref              `json:"swarmRef,omitzero"` // none = the swarm named default, or the only one
	Config    map[string]Value `json:"config,omitempty"`
	Secrets   map[string]Value `json:"secrets,omitempty"`
	Rules     []Rule           `json:"rules"`
}

// A Rule says where a message goes. The first that fits counts.
type Rule struct {
	Event      string         `json:"event,omitempty"`      // "" = any
	Properties map[string]any `json:"properties,omitempty"` // all have to be so
	Agent      Ref            `json:"agentRef,omitzero"`    // none = the entry agent

	Key         string `json:"instanceKey,omitempty"`
	KeyProperty string `json:"instanceKeyProperty,omitempty"`
	KeyPrefix   string `json:"instanceKeyPrefix,omitempty"`
}

func readConnector(f *fields) *Connector {
	c := &Connector{Runtime: f.runtime()}
	older := ""
	for _, name := range []string{"type", "ingress", "egress", "triggers", "auth"} {
		if n := f.get(name); n != nil {
			older = name
			f.ps.warn(query.BundleMigrate, n, "spec."+name, "write the rules into a Connection, and their events here", "%s is not read any more", "spec."+name)
		}
	}
	c.Entry, c.entry = f.text("entry"), f.n.get("entry")
	if kind := f.n.get("type"); c.Entry == "" && kind != nil && kind.shape == scalar {
		if name := map[string]string{"cli": Terminal, "webhook": Webhook, "http": Webhook, "cron": Schedule}[kind.text]; name != "" {
			c.Runtime, c.Entry = RuntimeBuiltin, name
		}
	}
	if c.Entry == "" && older == "" {
		f.missing("entry", "write: entry: ./FILE, or: runtime: builtin, entry: terminal")
	}
	if c.Runtime == RuntimeBuiltin && c.Entry != "" && !slices.Contains(builtinConnectors, c.Entry) {
		f.ps.at(query.BundleSchema, c.entry, "spec.entry", "write one of them", "%s is %q and has to be one of: %s", "spec.entry", c.Entry, strings.Join(builtinConnectors, ", "))
	}
	seen := map[string]bool{}
	for i, n := range f.items("events") {
		in := fieldsOf(f.ps, n, index("spec.events", i))
		s := Signal{Name: in.needText("name"), Properties: in.free("properties")}
		in.done()
		if seen[s.Name] && s.Name != "" {
			f.ps.at(query.BundleDuplicate, n, join(in.path, "name"), "remove one of them", "the event %s stands here a second time", s.Name)
		}
		seen[s.Name] = true
		c.Events = append(c.Events, s)
	}
	return c
}

func readConnection(f *fields) *Connection {
	c := &Connection{Connector: f.needRef("connectorRef", KindConnector), Swarm: f.ref("swarmRef", KindSwarm), Config: f.values("config"), Secrets: f.values("secrets")}
	if n := f.get("verify"); n != nil {
		in := fieldsOf(f.ps, n, "spec.verify")
		hook := in.in("webhook")
		if v := valueOf(f.ps, hook.get("signingSecret"), join(hook.path, "signingSecret")); v.Given() {
			if c.Secrets == nil {
				c.Secrets = map[string]Value{}
			}
			c.Secrets[SigningSecret] = v
		}
		hook.done()
		in.done()
	}
	var rules []*node
	path := "spec.ingress"
	if n := f.n.get("ingress"); n != nil && n.shape == list {
		rules = f.items("ingress")
	} else {
		in := f.in("ingress")
		rules = in.items("rules")
		in.done()
		path = "spec.ingress.rules"
	}
	for i, n := range rules {
		c.Rules = append(c.Rules, readRule(f.ps, n, index(path, i)))
	}
	if len(rules) == 0 {
		c.Rules = []Rule{{}} // all of it goes to the entry agent
	}
	for i, r := range c.Rules {
		if r.Event == "" && r.Properties == nil && i < len(c.Rules)-1 {
			f.ps.warn(query.BundleSchema, rules[i+1], index(path, i+1), "put it before the rule that fits all", "the rule is never reached")
			break
		}
	}
	return c
}

// SigningSecret is the secret of a connection that proves who sends to a webhook.
const SigningSecret = "signingSecret"

func readRule(ps *problems, n *node, path string) Rule {
	f := fieldsOf(ps, n, path)
	match := f.in("match")
	r := Rule{Event: match.text("event")}
	if props := match.get("properties"); props != nil {
		in := fieldsOf(ps, props, join(match.path, "properties"))
		r.Properties = map[string]any{}
		if in.n != nil {
			for _, e := range in.n.keys {
				if e.node.shape != scalar {
					text(ps, e.node, join(in.path, e.name))
					continue
				}
				r.Properties[e.name] = e.node.value()
			}
		}
	}
	match.done()
	route := f.in("route")
	r.Agent = route.ref("agentRef", KindAgent)
	r.Key, r.KeyProperty, r.KeyPrefix = route.text("instanceKey"), route.text("instanceKeyProperty"), route.text("instanceKeyPrefix")
	route.done()
	f.done()
	switch {
	case r.Key != "" && r.KeyProperty != "":
		ps.at(query.BundleSchema, route.n, route.path, "remove one of them", "%s and %s exclude each other", "instanceKey", "instanceKeyProperty")
	case r.KeyPrefix != "" && r.KeyProperty == "":
		ps.at(query.BundleSchema, route.n, route.path, "write: instanceKeyProperty: NAME", "%s is missing", join(route.path, "instanceKeyProperty"))
	}
	return r
}
