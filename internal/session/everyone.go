package session

import (
	"iter"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// CLIENT LIST, KILL, UNBLOCK and PAUSE concern the clients of all loops. Do checks their options;
// the caller then visits every loop with an Everyone, and sends its reply.

// Client is a client connection on its loop, where all methods are called.
type Client interface {
	// StateNow returns the State, with InBytes and OutBytes as they are now.
	StateNow() *State
	// Kill closes the connection at once.
	Kill()
	// Unblock goes on with what a pause has held.
	Unblock()
	// Wake ends what the client waits for; reply is that of EndWaiting.
	Wake(reply []byte)
}

// Everyone is a command about the clients of all loops.
type Everyone struct {
	action  Action
	asking  uint64 // the id of the client that gave the command
	version resp.Version
	words   int          // of the request
	filter  ClientFilter // of LIST and KILL
	id      int64        // whom UNBLOCK means
	with    []byte       // and by what reply
	loops   []found      // each written on its loop
}

// found is what a command did on one loop.
type found struct {
	clients int
	suicide bool // the asking client is among them
	lines   []clientLine
}

type clientLine struct {
	id   uint64
	text []byte
}

// NewEveryone returns the command of a request for which Do returned the action, one of
// ActionClientList, ActionClientKill, ActionClientUnblock and ActionPause. It keeps no view of
// args.
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

// Visit does what the command asks for on one loop, by its index, where it must be called. Of a
// pause it does nothing: see Pauser.
func (e *Everyone) Visit(loop int, nowMilli int64, clients iter.Seq[Client]) {
	f := &e.loops[loop]
	for c := range clients {
		st := c.StateNow()
		switch {
		case e.action == ActionClientUnblock && st.unblockedBy(e.id):
			f.clients++
			c.Wake(e.with)
			return // ids differ; and who is awake may have left
		case e.action == ActionClientList && e.filter.Match(st, nowMilli):
			f.lines = append(f.lines, clientLine{st.ID, AppendClientLine(nil, st, nowMilli)})
		case e.action == ActionClientKill && e.filter.Match(st, nowMilli):
			f.clients++
			if st.ID == e.asking {
				f.suicide = true
				continue
			}
			c.Kill()
		}
	}
}

// Reply is called when all loops were visited, from anywhere. With suicide the asking client means
// itself by CLIENT KILL, and is closed behind the reply.
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

// Pauser pauses the clients of one loop as CLIENT PAUSE and UNPAUSE ask. Its methods are called on
// that loop. All fields must be set.
type Pauser struct {
	Server   *Server
	Clients  iter.Seq[Client]                                // of the loop
	NowMilli func() int64                                    // the loop's clock
	After    func(d time.Duration, f func()) (cancel func()) // calls f on the loop, once

	cancel func() // ends the wait for the end of the last pause; nil: there was none
}

// Obey pauses the clients or lets them go on, and does so again when the pause ends.
func (p *Pauser) Obey() {
	left := p.Server.PauseLeft(p.NowMilli())
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
