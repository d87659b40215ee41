package bundle

import (
	"fmt"
	"strings"

	"dure/agent/query"
)

// value checks a value source; a secret had better not stand in the file.
func (l *loader) value(v Value, secret bool) {
	n := &node{at: v.Place}
	switch {
	case secret && v.Literal != "":
		l.warn(query.BundleValue, n, v.Path, "write: {valueFrom: {env: NAME}}", "a secret stands in the file itself")
	case v.Env != "" && l.opts.Getenv != nil:
		if s, ok := l.opts.Getenv(v.Env); !ok || s == "" {
			l.at(query.BundleValue, n, v.Path, "set it, or write it into .env.local", "the variable %s is not set", v.Env)
		}
	}
}

// Resolve returns what a value comes to. secret returns a stored secret; nil = there are none.
func (b *Bundle) Resolve(v Value, secret func(string) (string, bool)) (string, error) {
	switch {
	case v.Env != "":
		if b.getenv != nil {
			if s, ok := b.getenv(v.Env); ok {
				return s, nil
			}
		}
		return "", fmt.Errorf("the variable %s is not set", v.Env)
	case v.Secret != "":
		if secret != nil {
			if s, ok := secret(v.Secret); ok {
				return s, nil
			}
		}
		return "", fmt.Errorf("the secret %s is not stored", v.Secret)
	}
	return v.Literal, nil
}

// ReadEnv reads a file with a variable in each line, as NAME=VALUE. A value may stand in
// quotes; in double ones, \n is a new line. Lines that are no such thing are left out.
func ReadEnv(data []byte) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !isVariable(name) {
			continue
		}
		value = strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(value, `"`):
			value, _, _ = strings.Cut(strings.TrimPrefix(value, `"`), `"`)
			value = strings.ReplaceAll(value, `\n`, "\n")
		case strings.HasPrefix(value, "'"):
			value, _, _ = strings.Cut(strings.TrimPrefix(value, "'"), "'")
		default:
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		all[name] = value
	}
	return all
}
