package plugins

// Choices are what files of settings say of plugins, by their IDs, the strongest first.
type Choices []Choice

// A Choice is the word of one file. What a repository says that nobody trusts is not
// among them.
type Choice struct {
	Where string // how it is called: managed, local, project, user, ...
	On    map[string]bool
	Weak  bool // it counts behind what was said with a command
}

// Enabled says whether an installed plugin is in force in a folder, and who says so:
// files that are stronger than commands, the strongest first; what was said for the
// folder; what was said for everywhere; files that are weaker; the plugin itself.
func (c Choices) Enabled(in Installed, off bool, folder string) (on bool, by string) {
	said := func(weak bool) (on, ok bool, by string) {
		for _, one := range c {
			if v, ok := one.On[in.ID]; ok && one.Weak == weak {
				return v, true, one.Where
			}
		}
		return false, false, ""
	}
	if on, ok, by := said(false); ok {
		return on, by
	}
	if on, ok := in.In[folder]; ok {
		return on, "folder"
	}
	if in.On != nil {
		return *in.On, "command"
	}
	if on, ok, by := said(true); ok {
		return on, by
	}
	return !off, "plugin"
}
