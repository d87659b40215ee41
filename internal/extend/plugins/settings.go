package plugins

import "encoding/json"

// Settings are what the settings say of plugins.
type Settings struct {
	Plugins       map[string]bool // by name@marketplace; what is not there was not said
	ManagedPlugin map[string]bool // those on which the administrator has decided
	PluginConfigs map[string]json.RawMessage
	Marketplaces  map[string]json.RawMessage // beside the known ones
	OnlyMarkets   *[]json.RawMessage         // nil = any; an empty list is none
	BlockMarkets  []json.RawMessage
}

// Allow is what the administrator says of where plugins come from.
func (s Settings) Allow() Allow {
	allow := Allow{Strict: s.OnlyMarkets != nil}
	if allow.Strict {
		for _, raw := range *s.OnlyMarkets {
			if src, err := ReadSource(raw); err == nil {
				allow.Known = append(allow.Known, src)
			}
		}
	}
	for _, raw := range s.BlockMarkets {
		src, err := ReadSource(raw)
		if err != nil {
			allow.Unread = true
			continue
		}
		allow.Blocked = append(allow.Blocked, src)
	}
	return allow
}
