package bundle

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
)

// A Message is what a connector brings.
type Message struct {
	ID         string         // the same for a message that comes twice; "" = it comes once
	Event      string         // "" = the connector has one kind alone
	Properties map[string]any // texts, numbers, true and false
	Text       string
	Key        string // of its conversation, as the connector names it; "" = it names none
}

// A Goal is the conversation that a message belongs to.
type Goal struct {
	Swarm, Agent Ref
	Key          Key
}

// Key names a conversation among those of an agent. Two keys are the same only when they are
// made of the same parts, whatever characters those have.
type Key string

// keyOf puts parts together. The length before each keeps a, bc and ab, c apart.
func keyOf(parts ...string) Key {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strconv.Itoa(len(p)) + ":" + p)
	}
	return Key(b.String())
}

// Route returns where a message goes that a connection brings. A conversation that a rule
// names is the same for all connections; one that it takes from a property belongs to this
// connection, whose senders are other people than those of another.
func (b *Bundle) Route(connection string, m Message) (Goal, error) {
	r := b.byID[Ref{Kind: KindConnection, Name: connection}.ID()]
	if r == nil || r.Spec == nil {
		return Goal{}, fmt.Errorf("there is no connection %q", connection)
	}
	c := r.Spec.(*Connection)
	for _, rule := range c.Rules {
		if !rule.fits(m) {
			continue
		}
		g := Goal{Swarm: c.Swarm, Agent: rule.Agent}
		swarm, ok := b.Find(c.Swarm)
		if !ok || swarm.Spec == nil {
			return Goal{}, fmt.Errorf("the connection %q leads to no swarm", connection)
		}
		s := swarm.Spec.(*Swarm)
		if !g.Agent.Given() {
			g.Agent = s.Entry
		}
		switch {
		case rule.Key != "":
			g.Key = keyOf("key", rule.Key)
		case rule.KeyProperty != "":
			v, err := property(m, rule.KeyProperty)
			if err != nil {
				return Goal{}, err
			}
			g.Key = keyOf("property", connection, rule.KeyPrefix, v)
		case m.Key != "":
			g.Key = keyOf("message", connection, m.Key)
		case s.InstanceKey != "":
			g.Key = keyOf("key", s.InstanceKey)
		default:
			g.Key = keyOf("connection", connection)
		}
		return g, nil
	}
	return Goal{}, fmt.Errorf("no rule of the connection %q fits the event %q", connection, m.Event)
}

// fits reports whether a rule is for a message.
func (r Rule) fits(m Message) bool {
	if r.Event != "" && r.Event != m.Event {
		return false
	}
	for name, want := range r.Properties {
		got, ok := m.Properties[name]
		if !ok || scalarText(got) != scalarText(want) {
			return false
		}
	}
	return true
}

// property returns what names a conversation.
func property(m Message, name string) (string, error) {
	v, ok := m.Properties[name]
	s := scalarText(v)
	if !ok || s == "" {
		return "", fmt.Errorf("the message has no property %q, which names its conversation", name)
	}
	return s, nil
}

// scalarText is a value of a message with its type, so that 1 and "1" are two; "" = it is no
// text, no number, and neither true nor false.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return ""
		}
		return "s" + v
	case bool:
		return "b" + strconv.FormatBool(v)
	case int:
		return "n" + strconv.Itoa(v)
	case int64:
		return "n" + strconv.FormatInt(v, 10)
	case uint64:
		return "n" + strconv.FormatUint(v, 10)
	case float64:
		return "n" + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// Session returns the ID of the session of a conversation: the same for the same bundle,
// agent and key, and another one for all others.
func (g Goal) Session(bundle string) string {
	const bytes = 20
	return Sessions(bundle, g.Swarm) + hashed(bytes, keyOf(bundle, g.Swarm.ID(), g.Agent.ID(), string(g.Key)))
}

// Sessions is what the IDs of all sessions of a swarm begin with, and those of hardly any
// other.
func Sessions(bundle string, swarm Ref) string {
	const bytes = 10
	return "b" + hashed(bytes, keyOf(bundle, swarm.ID()))
}

func hashed(bytes int, key Key) string {
	sum := sha256.Sum256([]byte(key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:bytes]))
}
