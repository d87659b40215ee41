// Package builtin holds the built-in tools that need nothing but their session, the
// task list and the question to the user. The packages beside it hold the others by
// what they work on, and kit has what all of them are made of.
//
// A tool says what it would touch (Plan) and does its work (Run). It never asks
// for permission, never cuts its output to save the context beyond its own
// paging, and never redacts: the gate before it and the guard behind it do.
// The description that the model reads stands in a .md file beside each tool.
// Tools start no goroutines that outlive a call, but for those of background
// jobs, which end with their session.
package builtin
