// Package agent is the vocabulary that every other package speaks: messages,
// tool calls, decisions, commands, events, and the queries that the kernel answers.
// The other queries are in [dure/agent/query].
//
// Everything here with a JSON tag is written to disk and sent to clients, so
// names are never reused and fields are only added. Values are immutable once
// they have been handed to somebody else: slices and raw JSON inside them are
// shared, not copied. The package holds no state, starts no goroutines and
// imports nothing but the standard library.
package agent
