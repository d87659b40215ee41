// Package plug is the contract between a session and its capabilities: the types of the
// points at which hooks, skills, checkpoints, models and tools take part in a session.
// It has types alone: it starts no goroutines and does nothing.
package plug
