package app

import (
	"strings"

	"dure/internal/app/config/live"
)

// CheckFlags says what the command line names that is not there, or cannot be read: a run
// would go on without it, and nobody would see that. A host may know tools that there are not
// here, and rules for them; those are left out.
func (a *App) CheckFlags() error {
	f := a.opts.Flags
	for name := range strings.SplitSeq(f.Fallback, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if _, err := a.models.Info(name); err != nil {
			return err
		}
	}
	if err := a.servers.CheckGiven(); err != nil || f.Hosted {
		return err
	}
	if err := live.CheckRules(a.cfg, f.Allow, f.Deny); err != nil || f.Tools == nil {
		return err
	}
	return live.CheckTools(*f.Tools)
}
