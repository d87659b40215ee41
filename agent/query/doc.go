// Package query has what front-ends ask for that is not part of one session's log, and the
// reports that they get for it: lists of skills, models and rules, diffs, searches.
//
// As in [agent], what has a JSON tag is sent to clients: names are never reused, and fields
// are only added. The kernel answers the few queries of [agent] itself and does not know
// these. The package holds no state and starts no goroutines.
package query
