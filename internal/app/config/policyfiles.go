package config

import "path/filepath"

// PolicyFiles returns where policies stand that are not part of the settings: the
// user's, and that of the machine's administrator, which nobody loosens.
func (c Config) PolicyFiles(os string) (user, managed string) {
	file, _ := managedPlaces(os)
	if os == "windows" {
		return filepath.Join(c.Home, "policy.jsonc"), file[:len(file)-len("managed-settings.json")] + "policy.jsonc"
	}
	return filepath.Join(c.Home, "policy.jsonc"), filepath.Join(filepath.Dir(file), "policy.jsonc")
}
