package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/hoard"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	maxInflight   = 1024     // commands of one session without a delivered reply
	maxLarge      = 128      // and on the large lane, where each may take long: others' wait behind them
	maxReplyBytes = 1 << 20  // what the replies of those may take, as far as foreseen
	firstReply    = 64 << 10 // what the first replies are taken for: few commands go out until it is known better
	largeRequest  = 64 << 10 // a request longer than this travels apart from the small ones
)

// client is one session: a client's connection and its commands in order. Its order.Session decides
// where they may go.
type client struct {
	order.Session
	w      *worker
	conn   *netloop.Conn
	state  *session.State
	parser resp.Parser
	index  int // in w.clients

	// Commands head … tail-1 have no delivered reply yet; turns is a ring indexed by number.
	head, tail uint64
	turns      []turn
	early      []byte     // replies that came before their turn; turns say where they lie
	earlyLive  int        // bytes of it that are still to be delivered
	gathered   int        // bytes of replies to parts, of commands that are not complete
	kept       int        // bytes of requests that are parked
	parsing    int        // bytes that the parser keeps of a long request
	coming     hoard.Pace // of a long request
	replySize  int        // foreseen size of a reply: large at once after a large one, smaller little by little

	topics     *subscriber  // nil: it has never subscribed to anything
	tracker    *tracker     // nil: it does not track
	visit      *visit       // not nil: a command that visits all clients
	redirected *heldBack    // not nil: others' invalidations, which wait for the end of a large reply
	scripts    *scriptTurns // nil: it has never executed a script

	timed stopwatch // times one of its commands now and then

	fetches []*fetch // large replies that nodes keep for it, in no order
	pieces  int      // of such a reply in its output

	selection selection     // of selecting
	tableless time.Duration // since when a command waits for the proxy's first table; 0: none does

	waits    uint64           // with state.Waiting or blocking: the command that waits
	blocking bool             // the command waits is a blocking one: the session takes no other before its reply
	gathers  bool             // or it is executed on keys of several slots
	claims   *claiming        // not nil: it names keys of several slots
	popsLast bool             // it pops the ends of lists, not their beginnings
	woken    []byte           // not nil: the reply to that, if nothing serves it
	decided  func(ended bool) // not nil: to be called when it is known whether that is the reply
	waitsFor *pipe            // the full pipe that has this session in its waiters

	phase        phase
	input        inputState
	long         long // not nil: a command that is not sent yet, or not all of it; those behind it wait
	watching     bool // a WATCH is on its way
	selecting    bool // an EXEC is on its way that selects another database: the session takes no command before its reply
	limited      bool // may send little, since it has not authenticated
	queuesScript bool // its next EXEC counts as a script: one was queued since the last
	forgets      bool // the command at hand reads more keys than are tracked
	muting       bool // the reply to the command at hand is dropped
	drains       bool // it takes no command before all replies: keys lie elsewhere since those commands were sent
	told         bool // to move, see moving.go
	passing      bool // the reply to a command in chunks is in the output in part
	mutes        bool // one flag for the fast path: closed, has blocked, or replies may be to be dropped
}

// phase is how far a session has come to its end.
type phase uint8

const (
	talking phase = iota
	ended         // the peer sends no more: closes when all is answered
	closing       // takes no more commands; closes when all replies are delivered
	closed        // the socket is gone
)

// inputState says what continues with the commands in the input that are not executed yet.
type inputState uint8

const (
	flowing inputState = iota // there are none, or the loop comes with more input
	behind                    // the loop will offer them again
	stalled                   // progress does, when what they wait for has happened; unless state.Blocked, it pauses reading
)

// Take implements order.Owner: it gives the memory of the input that holds raw to the caller, nil
// if raw must be copied.
func (s *client) Take(raw []byte) order.Body {
	if s.long != nil {
		return s.long.take(raw)
	}
	if b := s.conn.TakeInput(raw); b != nil {
		return b
	}
	return nil
}

// takeLong takes the input over in which a long request lies. nil: it must be copied.
func (s *client) takeLong(raw []byte) session.Input {
	if len(raw) > chunkBytes {
		if b := s.conn.TakeInput(raw); b != nil {
			return b
		}
	}
	return nil
}

// Keep implements order.Owner: it charges parked requests to the connection.
func (s *client) Keep(n int) bool {
	s.kept += n
	if s.conn.TrySetOther(s.otherBytes()) {
		return true
	}
	s.kept -= n
	return false
}

func (s *client) isClosed() bool { return s.phase == closed }

// atLeast moves the session on to a phase, unless it is further already.
func (s *client) atLeast(p phase) { s.phase = max(s.phase, p) }

