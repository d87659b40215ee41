package config

import (
	"path/filepath"

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

// managedFile is where an administrator puts settings that nobody loosens. No
// variable moves it.
func managedFile(os string) string {
	switch os {
	case "darwin":
		return "/Library/Application Support/dure/settings.json"
	case "windows":
		return `C:\Program Files\dure\settings.json`
	}
	return "/etc/dure/settings.json"
}
