package session

import (
	"container/list"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// CLIENT LIST, KILL, UNBLOCK and PAUSE concern the clients of all loops. Do checks their options. The
// caller then makes an Everyone, enters the process's Visits with it, and visits every loop, in rounds:
// on each loop a round takes maxVisit steps, and between two rounds the loop serves others. Behind each
// round a goroutine gathers the lines of LIST. Behind the only round of UNBLOCK it waits until it is known
// how the wait of the client has ended:
//
//	loop 1   Visit: lines of some clients ─┐          ┌─ Visit ─┐
//	loop 2   Visit: lines of some clients ─┴─ Gather ─┴─ Visit ─┴─ Gather ─ ··· ─ Reply

// Client is a client connection. Its methods are called on its loop.
type Client interface {
	// StateNow returns the State with the present InBytes, OutBytes, NetIn and NetOut.
	StateNow() *State
	// Kill closes the connection at once.
	Kill()
	// Unblock resumes the commands that a pause has stopped.
	Unblock()
	// WakeThen ends the wait of the client, as EndWaiting does, and calls then once, when it is known whether
	// the wait has ended thus: at once, or later on the same loop, at the latest when the client is closed.
	WakeThen(reply []byte, then func(ended bool))
}

// The steps of a visit. A step takes about a microsecond.
const (
	// maxVisit is how many steps a visit takes on a loop before others have their turn. One client may
	// exceed it.
	maxVisit = 128
	// lineStep bytes of a line are a step.
	lineStep = 256
	// changeSteps are those of a client that is closed or goes on.
	changeSteps = 8
)

// Everyone is a command about the clients of all loops. Visit and Pause are called on the loops, all
// else behind a round.
type Everyone struct {
	action  Action
	asking  uint64 // id of the client that sent the command
	version resp.Version
	words   int            // number of words of the request
	filter  ClientFilter   // of LIST and KILL
	id      int64          // the client that UNBLOCK names
	with    []byte         // and the reply that it gets
	woken   sync.WaitGroup // that client, until it is known how its wait has ended
	loops   []visited      // by loop; each element is written on its loop
	lines   []byte         // gathered from the loops in the last round
	size    int            // bytes of all lines

	begin func()        // see Visits.Enter
	place *list.Element // in Visits, whose mutex protects it; nil: it does not wait there
}

// visited is how far a command has come on one loop, and with what result.
type visited struct {
	begun   bool   // it has been there
	until   uint64 // the id of the newest client at that time: those who come later are not visited
	all     bool   // all clients were visited
	last    uint64 // the id of the client that was visited last
	clients int
	suicide bool // the asking client is among the killed

	obeyed pausePlace // where the loop's clients obey a pause

	text     []byte       // lines, some of which are gathered
	lines    []clientLine // of the text; none if all are gathered
	gathered int          // so many of the lines
	begin    int          // of the next line, in the text
}

type clientLine struct {
	id  uint64
	end int // in the text
}

// NewEveryone returns the command of a request for which Do returned ActionClientList,
// ActionClientKill, ActionClientUnblock or ActionPause. It keeps no view of args.
func NewEveryone(a Action, st *State, args [][]byte, loops int) *Everyone {
	e := &Everyone{action: a, asking: st.ID, version: st.Version, words: len(args), loops: make([]visited, loops)}
	switch a {
	case ActionClientList, ActionClientKill:
		e.filter = clientFilterOf(args, st)
	case ActionClientUnblock:
		e.id, e.with = unblockOf(args)
	}
	return e
}

// everyoneBytes is about what an Everyone takes beside its filter, while it waits for its turn.
const everyoneBytes = 1 << 10

// Bytes is what the command takes in the Go heap, without what one round gathers.
func (e *Everyone) Bytes() int { return everyoneBytes + 8*cap(e.filter.ids) }

// Turn is Visit, or for CLIENT PAUSE and UNPAUSE Pause, on the loop with p.
func (e *Everyone) Turn(loop int, p *Pauser) {
	if e.action == ActionPause {
		e.Pause(loop, p)
	} else {
		e.Visit(loop, p.Now(), p.Clients)
	}
}

// Visit goes on with the command on the loop with the given index. Call it there, with the loop's
// reading of the server's Clock. A pause is applied by Pause.
func (e *Everyone) Visit(loop int, now time.Duration, clients *Roster) {
	f := &e.loops[loop]
	switch {
	case f.all || len(f.lines) > 0:
		return
	case e.action == ActionClientUnblock:
		f.all = true
		if st := clients.find(uint64(e.id)); st != nil && st.unblockedBy(e.id) {
			e.wake(f, st)
		}
		return
	}
	if !f.begun {
		f.begun, f.until = true, clients.newest()
	}
	steps := 0
	for id, st := range clients.among(e.filter.ids, f.last) {
		if id > f.until {
			break
		}
		if steps >= maxVisit {
			return
		}
		steps++
		if f.last = id; st != nil {
			steps += e.visit(f, st, now)
		}
	}
	f.all = true
}

// wake executes UNBLOCK on its client. Gather waits for the result.
func (e *Everyone) wake(f *visited, st *State) {
	e.woken.Add(1)
	st.Client.WakeThen(e.with, func(ended bool) {
		if ended {
			f.clients++
		}
		e.woken.Done()
	})
}

// visit executes the command on a client. It returns how many steps that took.
func (e *Everyone) visit(f *visited, st *State, now time.Duration) (steps int) {
	if !e.filter.Match(st, now) {
		return 0
	}
	if e.action == ActionClientList {
		before := len(f.text)
		f.text = AppendClientLine(f.text, st.Client.StateNow(), now)
		f.lines = append(f.lines, clientLine{st.ID, len(f.text)})
		return (len(f.text) - before) / lineStep
	}
	f.clients++
	if st.ID == e.asking {
		f.suicide = true
		return 0
	}
	st.Client.Kill()
	return changeSteps
}

// Pause is Visit for CLIENT PAUSE and UNPAUSE. The caller has had p obey on the loop before.
func (e *Everyone) Pause(loop int, p *Pauser) {
	f := &e.loops[loop]
	if !f.begun {
		f.begun, f.obeyed = true, p.onceRound()
	}
	f.all = p.passes(f.obeyed)
}

// IsPause reports whether the command is about a pause.
func (e *Everyone) IsPause() bool { return e.action == ActionPause }

// Gather is called behind each round. It returns the next part of the reply to LIST, which comes behind
// what Reply returns, and is valid until the next call: the lines of some clients, in the order of ids.
// more reports that a further round is needed. Do not call Gather on a loop: for UNBLOCK it waits until
// the client's loop knows how the wait has ended.
func (e *Everyone) Gather() (lines []byte, more bool) {
	e.woken.Wait()
	e.lines = e.lines[:0]
	for {
		next, least := -1, uint64(0)
		for i := range e.loops {
			f := &e.loops[i]
			switch {
			case len(f.lines) == 0 && !f.all: // its next line may be the next one of all
				e.size += len(e.lines)
				return e.lines, true
			case len(f.lines) > 0 && (next < 0 || f.lines[f.gathered].id < least):
				next, least = i, f.lines[f.gathered].id
			}
		}
		if next < 0 {
			break
		}
		e.take(&e.loops[next])
	}
	e.size += len(e.lines)
	if e.action == ActionClientList {
		e.lines = append(e.lines, '\r', '\n')
	}
	return e.lines, false
}

// take moves the first line of a loop to the gathered ones.
func (e *Everyone) take(f *visited) {
	end := f.lines[f.gathered].end
	e.lines = append(e.lines, f.text[f.begin:end]...)
	if f.begin, f.gathered = end, f.gathered+1; f.gathered == len(f.lines) {
		f.text, f.lines, f.begin, f.gathered = f.text[:0], f.lines[:0], 0, 0
	}
}

// Reply returns the reply when all loops have been visited: to LIST its beginning, see Gather. suicide is
// true if CLIENT KILL also selects the asking client, whose connection then closes behind the reply.
func (e *Everyone) Reply() (reply []byte, suicide bool) {
	total := 0
	for i := range e.loops {
		total += e.loops[i].clients
		suicide = suicide || e.loops[i].suicide
	}
	switch e.action {
	case ActionClientList:
		return resp.AppendVerbatimHeader(nil, e.version, "txt", e.size), false
	case ActionClientKill:
		return appendClientKill(nil, e.words, total), suicide
	case ActionClientUnblock:
		return resp.AppendInt(nil, int64(total)), false
	}
	return resp.AppendOK(nil), false
}