// OnData executes the commands in the input. It stops early at a command that must wait; resume
// continues there.
func (s *client) OnData(c *netloop.Conn, in []byte) (used int) {
	used = s.onInput(c, in)
	s.chargeParser()
	return used
}

// chargeParser charges what the parser keeps of a long request, which can be three times the request.
func (s *client) chargeParser() {
	if s.parser.Overhead() > 0 {
		s.parser.Release()
	}
	if n := s.parser.Overhead(); n != s.parsing {
		s.parsing = n
		s.chargeOther()
	}
}

func (s *client) onInput(c *netloop.Conn, in []byte) (used int) {
	if s.state.Blocked {
		s.input = stalled
		return 0
	}
	if s.w.moving != nil {
		s.tellMoving()
	}
	off := 0
	s.input, s.w.turn = flowing, netloop.Turn{}
	s.state.LastUsed = s.w.loop.Now()
	for off < len(in) && s.phase < closing {
		if c.Full() {
			s.input = behind
			c.Wake() // comes once enough of the output is sent
			return off
		}
		if s.atLimit() {
			s.stall()
			return off
		}
		switch s.parser.Parse(in[off:]) {
		case resp.NeedMore:
			c.Want(s.parser.Need())
			c.Resume()
			s.progress()
			return off
		case resp.Malformed:
			s.w.stats.ProtocolErrors++
			s.mute()
			s.answer(resp.AppendError(s.w.scratch[:0], s.parser.Err()))
			s.closeWhenDone()
			return len(in)
		}
		size := s.parser.Len()
		if args := s.parser.Args(); len(args) > 0 {
			done := false
			if s.w.feed.On() {
				done = s.executeShown(args, in[off:off+size])
			} else {
				done = s.execute(args, in[off:off+size])
			}
			if !done {
				s.stall()
				return off
			}
			s.state.Commands++
		}
		if off += size; off < len(in) && s.w.turn.IsOver(s.w.loop) && s.phase < closing {
			s.input = behind
			c.Yield()
			return off
		}
	}
	if s.phase >= closing {
		return len(in)
	}
	c.Resume()
	s.progress()
	return off
}

// execute starts one command. It reports false if the command must wait: then nothing has happened.
func (s *client) execute(args [][]byte, raw []byte) bool {
	cmd := command.Lookup(args[0])
	if !s.known(cmd, args) {
		return s.refuse(cmd, args, raw)
	}
	return s.dispatch(cmd, args, raw)
}

// dispatch starts a command that has passed all checks. cmd is the row of its subcommand, if it has
// one.
func (s *client) dispatch(cmd *command.Command, args [][]byte, raw []byte) bool {
	s.state.LastCmd = cmd.ID
	if s.isDue() || cmd.Flags&command.PubSub != 0 {
		if _, _, ok := session.SubscriptionOf(cmd.ID); ok {
			return s.subscribe(cmd, args)
		}
		if s.isDue() {
			return false
		}
		if r := s.reach(ring.PubSubLevel, errPubSubLevel); r != reached {
			return r == below
		}
	}
	switch cmd.Route {
	case command.Key:
		return s.forward(cmd, args, raw)
	case command.SplitKeys, command.SplitPairs:
		return s.split(cmd, args, raw)
	case command.AllNodes:
		return s.everywhere(cmd, args)
	case command.AnyNode:
		return s.toAnyNode(cmd, args, raw)
	}
	return s.local(cmd, args, raw)
}

// known is the fast path of the checks in session.Server.Refuse. It may report false for a command
// that passes all of them.
func (s *client) known(cmd *command.Command, args [][]byte) bool {
	return cmd != nil && cmd.Built && cmd.Subs == nil && s.state.Authenticated && !s.state.Apart &&
		cmd.Flags&(command.Internal|command.Blocking|command.NoMandatoryKeys) == 0 && cmd.Fits(args)
}

