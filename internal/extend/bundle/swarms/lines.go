package swarms

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"dure/internal/base/cron"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/inbound"
)

// lineKey names the conversation of a terminal that no connection speaks of.
const lineKey = "terminal"

// line is a connection that can be started.
type line struct {
	name     string // "" = the terminal of a bundle without connections
	typed    bool   // it is the terminal
	visitors bool   // others than the person at this machine speak through it
	start    func(well func()) (c inbound.Connector, where string, err error)
	most     int // failures in a row, after which it is not started again; 0 = it always is
}

// connections returns those that lead to a swarm. What is wrong with the values of one is
// told before any of them is started.
func (ext *Extension) connections(b *bundle.Bundle, to *bundle.Resource, out *connectors, with IO) ([]line, error) {
	terminal := func(name string) line {
		return line{name: name, typed: true, start: func(well func()) (inbound.Connector, string, error) {
			return &inbound.Terminal{In: with.In, Out: with.Out, Clean: with.Clean, SignIn: with.SignIn, Well: well}, "", nil
		}}
	}
	var lines []line
	typed := false
	for _, r := range b.Of(bundle.KindConnection) {
		c := r.Spec.(*bundle.Connection)
		if !leads(r, to) {
			continue
		}
		from, ok := b.Find(c.Connector)
		if !ok {
			continue // loading tells of it
		}
		spec := from.Spec.(*bundle.Connector)
		config, err := resolvedOf(b, c.Config)
		secrets, serr := resolvedOf(b, c.Secrets)
		if err = errors.Join(err, serr); err != nil {
			return nil, problem(r.Name, err)
		}
		values := maps.Clone(config)
		maps.Copy(values, secrets)
		var l line
		switch {
		case spec.Runtime != bundle.RuntimeBuiltin:
			l, err = out.connector(r.Name, from, config, secrets)
		case spec.Entry == bundle.Terminal:
			if typed {
				return nil, problem(r.Name, errors.New("there is one terminal, and two connections take its lines"))
			}
			typed, l = true, terminal(r.Name)
		case spec.Entry == bundle.Webhook:
			l, err = webhook(r.Name, values)
		case spec.Entry == bundle.Schedule:
			l, err = scheduled(r.Name, values)
		}
		if err != nil {
			return nil, problem(r.Name, err)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		lines = []line{terminal("")}
	}
	return lines, nil
}

// resolvedOf returns values of a connection.
func resolvedOf(b *bundle.Bundle, values map[string]bundle.Value) (map[string]string, error) {
	all := map[string]string{}
	for name, v := range values {
		s, err := b.Resolve(v, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = s
	}
	return all, nil
}

// webhook listens on this machine alone: what others are to reach stands in front of it.
func webhook(name string, values map[string]string) (line, error) {
	if err := onlyThese(values, "address", "path", "answer", bundle.SigningSecret); err != nil {
		return line{}, err
	}
	address := cmp.Or(values["address"], "127.0.0.1:0")
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return line{}, fmt.Errorf("%q is no address of this machine alone, such as 127.0.0.1:8080", address)
	}
	const least = 16
	if len(values[bundle.SigningSecret]) < least {
		return line{}, fmt.Errorf("%s has to have at least %d bytes", bundle.SigningSecret, least)
	}
	path := cmp.Or(values["path"], "/")
	return line{name: name, visitors: true, start: func(well func()) (inbound.Connector, string, error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, "", fmt.Errorf("listening for a webhook: %w", err)
		}
		where := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: path}
		return &inbound.Webhook{Listener: l, Secret: []byte(values[bundle.SigningSecret]), Path: path, Answer: values["answer"] == "true", Now: time.Now, Well: well}, where.String(), nil
	}}, nil
}

func scheduled(name string, values map[string]string) (line, error) {
	if err := onlyThese(values, "cron", "timeZone", "text"); err != nil {
		return line{}, err
	}
	zone, err := time.LoadLocation(cmp.Or(values["timeZone"], "Local"))
	if err != nil {
		return line{}, fmt.Errorf("the time zone %q is not known", values["timeZone"])
	}
	when, err := cron.Parse(values["cron"], zone)
	if err != nil {
		return line{}, err
	}
	if strings.TrimSpace(values["text"]) == "" {
		return line{}, errors.New("text is missing: what is sent at these times")
	}
	return line{name: name, most: inbound.MostFailures, start: func(well func()) (inbound.Connector, string, error) {
		return &inbound.Schedule{When: when, Text: values["text"], Now: time.Now, Well: well}, when.Next(time.Now()).Format(time.RFC3339), nil
	}}, nil
}

// onlyThese refuses values that mean nothing to a connector.
func onlyThese(values map[string]string, names ...string) error {
	for name := range values {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s means nothing here; there are: %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}
