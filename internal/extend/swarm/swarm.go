// Package swarm knows the types of agents that a session can hand work to, and is the
// tool by which it does. Types come from Markdown files, from the command line and from
// the program; each has instructions, tools, a model, a mode and limits of its own.
//
// It owns the form of the files, which of two of one name counts, what a child session
// is told and may have, and the children that run in the background: each of those has
// one goroutine, which settles it, and [Swarm.Close] waits for them. It opens no session
// by itself and decides nothing about permission; what a child may do is never more than
// what its parent may, which the session and the program see to.
package swarm
