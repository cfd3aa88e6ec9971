package session

import (
	"iter"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// CLIENT LIST, KILL, UNBLOCK and PAUSE concern the clients of all loops. Do checks their options;
// the caller then visits every loop with an Everyone and sends its Reply.

// Client is a client connection. Its methods are called on its loop.
type Client interface {
	// StateNow returns the State with the present InBytes, OutBytes, NetIn and NetOut.
	StateNow() *State
	// Kill closes the connection at once.
	Kill()
	// Unblock resumes the commands that a pause has stopped.
	Unblock()
	// Wake ends the wait of the client, as EndWaiting does.
	Wake(reply []byte) (ended bool)
}

// Everyone is a command about the clients of all loops.
type Everyone struct {
	action  Action
	asking  uint64 // id of the client that sent the command
	version resp.Version
	words   int          // number of words of the request
	filter  ClientFilter // of LIST and KILL
	id      int64        // the client that UNBLOCK names
	with    []byte       // and the reply that it gets
	loops   []found      // by loop; each element is written on its loop
}

// found is the result of a command on one loop.
type found struct {
	clients int
	suicide bool // the asking client is among the killed
	lines   []clientLine
}

type clientLine struct {
	id   uint64
	text []byte
}

// NewEveryone returns the command of a request for which Do returned ActionClientList,
// ActionClientKill, ActionClientUnblock or ActionPause. It keeps no view of args.
func NewEveryone(a Action, st *State, args [][]byte, loops int) *Everyone {
	e := &Everyone{action: a, asking: st.ID, version: st.Version, words: len(args), loops: make([]found, loops)}
	switch a {
	case ActionClientList, ActionClientKill:
		e.filter = clientFilterOf(args, st)
	case ActionClientUnblock:
		e.id, e.with = unblockOf(args)
	}
	return e
}

// Visit executes the command on the loop with the given index; call it there, with the loop's
// reading of the server's Clock. For a pause Visit does nothing: see Pauser.
func (e *Everyone) Visit(loop int, now time.Duration, clients iter.Seq[Client]) {
	f := &e.loops[loop]
	for c := range clients {
		st := c.StateNow()
		switch {
		case e.action == ActionClientUnblock && st.unblockedBy(e.id):
			if c.Wake(e.with) {
				f.clients++
			}
			return // ids are unique, and the awakened client may have left
		case e.action == ActionClientList && e.filter.Match(st, now):
			f.lines = append(f.lines, clientLine{st.ID, AppendClientLine(nil, st, now)})
		case e.action == ActionClientKill && e.filter.Match(st, now):
			f.clients++
			if st.ID == e.asking {
				f.suicide = true
				continue
			}
			c.Kill()
		}
	}
}

// Reply returns the reply when all loops have been visited. Any goroutine may call it. suicide is
// true if CLIENT KILL also selects the asking client, whose connection then closes behind the
// reply.
func (e *Everyone) Reply() (reply []byte, suicide bool) {
	total := 0
	var lines []clientLine
	for i := range e.loops {
		total += e.loops[i].clients
		suicide = suicide || e.loops[i].suicide
		lines = append(lines, e.loops[i].lines...)
	}
	switch e.action {
	case ActionClientList:
		slices.SortFunc(lines, func(a, b clientLine) int { return int(a.id) - int(b.id) })
		var text []byte
		for _, l := range lines {
			text = append(text, l.text...)
		}
		return appendClientList(nil, e.version, text), false
	case ActionClientKill:
		return appendClientKill(nil, e.words, total), suicide
	case ActionClientUnblock:
		return resp.AppendInt(nil, int64(total)), false
	}
	return resp.AppendOK(nil), false
}

// Pauser applies CLIENT PAUSE and UNPAUSE to the clients of one loop. Its methods are called on
// that loop. All fields must be set.
type Pauser struct {
	Server  *Server
	Clients iter.Seq[Client]                                // of the loop
	Now     func() time.Duration                            // the loop's reading of the server's Clock
	After   func(d time.Duration, f func()) (cancel func()) // calls f on the loop, once

	cancel func() // ends the wait for the end of the last pause; nil: there was none
}

// Obey pauses or resumes the clients, and resumes them when the pause ends.
func (p *Pauser) Obey() {
	left := p.Server.PauseLeft(p.Now())
	for c := range p.Clients {
		if c.StateNow().SetPaused(left > 0) {
			c.Unblock()
		}
	}
	p.Stop()
	if left > 0 {
		p.cancel = p.After(left, p.Obey)
	}
}

// Stop ends the wait for the end of a pause. The clients stay as they are.
func (p *Pauser) Stop() {
	if p.cancel != nil {
		p.cancel()
	}
}
