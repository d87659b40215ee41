package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrOption is a value that an option does not take, or an option that there is not.
var ErrOption = errors.New("the option does not take it")

// maxValue bounds the value of an option, in bytes.
const maxValue = 8 << 10

// Value reads what a person has written for an option. A list is written with commas.
func Value(o Option, text string) (json.RawMessage, error) {
	texts := []string{text}
	if o.Multiple {
		texts = strings.Split(text, ",")
	}
	var all []any
	for _, t := range texts {
		v, err := one(o, strings.TrimSpace(t))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	var v any = all
	if !o.Multiple {
		v = all[0]
	}
	return json.Marshal(v)
}

func one(o Option, text string) (any, error) {
	bad := func(why string) (any, error) { return nil, fmt.Errorf("%w: %s %s", ErrOption, o.Key, why) }
	if len(text) > maxValue || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) }) {
		return bad("is one line of at most 8 KiB")
	}
	switch o.Type {
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return bad("is true or false")
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return bad("is a number")
		}
		return n, between(o, n, "")
	case "directory", "file":
		if !filepath.IsAbs(text) {
			return bad("is an absolute path")
		}
		return filepath.Clean(text), nil
	}
	if text == "" && o.Required {
		return bad("is not to be empty")
	}
	return text, between(o, float64(utf8.RuneCountInString(text)), " characters")
}

func between(o Option, n float64, what string) error {
	if o.Min != nil && n < *o.Min || o.Max != nil && n > *o.Max {
		low, high := "any", "any"
		if o.Min != nil {
			low = strconv.FormatFloat(*o.Min, 'g', -1, 64)
		}
		if o.Max != nil {
			high = strconv.FormatFloat(*o.Max, 'g', -1, 64)
		}
		return fmt.Errorf("%w: %s has from %s to %s%s", ErrOption, o.Key, low, high, what)
	}
	return nil
}

// Option returns the option of a name.
func (p Plugin) Option(key string) (Option, error) {
	i := slices.IndexFunc(p.Options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		var keys []string
		for _, o := range p.Options {
			keys = append(keys, o.Key)
		}
		return Option{}, fmt.Errorf("%w: %s has no option %s; it has: %s", ErrOption, p.Name, clip(key), strings.Join(keys, ", "))
	}
	return p.Options[i], nil
}

// Set keeps what the user has chosen for an option that is no secret; nil forgets it.
func (s *Store) Set(name, key string, v json.RawMessage) error {
	return s.change(func(b *book) error {
		at, err := b.find(name)
		if err != nil {
			return err
		}
		p := &b.Plugins[at]
		all := map[string]json.RawMessage{}
		for k, have := range p.Options {
			all[k] = have
		}
		if all[key] = v; v == nil {
			delete(all, key)
		}
		p.Options = all
		return nil
	})
}

// SecretName is the name under which a secret of a plugin is kept among the keys. What one
// project's plugin is told no other project's learns.
func (l Loaded) SecretName(key string) string {
	if l.Held {
		return "plugin:" + l.ID + ":" + l.Root + ":" + key
	}
	return "plugin:" + l.ID + ":" + key
}

// Values are what the options of a plugin are set to, as texts, and what is missing.
// chosen is what the user has said, the stronger before the weaker; secret finds a secret.
func (p Plugin) Values(chosen []map[string]json.RawMessage, secret func(key string) string) (open, secrets map[string]string, missing []string) {
	open, secrets = map[string]string{}, map[string]string{}
	for _, o := range p.Options {
		v := ""
		if o.Sensitive {
			if secret != nil {
				v = secret(o.Key)
			}
			if v != "" {
				secrets[o.Key] = v
			}
		} else if v = chosenOf(o, chosen); v != "" {
			open[o.Key] = v
		}
		if v == "" && o.Required {
			missing = append(missing, o.Key)
		}
	}
	return open, secrets, missing
}

// chosenOf is the strongest value that an option takes, or its default.
func chosenOf(o Option, all []map[string]json.RawMessage) string {
	for _, one := range all {
		raw, ok := one[o.Key]
		if !ok {
			continue
		}
		if v, err := Value(o, plainText(raw)); err == nil {
			return plainText(v)
		}
	}
	if isNull(o.Default) {
		return ""
	}
	return plainText(o.Default)
}

// plainText is a JSON value as a person writes it: lists with commas.
func plainText(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, one := range v {
			data, err := json.Marshal(one)
			if err == nil {
				all = append(all, plainText(data))
			}
		}
		return strings.Join(all, ",")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
