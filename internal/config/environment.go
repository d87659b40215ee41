package config

import "strings"

// environment applies the variables that stand for settings. Of two variables
// for one setting, that of dure is stronger.
func (l *loader) environment() error {
	for _, v := range []struct {
		name string
		to   func(*Settings, *string)
	}{
		{"ANTHROPIC_MODEL", func(s *Settings, v *string) { s.Model = v }},
		{"DURE_MODEL", func(s *Settings, v *string) { s.Model = v }},
		{"ANTHROPIC_BASE_URL", func(s *Settings, v *string) { s.BaseURL = v }},
		{"DURE_DURABILITY", func(s *Settings, v *string) { s.Durability = v }},
		{"DURE_LANG", func(s *Settings, v *string) { s.Language = language(v) }},
	} {
		value := strings.TrimSpace(l.src.Getenv(v.name))
		if value == "" {
			continue
		}
		var s Settings
		v.to(&s, &value)
		if err := l.apply(layer{kind: Environment, path: v.name}, s); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		name string
		to   *Secret
		key  string
	}{
		{"ANTHROPIC_API_KEY", &l.cfg.Key, "key"},
		{"ANTHROPIC_AUTH_TOKEN", &l.cfg.AuthToken, "authToken"},
	} {
		if value := strings.TrimSpace(l.src.Getenv(v.name)); value != "" {
			*v.to = Secret(value)
			l.cfg.Origins[v.key] = Origin{Environment, v.name}
		}
	}
	return nil
}

// language accepts a locale where a language is asked for.
func language(v *string) *string {
	lang, _, _ := strings.Cut(strings.ToLower(*v), "_")
	if lang != "ko" {
		lang = "en"
	}
	return &lang
}
