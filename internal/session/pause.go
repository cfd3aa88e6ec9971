package session

import (
	"math"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// CLIENT PAUSE changes the Server at once, and the client that has sent it. The caller then has the others
// obey, on every loop (ActionPause, Pauser.Obey), and answers when all do (Everyone.Pause). A paused client
// is Aside; the caller asks Pauses before each of its commands.

// maxPauseLeft is the longest that a loop waits before it looks at the pause again.
const maxPauseLeft = time.Hour

// maxPause is the longest pause: half of what a time.Duration holds, so that sums do not overflow.
const maxPause = time.Duration(math.MaxInt64 / 2)

// pause is the present CLIENT PAUSE.
type pause struct {
	mu    sync.Mutex
	until time.Duration // on the server's Clock
	all   bool          // false: only commands that may write
}

// PauseLeft returns how long clients stay paused after now, on the server's Clock: at most an hour,
// and not above 0 if they are not paused.
func (s *Server) PauseLeft(now time.Duration) time.Duration {
	s.pause.mu.Lock()
	defer s.pause.mu.Unlock()
	return min(s.pause.until-now, maxPauseLeft)
}

// extend adds a pause to one that has not ended: the later end and the stricter mode apply.
func (p *pause) extend(now, until time.Duration, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until <= now {
		p.until, p.all = until, all
		return
	}
	p.until, p.all = max(p.until, until), p.all || all
}

// Unpause ends the pause that CLIENT PAUSE began.
func (s *Server) Unpause() {
	s.pause.mu.Lock()
	defer s.pause.mu.Unlock()
	s.pause.until = 0
}

// SetPaused marks a client as paused or not. released reports whether the end of the pause lets a
// Blocked client continue.
func (st *State) SetPaused(paused bool) (released bool) {
	st.paused = paused
	st.setApart()
	return !paused && st.Blocked && st.Waiting == nil
}

// Pauses reports whether a request of a paused client must wait. A request that Refuse refuses is
// refused at once, as in Redis. CLIENT UNPAUSE never waits; in Redis it does, so that nobody can
// end a pause of ALL that is too long.
func (s *Server) Pauses(st *State, args [][]byte) bool {
	if !st.paused {
		return false
	}
	var scratch [256]byte
	row, _ := command.Resolve(scratch[:0], args)
	if row == nil || row.ID == command.ClientUnpause || s.CheckAuth(st, row) != "" {
		return false
	}
	s.pause.mu.Lock()
	all := s.pause.all
	s.pause.mu.Unlock()
	return all || mayReplicate(row) || row.ID == command.Exec && st.queuesWrites()
}

// mayReplicate reports whether a command may change the data in Redis's view: PFCOUNT may store its
// result.
func mayReplicate(c *command.Command) bool {
	return c.Flags&command.Write != 0 || c.ID == command.PFCount
}

func (st *State) queuesWrites() bool {
	if st.Multi {
		for _, q := range st.Tx.Queue {
			if mayReplicate(q.Cmd) {
				return true
			}
		}
	}
	return false
}

// clientPause answers CLIENT PAUSE milliseconds [WRITE | ALL].
func clientPause(s *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	all := true
	if len(args) > 4 {
		return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
	}
	if len(args) == 4 && !command.EqualFold(args[3], "all") {
		if all = false; !command.EqualFold(args[3], "write") {
			return resp.AppendError(dst, errPauseMode), ActionNone
		}
	}
	millis, refusal := timeoutArg(args[2])
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	now := s.o.Clock()
	length := time.Duration(min(millis, maxPause.Milliseconds())) * time.Millisecond
	s.pause.extend(now, now+length, all)
	st.SetPaused(s.PauseLeft(now) > 0) // now, so that the requests behind PAUSE obey it
	return dst, ActionPause
}

func clientUnpause(s *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	s.Unpause()
	st.SetPaused(false)
	return dst, ActionPause
}

// timeoutArg parses a number of milliseconds.
func timeoutArg(arg []byte) (millis int64, refusal string) {
	millis, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, errTimeout
	case millis < 0:
		return 0, errTimeoutLow
	}
	return millis, ""
}

// Pauser applies CLIENT PAUSE and UNPAUSE to the clients of one loop, in turns of maxVisit steps. Its
// methods are called on that loop. The fields with capitals must be set.
type Pauser struct {
	Server  *Server
	Clients *Roster                                         // of the loop
	Now     func() time.Duration                            // the loop's reading of the server's Clock
	After   func(d time.Duration, f func()) (cancel func()) // calls f on the loop, once
	Post    func(f func())                                  // calls f on the loop, in its next iteration

	cancel func()     // ends the wait for the end of the last pause; nil: there was none
	at     pausePlace // behind the client that was visited last
	end    pausePlace // where all have been visited since the last Obey
	busy   bool       // it has not come there
	posted bool       // turn runs in the next iteration
}

// pausePlace is how far a Pauser has come. It goes round, and not back to the beginning when the pause
// changes: those who change it all the time cannot keep it from the last clients.
type pausePlace struct {
	round uint64
	id    uint64 // of a client
}

func (p pausePlace) reaches(end pausePlace) bool {
	return p.round > end.round || p.round == end.round && p.id >= end.id
}

// Obey begins to pause or resume the clients, and has them resumed when the pause ends.
func (p *Pauser) Obey() {
	p.Stop()
	if left := p.Server.PauseLeft(p.Now()); left > 0 {
		p.cancel = p.After(left, p.Obey)
	}
	p.end, p.busy = p.onceRound(), true
	if !p.posted {
		p.turn()
	}
}

// onceRound is the place where the Pauser will have visited all clients.
func (p *Pauser) onceRound() pausePlace { return pausePlace{p.at.round + 1, p.at.id} }

// passes reports whether all clients obey for which onceRound was that place.
func (p *Pauser) passes(place pausePlace) bool { return !p.busy || p.at.reaches(place) }

func (p *Pauser) turn() {
	p.posted = false
	paused := p.Server.PauseLeft(p.Now()) > 0
	for steps := 0; p.busy; {
		rest := p.Clients.behind(p.at.id)
		if len(rest) == 0 {
			p.at = pausePlace{round: p.at.round + 1}
		}
		for i := 0; i < len(rest) && !p.at.reaches(p.end); i++ {
			if steps >= maxVisit {
				p.posted = true
				p.Post(p.turn)
				return
			}
			steps++
			st := rest[i].state
			if p.at.id = rest[i].id; st != nil && st.SetPaused(paused) {
				steps += changeSteps
				st.Client.Unblock()
			}
		}
		p.busy = !p.at.reaches(p.end)
	}
}

// Stop ends the wait for the end of a pause. The clients stay as they are.
func (p *Pauser) Stop() {
	p.busy = false
	if p.cancel != nil {
		p.cancel()
	}
}
