package compact

// Status says how full a window is.
type Status string

// The states of a window.
const (
	Safe     Status = "safe"
	Warning  Status = "warning"
	Critical Status = "critical"
	Exceeded Status = "exceeded"
)

// Window is how full the window of a model is.
type Window struct {
	Used   int     `json:"used"` // tokens of the conversation and what is in front of it
	Max    int     `json:"max"`
	Ratio  float64 `json:"ratio"` // Used to what is left of Max beside the reserve
	Status Status  `json:"status"`
	Needed bool    `json:"needed"` // the conversation should be shortened
}

// State returns how full a window is. Exceeded means that the answer would not have
// its reserve.
func (o Options) State(used, window int) Window {
	o = o.withDefaults()
	w := Window{Used: used, Max: window, Status: Safe}
	if window <= 0 {
		return w
	}
	room := window - o.reserve(window)
	w.Ratio = float64(used) / float64(room)
	w.Needed = w.Ratio >= o.Threshold
	switch {
	case used > room:
		w.Status, w.Needed = Exceeded, true
	case w.Ratio >= o.Critical:
		w.Status = Critical
	case w.Ratio >= o.Warning:
		w.Status = Warning
	}
	return w
}

// reserve is what an answer is left; of small windows not more than a quarter.
func (o Options) reserve(window int) int { return min(o.Reserve, window/4) }

// trigger is how many tokens of a window are too many.
func (o Options) trigger(window int) int {
	return int(float64(window-o.reserve(window)) * o.Threshold)
}
