package agent

import "time"

// A Schedule is a prompt that is sent again and again, to a new session each time.
type Schedule struct {
	ID      string    `json:"id"`
	Cron    string    `json:"cron"`
	Zone    string    `json:"time_zone"`
	Prompt  string    `json:"prompt"`
	Workdir string    `json:"workdir"`
	Agent   string    `json:"agent,omitempty"` // that the sessions run as; "" = none
	Created time.Time `json:"created"`

	Last     time.Time `json:"last,omitzero"`     // the time that was taken last
	Session  string    `json:"session,omitempty"` // of the run that ended last
	Error    string    `json:"error,omitempty"`   // of that; "" = it went well
	Failures int       `json:"failures"`          // runs in a row
	Disabled bool      `json:"disabled,omitempty"`

	Next []time.Time `json:"next,omitempty"` // the next times, where somebody asks
}

// A ScheduleNote tells how a run of a schedule ended.
type ScheduleNote struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Session  string    `json:"session,omitempty"`
	Text     string    `json:"text,omitempty"` // what was said last
	Error    string    `json:"error,omitempty"`
	Disabled bool      `json:"disabled,omitempty"` // it was the failure that disabled it
}
