package app

import (
	"testing"
	"time"

	"dure/internal/app/config"
)

// Who waits in vain for another program to be done with the settings is told so.
func TestSettingsAreChangedElsewhere(t *testing.T) {
	t.Parallel()
	a := &App{cfg: config.Config{Data: t.TempDir()}}
	unlock, err := a.lockSettings(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.lockSettings(t.Context(), 50*time.Millisecond); err == nil || err.Error() != "another program is changing settings" {
		t.Errorf("the second one: %v", err)
	}
	unlock()
	if unlock, err = a.lockSettings(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	unlock()
}
