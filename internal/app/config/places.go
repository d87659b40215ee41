package config

import (
	"path/filepath"
	"strings"

	"dure/agent"
)

// places finds the folders for configuration and data: DURE_HOME for both,
// else ~/.dure and what the platform uses for data.
func (l *loader) places() error {
	env := l.src.Getenv
	if dir := env("DURE_HOME"); dir != "" {
		l.cfg.Home = l.absolute(dir)
		l.cfg.Data = l.cfg.Home
		l.cfg.Origins["data"] = Origin{Environment, "DURE_HOME"}
		return nil
	}
	home := l.src.UserHome
	if home == "" {
		return &agent.Problem{
			Code:    agent.ProblemHome,
			Message: "the user has no home folder: HOME is not set",
			Fix:     "Set HOME, or name a folder for everything that dure keeps with DURE_HOME.",
		}
	}
	l.cfg.Home = filepath.Join(home, ".dure")
	l.cfg.Data, l.cfg.Origins["data"] = dataFolder(l.src.OS, home, env)
	return nil
}

// dataFolder returns where the platform keeps an application's data. Like the
// XDG specification says, a relative XDG_DATA_HOME counts as not set.
func dataFolder(os, home string, env func(string) string) (string, Origin) {
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dure"), Origin{Environment, "XDG_DATA_HOME"}
	}
	switch os {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "dure"), Origin{Layer: BuiltIn}
	case "windows":
		if dir := env("LOCALAPPDATA"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "dure"), Origin{Environment, "LOCALAPPDATA"}
		}
		return filepath.Join(home, "AppData", "Local", "dure"), Origin{Layer: BuiltIn}
	}
	return filepath.Join(home, ".local", "share", "dure"), Origin{Layer: BuiltIn}
}

// settingsFiles are the files that settings are read from; "" = there is none.
type settingsFiles struct {
	user, project, local, inline string
	managed, managedDir          string
}

// files returns where settings stand. In the home folder the project's file is
// that of the user, who needs no permission from himself.
func (l *loader) files() settingsFiles {
	project := filepath.Join(l.src.Workdir, ".dure")
	f := settingsFiles{
		user:    filepath.Join(l.cfg.Home, "settings.json"),
		project: filepath.Join(project, "settings.json"),
		local:   filepath.Join(project, "settings.local.json"),
	}
	f.managed, f.managedDir = managedPlaces(l.src.OS)
	l.cfg.Memory.Managed = filepath.Dir(f.managed)
	if f.project == f.user {
		f.project = ""
	}
	if s := strings.TrimSpace(l.src.Settings); s != "" && s[0] != '{' {
		f.inline = l.absolute(s)
	}
	return f
}

// managedPlaces is where an administrator puts settings that nobody loosens: a
// file, and a folder with more of them. No variable moves it.
func managedPlaces(os string) (file, dir string) {
	switch os {
	case "darwin":
		const base = "/Library/Application Support/dure/"
		return base + "managed-settings.json", base + "managed-settings.d"
	case "windows":
		const base = `C:\Program Files\dure\`
		return base + "managed-settings.json", base + "managed-settings.d"
	}
	return "/etc/dure/managed-settings.json", "/etc/dure/managed-settings.d"
}
