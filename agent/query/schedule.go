package query

import "dure/agent"

// What is done with a schedule.
const (
	ScheduleAdd    = "add"
	ScheduleRemove = "remove"
	ScheduleEnable = "enable" // one that was disabled
)

// Questions about what is scheduled.
type (
	// ListSchedules asks for []Schedule, with the next times of those that are not disabled.
	ListSchedules struct{}

	// ChangeSchedule adds a schedule for the folder of the program, or changes the one with
	// the ID, and returns the Schedule.
	ChangeSchedule struct {
		Do       string         `json:"do"`
		Schedule agent.Schedule `json:"schedule"`
	}

	// RunSchedule runs a schedule now, and returns a ScheduleNote.
	RunSchedule struct {
		ID string `json:"id"`
	}
)

// Query returns the name of the query on the wire.
func (ListSchedules) Query() string  { return "schedules" }
func (ChangeSchedule) Query() string { return "schedules.change" }
func (RunSchedule) Query() string    { return "schedules.run" }
