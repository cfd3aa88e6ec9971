package order

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// A stray is a request that may write, and whose connection was lost after the node had been sent
// some of it. Its client may have an answer by now, and the node may still execute it: until the node
// acknowledges the next generation of that pipe, which closes the lost connection. Pipes of other
// lanes are not closed by that. So a session that has strays at a node sends that node nothing in
// another lane before:
//
//	wrong  large: SET a 1 ✗            common: SET a 2        SET a 1 arrives and is executed
//	right  large: SET a 1 ✗ PIPE, +OK  common: SET a 2        SET a 1 was thrown away
//
// The lane itself needs no such rule: it is open only behind that acknowledgement. Nor do other
// nodes, see Gate in package node/ownership. Nor does a node that left the table: if it returns, it
// has gained all that it owns, and Gate keeps strays from that. So a session remembers strays at
// nodes of the table only. Sessions without strays use the other lanes as before.

// carriesCommands reports whether what travels in the lane is executed. Pieces of replies are only
// read.
func (l Lane) carriesCommands() bool { return l.Kind != member.Fetching }

// strayed is the event that a request of the session has become a stray of the pipe, unless that is open again: a
// blocking command may come back after that.
func (m *Machine) strayed(s *Session, p *Pipe) {
	if p.state == open || !p.Lane.carriesCommands() || p.Node.left || m.broken.forgetsStrays() {
		return
	}
	p.strays = true
	if !slices.Contains(s.strays, p) {
		s.strays = append(s.strays, p)
	}
}

// mayOvertakeStrays reports whether what the session sends on the pipe could be executed before its
// own strays at that node. It opens their pipes, so that the node closes the lost connections.
func (m *Machine) mayOvertakeStrays(s *Session, p *Pipe, now time.Duration) (wait bool) {
	if !p.Lane.carriesCommands() {
		return false
	}
	s.strays = slices.DeleteFunc(s.strays, func(q *Pipe) bool { return !q.strays || q.Node.left })
	for _, q := range s.strays {
		if q.Node == p.Node && q != p {
			m.open(q, now)
			wait = true
		}
	}
	return wait
}
