package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"dure/internal/kernel/session"
)

const (
	maxLanes    = 32
	maxLaneName = 64 // bytes
	maxTurns    = 1000
	maxWaiting  = 100_000
)

// agentLane is the lane of agents. It has no bound of its own: one whose agents wait would
// wait for them, and they for it.
const agentLane = "subagent"

// lanes applies what a layer says about lanes.
func (l *loader) lanes(e entry) error {
	var all map[string]struct{ Turns, Queue *int }
	if err := e.decode(&all); err != nil {
		return err
	}
	ly := e.ly
	for _, name := range slices.Sorted(maps.Keys(all)) {
		key, said := e.path+"."+name, all[name]
		lane, known := l.cfg.Lanes[name]
		switch {
		case name == agentLane:
			return l.invalid(ly, key, name, "main, cron, a name of your own; agents have limits of their own")
		case len(name) > maxLaneName, strings.ContainsFunc(name, unicode.IsControl):
			return l.invalid(ly, key, name, fmt.Sprintf("a name of at most %d bytes", maxLaneName))
		case !known && len(l.cfg.Lanes) >= maxLanes:
			return l.invalid(ly, key, name, fmt.Sprintf("%d lanes at most", maxLanes))
		}
		for _, f := range []struct {
			key  string
			from *int
			to   *int
			most int
		}{{key + ".turns", said.Turns, &lane.Turns, maxTurns}, {key + ".queue", said.Queue, &lane.Queue, maxWaiting}} {
			if f.from == nil {
				continue
			}
			if *f.from < 1 || *f.from > f.most {
				return l.invalid(ly, f.key, fmt.Sprint(*f.from), fmt.Sprintf("a number from 1 to %d", f.most))
			}
			l.set(ly, f.key, *f.to != *f.from)
			*f.to = *f.from
		}
		if l.cfg.Lanes == nil {
			l.cfg.Lanes = map[string]session.LaneConfig{}
		}
		l.cfg.Lanes[name] = lane
	}
	return nil
}