// refuse makes the full checks. It answers a command that must not be executed, and executes or
// queues one that passes them. It reports false if the command must wait.
func (s *client) refuse(cmd *command.Command, args [][]byte, raw []byte) bool {
	if s.state.Aside() {
		return s.executeAside(args, raw)
	}
	if s.watching && cmd != nil && cmd.ID == command.Exec {
		return false // EXEC ends the watch even if it is refused, so it waits for the WATCH in flight
	}
	out, action, refused := s.w.proxy.server.Refuse(s.state, cmd, args, s.w.scratch[:0])
	row := command.Row(args)
	if !refused && row.IsScript() {
		s.w.keepScratch(out)
		return s.script(row, args, raw)
	}
	if !refused && row.ID == command.Select && s.state.Queues(row) {
		if r := s.maySelect(args); r != reached {
			s.w.keepScratch(out)
			if r == below {
				s.state.FailTransaction()
			}
			return r == below
		}
	}
	if !refused && s.state.Queues(row) {
		out = s.state.Enqueue(row, args, s.takeLong(raw), out)
		s.chargeOther()
	} else if !refused && row.Flags&command.Blocking != 0 && row.Route == command.Key {
		return s.forwardBlocking(row, args, raw)
	} else if !refused {
		return s.dispatch(row, args, raw)
	} else {
		s.w.stats.Refused++
		if cmd != nil && cmd.ID == command.Exec {
			s.chargeOther() // the transaction has ended
		}
	}
	s.w.keepScratch(out)
	if len(out) > 0 {
		s.answer(out)
	}
	s.act(action)
	return true
}

// atLimit reports whether the session must deliver replies before it takes another command.
func (s *client) atLimit() bool {
	n := int(s.tail - s.head)
	s.drains = s.drains && n > 0
	return n >= s.inflightLimit() || s.long != nil || n > 0 && (s.blocking || s.selecting || s.drains || s.foreseen(n) > maxReplyBytes)
}

// inflightLimit returns how many commands of the session may have no delivered reply.
func (s *client) inflightLimit() int {
	if s.Lane().Kind == member.Large {
		return maxLarge
	}
	return maxInflight
}

// foreseen estimates the bytes of the session's replies: n expected ones, the early and the
// gathered ones, and those in the output that the client has not read yet.
func (s *client) foreseen(n int) int {
	return n*s.replySize + s.earlyLive + s.gathered + s.conn.Queued()
}

// mayContinue reports whether a stalled session may try its next command.
func (s *client) mayContinue() bool {
	n := int(s.tail - s.head)
	return n <= s.inflightLimit()/2 && (n == 0 || s.foreseen(n) <= maxReplyBytes/2) && s.waitsFor == nil &&
		s.long == nil && !s.blocking && !s.selecting && !(s.drains && n > 0) && !s.state.Blocked && s.w.order.MayContinue(&s.Session)
}

// stall stops reading, because the next command in the input must wait. Whatever ends the wait
// calls resume.
func (s *client) stall() {
	s.input = stalled
	if !s.state.Blocked { // a blocked session keeps reading, to notice that its peer disconnects
		s.conn.Pause()
	}
}

// resume continues with the unread input of a stalled session.
func (s *client) resume() {
	if s.long != nil {
		s.long.goOn()
		return
	}
	if s.input == stalled && !s.isClosed() {
		s.input = behind
		s.conn.Resume()
		s.conn.Wake()
	}
}

// OnEOF reports whether the connection stays open although the peer has finished sending: it does
// until all commands are answered, because `printf … | nc` is a client too.
func (s *client) OnEOF(*netloop.Conn) bool {
	s.atLeast(ended)
	if s.state.Blocked {
		return false // as in Redis: a disconnected client cancels its blocking command
	}
	s.leaveScripts()
	return s.input != flowing || s.head < s.tail
}

// IsWaiting reports whether a command of the client waits: who leaves meanwhile counts as disconnected,
// however much of its input is unread.
func (s *client) IsWaiting(*netloop.Conn) bool { return s.state.Blocked }

// IsNew reports whether the client has to authenticate, or has executed no command yet.
func (s *client) IsNew() bool { return s.state.IsGuest() || s.state.LastCmd == 0 }

// IsUrgent reports false: members do not connect to proxies.
func (s *client) IsUrgent([]byte) bool { return false }

// closeWhenDone accepts no more commands, delivers the outstanding replies, and closes the session.
func (s *client) closeWhenDone() {
	s.atLeast(closing)
	s.progress()
}

// OnClose is called by the loop once the socket is closed. Replies that arrive later are dropped.
func (s *client) OnClose(_ *netloop.Conn, err error) {
	s.phase, s.mutes = closed, true
	s.decide(true)
	s.Close()
	if s.claims != nil {
		s.claims.end()
	}
	if s.Waits() {
		s.w.order.CancelWait(&s.Session)
	}
	s.w.order.CancelDeferred(&s.Session)
	s.w.act()
	if s.long != nil {
		s.long.end()
	}
	for len(s.fetches) > 0 {
		s.fetches[0].end()
	}
	if s.visit != nil {
		s.w.proxy.server.Visits().Withdraw(s.visit.about) // if it has begun, it finds that the session is closed
	}
	s.leaveTopics()
	s.untrack()
	s.state.Leave()
	s.early, s.turns = nil, nil
	s.w.forget(s, err)
}
