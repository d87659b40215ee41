package app

import (
	"dure/agent"
	"dure/internal/frontend/telemetry"
)

// newTelemetry makes what tells of the sessions, where the network mode lets collectors be
// asked.
func (a *App) newTelemetry() *telemetry.Program {
	way, left := a.cfg.Telemetry.Limit(a.reach, a.transport)
	for _, text := range left {
		a.cfg.Notes = append(a.cfg.Notes, agent.Note{Level: "warn", Code: "settings", Text: text})
	}
	return telemetry.NewProgram(telemetry.ProgramConfig{
		Settings: a.cfg.Telemetry, Version: a.opts.Version, HTTP: way, Redact: a.patterns.Redact, Logger: a.opts.Logger, Transport: wire{a},
		Apart: func() bool { return a.parent != nil },
		Loads: func() (running, waiting int) {
			a.mu.Lock()
			queues := a.sessions.queues
			a.mu.Unlock()
			if queues == nil {
				return 0, 0 // none has been opened
			}
			return queues.Loads()
		},
		Provider: func(model string) string {
			info, _ := a.models.Info(model)
			return info.Provider
		},
	})
}
