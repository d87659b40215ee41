package app

// Ready says why no model can be asked now, as far as that shows without asking one: there
// is no key, or the settings name a model that is not there. nil = one can be.
func (a *App) Ready() error {
	name, err := a.usual(a.cfg.Profile)
	if err != nil {
		return err
	}
	_, err = a.model(name)
	return err
}
