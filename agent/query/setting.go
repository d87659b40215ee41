package query

import "encoding/json"

// What is done with a setting.
const (
	SettingSet   = "set"
	SettingUnset = "unset"
)

// Questions about settings.
type (
	// ListSettings asks for []Setting: those that have a value, sorted.
	ListSettings struct {
		All    bool `json:"all,omitempty"`    // those with a built-in value, too
		Masked bool `json:"masked,omitempty"` // whatever looks like a secret is masked
	}

	// FindSettings asks for FoundSettings.
	FindSettings struct {
		Name     string `json:"name,omitempty"`     // of a setting or a group, in any spelling; "" = all
		Language string `json:"language,omitempty"` // of the texts: en or ko
	}

	// ExplainSetting asks for the ExplainedSetting.
	ExplainSetting struct {
		Key string `json:"key"`
	}

	// ListSettingsFiles asks for []SettingsFile, the weakest first.
	ListSettingsFiles struct{}

	// MakeSettings makes the file of a scope if it is missing, and returns the SettingsFile.
	MakeSettings struct {
		Scope string `json:"scope"`
	}

	// CheckSettings reads the settings again. The answer is true, or the problem.
	CheckSettings struct{}

	// ChangeSetting sets or unsets a setting in the file of a scope and returns the SettingChange.
	ChangeSetting struct {
		Do    string `json:"do"`
		Scope string `json:"scope"`
		Key   string `json:"key"`
		Value string `json:"value,omitempty"` // of a list, an entry to add or to remove; unset: "" = all
	}
)

// Query returns the name of the query on the wire.
func (ListSettings) Query() string      { return "settings" }
func (FindSettings) Query() string      { return "settings.keys" }
func (ExplainSetting) Query() string    { return "settings.explain" }
func (ListSettingsFiles) Query() string { return "settings.files" }
func (MakeSettings) Query() string      { return "settings.make" }
func (CheckSettings) Query() string     { return "settings.check" }
func (ChangeSetting) Query() string     { return "settings.change" }

// SettingScopes returns the scopes whose files may be changed, the usual one first.
func SettingScopes() []string { return []string{"user", "project", "local"} }

// Setting is a setting that has a value.
type Setting struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`  // secrets are hidden
	Origin SettingOrigin   `json:"origin"` // of what counts; of lists and objects the strongest
}

// SettingOrigin is where a value comes from.
type SettingOrigin struct {
	Layer string `json:"layer"`
	Where string `json:"where,omitempty"` // file:line:column, a variable or a flag
}

func (o SettingOrigin) String() string {
	if o.Where == "" {
		return o.Layer
	}
	return o.Layer + " (" + o.Where + ")"
}

// FoundSettings are the settings that there are: all, one, or a group and the settings in it.
type FoundSettings struct {
	Keys    []SettingKey `json:"keys"`
	Nearest string       `json:"nearest,omitempty"` // there is none of that name; this one may be meant
}

// SettingKey is a setting that there is.
type SettingKey struct {
	Path    string   `json:"path"` // as files spell it; a star is any name
	Type    string   `json:"type"` // group: an object of settings
	Meaning string   `json:"meaning,omitempty"`
	Default string   `json:"default,omitempty"` // as JSON
	Values  []string `json:"values,omitempty"`  // that it may have; nil = any
	Least   float64  `json:"least,omitempty"`   // of numbers; it counts only with Most
	Most    float64  `json:"most,omitempty"`    // 0 = no limit
	Who     string   `json:"who"`               // may set it
	Live    bool     `json:"live"`              // a change is in force from the next call on, and not only from the next start
}

// IsGroup reports whether it is an object of settings, and no setting itself.
func (k SettingKey) IsGroup() bool { return k.Type == "group" }

// ExplainedSetting says who says what about a setting.
type ExplainedSetting struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`  // in force; null = none
	Layers []SettingLayer  `json:"layers"` // the weakest first
}

// SettingLayer is what one layer says about a setting, and whether it counts.
type SettingLayer struct {
	Key    string          `json:"key"`
	Origin SettingOrigin   `json:"origin"`
	Value  json.RawMessage `json:"value"` // secrets are hidden
	Counts bool            `json:"counts"`
	Why    string          `json:"why,omitempty"`  // it does not, or not all of it
	Left   []string        `json:"left,omitempty"` // entries that do not count
	By     *SettingOrigin  `json:"by,omitempty"`   // who is stronger
}

// SettingsFile is a file that settings are read from.
type SettingsFile struct {
	Scope  string `json:"scope"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Ours   bool   `json:"ours"` // it may be written; those of .claude folders are only read
}

// SettingChange is what a change of a setting has done.
type SettingChange struct {
	Key    string          `json:"key"`
	Scope  string          `json:"scope"`
	Path   string          `json:"path"`
	Value  json.RawMessage `json:"value"`            // in the file now; null = none
	Live   bool            `json:"live"`             // it holds from the next call on, and not only from the next start
	Counts bool            `json:"counts"`           // what the file says now is in force
	Why    string          `json:"why,omitempty"`    // it is not
	By     string          `json:"by,omitempty"`     // who is stronger
	Same   bool            `json:"same,omitempty"`   // the file is as it was
	Secret bool            `json:"secret,omitempty"` // the value is not shown
}
