package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	maxInflight   = 1024     // commands of one session without a delivered reply
	maxReplyBytes = 1 << 20  // what the replies of those may take, as far as foreseen
	firstReply    = 64 << 10 // what the first replies are taken for: few commands go out until it is known better
	largeRequest  = 64 << 10 // a request longer than this travels apart from the small ones
	hugeRequest   = 1 << 20  // and one longer than this apart from those, and is not copied
)

// client is one session: a client's connection and its commands in order.
type client struct {
	w      *worker
	conn   *netloop.Conn
	state  *session.State
	parser resp.Parser
	index  int // in w.clients

	// Commands head … tail-1 have no delivered reply yet; slots is a ring indexed by number.
	head, tail uint64
	slots      []slot
	early      []byte // replies that came before their turn; slots name their places
	earlyLive  int    // bytes of it that are still to be delivered
	gathered   int    // bytes of replies to parts, of commands that are not complete
	replySize  int    // foreseen size of a reply: large at once after a large one, smaller little by little

	timed stopwatch // times one of its commands now and then

	fetches []*fetch // large replies that nodes keep for it, in no order
	pieces  int      // of such a reply in its output

	waits uint64 // with state.Waiting: the command that waits

	remote int    // requests that nodes have or that are held: parts count each
	lane   lane   // of all those
	route  uint64 // worker.route when the first of them was sent
	drain  bool   // send nothing new before remote is 0
	held   []held // came back undone, to be sent again; not sorted
	listed bool   // in w.holding

	watching bool  // a WATCH is on its way
	stalled  bool  // has unread commands that must wait; reading is paused, unless state.Blocked
	limited  bool  // may send little, since it has not authenticated
	waitsFor *pipe // the full pipe that has this session in its waiters
	behind   bool  // has unread commands that the loop will offer again
	ended    bool  // the peer sends no more: closes when all is answered
	closing  bool  // takes no more commands; closes when all replies are delivered
	muting   bool  // the reply to the command at hand is dropped
	mutes    bool  // one flag for the fast path: closed, or replies may be to be dropped
	closed   bool
}

// OnData executes the commands in the input. It stops early at a command that must wait; resume continues there.
func (s *client) OnData(c *netloop.Conn, in []byte) int {
	if s.state.Blocked {
		s.stalled = true
		return 0
	}
	off := 0
	s.stalled, s.behind = false, false
	s.state.LastMilli = s.w.loop.UnixMilli()
	for off < len(in) && !s.closing && !s.closed {
		if c.Full() {
			s.behind = true
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
		}
		off += size
	}
	if s.closing {
		return len(in)
	}
	c.Resume()
	s.progress()
	return off
}

// execute starts one command. False: it must wait, nothing has happened yet.
func (s *client) execute(args [][]byte, raw []byte) bool {
	cmd := command.Lookup(args[0])
	if !s.known(cmd, args) {
		return s.refuse(cmd, args, raw)
	}
	return s.dispatch(cmd, args, raw)
}

// dispatch starts a command that is in order; cmd is its subcommand's row if it has one.
func (s *client) dispatch(cmd *command.Command, args [][]byte, raw []byte) bool {
	s.state.LastCmd = cmd.ID
	switch cmd.Route {
	case command.Key:
		return s.forward(cmd, args, raw)
	case command.SplitKeys, command.SplitPairs:
		return s.split(cmd, args, raw)
	case command.AllNodes:
		return s.everywhere(cmd, args)
	}
	return s.local(cmd, args)
}

// known is the fast form of what session.Server.Refuse checks: it may be false for a command that is in order.
func (s *client) known(cmd *command.Command, args [][]byte) bool {
	return cmd != nil && cmd.Built && cmd.Subs == nil && s.state.Authenticated && !s.state.Apart &&
		cmd.Flags&command.Internal == 0 && cmd.ArityOK(len(args))
}

