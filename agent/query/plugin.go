package query

// ListPlugins asks for []PluginInfo: those that are installed, and those that are named
// for this run, as they are in Workdir.
type ListPlugins struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
}

// Query returns the name of the query on the wire.
func (ListPlugins) Query() string { return "plugins" }

// PluginInfo is what is known of a plugin.
type PluginInfo struct {
	ID          string `json:"id"` // NAME@MARKETPLACE
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source"`
	SHA256      string `json:"sha256,omitempty"` // of all that it holds, as it was said yes to
	Before      string `json:"before,omitempty"` // version that can be gone back to

	Enabled bool   `json:"enabled"`
	By      string `json:"by"` // who says so: managed, local, project, user, command, folder, plugin, flag

	// Problem says why it does not load although it is enabled; "" = it does.
	Problem string `json:"problem,omitempty"`

	Capabilities []PluginCapability `json:"capabilities"`
	Left         []string           `json:"left"`               // what it brings and that does not count
	Missing      []string           `json:"missing,omitempty"`  // options that have to be set
	Warnings     []string           `json:"warnings,omitempty"` // what was read leniently
}

// PluginCapability is something that a plugin can do.
type PluginCapability struct {
	Kind   string `json:"kind"` // hook, server, program, shell, tools, mode, network, setting, secret, skill, command, agent
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"`
}
