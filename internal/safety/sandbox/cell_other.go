//go:build !linux && !darwin && !windows

package sandbox

import "os/exec"

// A cell is what a box confines its commands with: nothing, on this system.
type cell struct{}

func (*cell) init(Config) {}

func (*cell) close() {}

// jail confines nothing: Explain says so.
func (b *Box) jail(*exec.Cmd, Cmd) (jail, error) { return nil, nil }

// Explain says that nothing holds.
func (b *Box) Explain() Report {
	return Report{Level: None, Missing: []string{"Nothing is confined on this system: commands do what the user can."}}
}

// ExplainCmd has no paths to tell of.
func (*Box) ExplainCmd(Cmd) ([]Mount, error) { return nil, nil }
