package policy

import (
	"bytes"
	_ "embed" // the default policy
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"dure/agent"
	"dure/internal/base/jsonc"
)

// File is a policy as it stands in a file.
type File struct {
	Path          string
	Mode          agent.Mode
	Rules         []Rule
	SafeVars      []string
	Groups        map[string]agent.Verdict
	ManagedOnly   bool
	DisableBypass bool
}

// Apply returns a configuration with what the file says added.
func (f File) Apply(c Config) Config {
	if f.Mode != "" {
		c.Mode = f.Mode
	}
	c.Rules = slices.Concat(c.Rules, f.Rules)
	c.SafeVars = slices.Concat(c.SafeVars, f.SafeVars)
	c.ManagedOnly, c.DisableBypass = c.ManagedOnly || f.ManagedOnly, c.DisableBypass || f.DisableBypass
	if f.Groups != nil {
		c.Groups = f.Groups
	}
	return c
}

//go:embed default.jsonc
var shippedPolicy []byte

//go:embed default_test.jsonl
var shippedCases []byte

// Default returns the policy that comes with the program, and its expectations.
func Default() (policy, cases []byte) {
	return bytes.Clone(shippedPolicy), bytes.Clone(shippedCases)
}

// The limits of a policy file.
const (
	maxFile  = 4 << 20
	maxRules = 100_000
)

// ParsePolicy reads a policy file: JSON with // and /* */ comments and trailing
// commas. What it does not know is an error with its line, since a policy that was
// read in half would decide otherwise than it is written:
//
//	{
//	  "mode": "default",
//	  "permissions": {
//	    "allow": ["Bash(go test *)"], "ask": [], "deny": [],
//	    "rules": [{"tool": "Bash", "pattern": "rm *", "behavior": "ask", "reason": "..."}],
//	  },
//	  "safeVars": ["GOFLAGS"], "groups": {"data": "ask"},
//	  "managedOnly": false, "disableBypass": false,
//	}
func ParsePolicy(data []byte, file string) (File, error) {
	f := File{Path: file}
	if len(data) > maxFile {
		return f, fmt.Errorf("reading %s: it is larger than %d bytes", file, maxFile)
	}
	plain, err := jsonc.Plain(data)
	if err != nil {
		return f, fmt.Errorf("reading %s:%w", file, err)
	}
	r := fileReader{data: plain, dec: json.NewDecoder(bytes.NewReader(plain)), file: &f}
	err = r.object(func(key string) error {
		switch key {
		case "mode":
			if err := r.dec.Decode(&f.Mode); err != nil {
				return err
			}
			return checkMode(f.Mode)
		case "permissions":
			return r.object(r.permission)
		case "safeVars":
			return r.dec.Decode(&f.SafeVars)
		case "groups":
			if err := r.dec.Decode(&f.Groups); err != nil {
				return err
			}
			for group, v := range f.Groups {
				if _, err := VerdictOf(string(v)); err != nil || v == agent.Pass {
					return fmt.Errorf("group %q has no verdict", group)
				}
			}
			return nil
		case "managedOnly":
			return r.dec.Decode(&f.ManagedOnly)
		case "disableBypass":
			return r.dec.Decode(&f.DisableBypass)
		}
		return fmt.Errorf("unknown key %q", key)
	})
	if err == nil {
		if _, err = r.dec.Token(); errors.Is(err, io.EOF) {
			return f, nil
		}
		err = errors.New("something stands behind the policy")
	}
	return File{Path: file}, fmt.Errorf("reading %s:%d: %w", file, r.line(r.dec.InputOffset()), err)
}

// fileReader reads a policy token by token, so that each rule knows its line.
type fileReader struct {
	data []byte
	dec  *json.Decoder
	file *File

	seen  int64 // up to here lines are counted
	lines int
}

func (r *fileReader) object(value func(key string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := value(key); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

func (r *fileReader) delim(want json.Delim) error {
	t, err := r.dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%s is wanted here", want)
	}
	return nil
}

func (r *fileReader) permission(list string) error {
	verdict := agent.Verdict(list)
	switch list {
	case "allow", "ask", "deny":
	case "rules":
		verdict = agent.Pass
	default:
		return fmt.Errorf("unknown key %q", "permissions."+list)
	}
	if err := r.delim('['); err != nil {
		return err
	}
	for r.dec.More() {
		line, column := r.place(r.start())
		var rule Rule
		if err := r.dec.Decode(&rule); err != nil {
			return err
		}
		switch {
		case len(r.file.Rules) == maxRules:
			return fmt.Errorf("there are more than %d rules", maxRules)
		case verdict == agent.Pass && rule.Verdict == agent.Pass:
			return fmt.Errorf("rule %q says none of allow, ask, deny", rule.Written())
		case verdict != agent.Pass && rule.Verdict != agent.Pass && rule.Verdict != verdict:
			return fmt.Errorf("rule %q is among those that %s, and says %s", rule.Written(), verdict, rule.Verdict)
		case rule.Verdict == agent.Pass:
			rule.Verdict = verdict
		}
		rule.Source = Source{File: r.file.Path, Line: line, Column: column}
		r.file.Rules = append(r.file.Rules, rule)
	}
	_, err := r.dec.Token()
	return err
}

// start returns where the next value begins.
func (r *fileReader) start() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.data)) && bytes.IndexByte([]byte(" \t\r\n,"), r.data[at]) >= 0 {
		at++
	}
	return at
}

// place returns the line and the column of an offset, both from 1.
func (r *fileReader) place(at int64) (line, column int) {
	return r.line(at), int(at) - bytes.LastIndexByte(r.data[:at], '\n')
}

// line returns the line of an offset, from 1. Offsets come in their order.
func (r *fileReader) line(at int64) int {
	if at >= r.seen {
		r.lines += bytes.Count(r.data[r.seen:at], []byte("\n"))
		r.seen = at
	}
	return r.lines + 1
}