// refuse answers a command that must not be executed; what turns out to be in order is executed.
func (s *client) refuse(cmd *command.Command, args [][]byte, raw []byte) bool {
	if s.state.Aside() {
		return s.executeAside(args, raw)
	}
	if s.watching && cmd != nil && cmd.ID == command.Exec {
		return false // it ends what is watched even if it is refused
	}
	out, action, refused := s.w.proxy.server.Refuse(s.state, cmd, args, s.w.scratch[:0])
	if row := command.Row(args); !refused && s.state.Queues(row) {
		out = s.state.Enqueue(row, args, out)
		s.chargeOther()
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

// forward sends a command whose keys must all lie in one slot to the node that owns it.
func (s *client) forward(cmd *command.Command, args [][]byte, raw []byte) bool {
	slot, same := s.slotOf(cmd, args)
	if !same {
		s.answer(errCrossSlot)
		return true
	}
	return s.forwardTo(ring.Partition(slot), cmd, args, raw)
}

// forwardTo sends a command to the owner of a partition.
func (s *client) forwardTo(partition uint16, cmd *command.Command, args [][]byte, raw []byte) bool {
	if !s.enterLane(s.laneFor(len(raw), cmd.Flags&command.Heavy != 0)) {
		return false
	}
	if s.parser.Inline() {
		raw = resp.AppendRequest(s.w.scratch[:0], args...)
		s.w.keepScratch(raw)
	}
	r := request{client: s, seq: s.tail, origin: origin{partition: partition}}
	if !s.sendOrHold(r, raw) {
		return false
	}
	s.issueCounted(cmd)
	return true
}

// slotOf is the slot of a command's keys, and whether they share it.
func (s *client) slotOf(cmd *command.Command, args [][]byte) (slot uint16, same bool) {
	slot = ring.Slot(args[cmd.FirstKey(args)])
	if cmd.First == cmd.Last && cmd.Flags&command.MovableKeys == 0 {
		return slot, true
	}
	keys, _ := cmd.AppendKeys(s.w.keys[:0], args)
	s.w.keys = keys
	for _, k := range keys {
		if ring.Slot(args[k]) != slot {
			return slot, false
		}
	}
	return slot, true
}

// laneFor is the lane of a request. A heavy command goes where nobody takes its silence for a broken pipe, or waits behind it.
func (s *client) laneFor(size int, heavy bool) lane {
	l := lane{kind: member.Common, version: s.state.Version}
	switch {
	case size > hugeRequest:
		l.kind = member.Huge
	case size > largeRequest, heavy:
		l.kind = member.Large
	}
	return l
}

// enterLane reports whether a request may be sent on that lane now. Changing it must wait until nothing is outstanding,
// since two lanes do not keep the order of commands; and so must the first one after the route has changed.
func (s *client) enterLane(l lane) bool {
	if s.remote == 0 {
		s.lane, s.drain, s.route = l, false, s.w.route
		return true
	}
	return s.lane == l && s.route == s.w.route && !s.drain && len(s.held) == 0
}

// sendOrHold hands a request to the pipe of its partition's owner, or holds it while that pipe is not open. False: the
// pipe is full and the session must wait.
func (s *client) sendOrHold(r request, raw []byte) bool {
	owner := s.w.owner[r.partition]
	if owner == nil {
		r.since = s.w.tableAt
		s.remote++
		s.hold(r, raw, s.take(raw))
		return true
	}
	p := owner.pipe(s.lane)
	if p.state != pipeOpen || p.latch.refuses(r.partition) {
		r.since = p.outOfReach()
		s.remote++
		s.hold(r, raw, s.take(raw))
		return true
	}
	if p.full(len(raw)) {
		s.waitFor(p)
		return false
	}
	s.remote++
	p.send(r, raw, s.take(raw))
	return true
}

// take is the memory of a request that is too long to be copied; nil if it is to be copied.
func (s *client) take(raw []byte) *netloop.Buffer {
	if len(raw) <= hugeRequest {
		return nil
	}
	return s.conn.TakeInput(raw)
}

func (s *client) waitFor(p *pipe) {
	if s.waitsFor != p {
		s.waitsFor = p
		p.waiters = append(p.waiters, s)
	}
}

// atLimit reports whether the session must deliver replies before it takes another command.
func (s *client) atLimit() bool {
	n := int(s.tail - s.head)
	return n >= maxInflight || n > 0 && s.foreseen(n) > maxReplyBytes
}

// foreseen is what replies take: n that are still to come, those that came early, also in part, and those that the peer has
// not taken.
func (s *client) foreseen(n int) int {
	return n*s.replySize + s.earlyLive + s.gathered + s.conn.Queued()
}

// mayContinue reports whether a stalled session may try its next command.
func (s *client) mayContinue() bool {
	n := int(s.tail - s.head)
	return n <= maxInflight/2 && (n == 0 || s.foreseen(n) <= maxReplyBytes/2) && len(s.held) == 0 && s.waitsFor == nil &&
		!s.state.Blocked && (s.remote == 0 || !s.drain && s.route == s.w.route)
}

// stall stops reading: the next command in the input must wait for something that will call resume.
func (s *client) stall() {
	s.stalled = true
	if !s.state.Blocked { // which wants to know if the peer is gone
		s.conn.Pause()
	}
}

// resume goes on with the input that a stalled session has kept.
func (s *client) resume() {
	if s.stalled && !s.closed {
		s.stalled, s.behind = false, true
		s.conn.Resume()
		s.conn.Wake()
	}
}

// OnEOF keeps the connection of a peer that has finished sending until all its commands are answered: `printf … | nc` is a
// client too.
func (s *client) OnEOF(*netloop.Conn) bool {
	s.ended = true
	if s.state.Blocked {
		return false // as in Redis: who has gone does not want what waits
	}
	return s.stalled || s.behind || s.head < s.tail
}

// closeWhenDone takes no more commands, delivers the replies that are due, and closes.
func (s *client) closeWhenDone() {
	s.closing = true
	s.progress()
}

// OnClose is called by the loop once the socket is gone. Replies still on their way are dropped when they come.
func (s *client) OnClose(_ *netloop.Conn, err error) {
	s.closed, s.mutes = true, true
	for _, h := range s.held {
		h.body.Release()
	}
	for len(s.fetches) > 0 {
		s.fetches[0].end()
	}
	s.state.Leave()
	s.held, s.early, s.slots = nil, nil, nil
	s.w.forget(s, err)
}
