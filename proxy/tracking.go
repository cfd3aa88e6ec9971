package proxy

import (
	"bytes"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// CLIENT TRACKING. The requests of a session that tracks travel in lanes of their own, whose pipes tell what is
// gone. The worker knows which session has a copy of which key (internal/tracking), from before the request is
// sent:
//
//	GET k ─▶ copy of k ─▶ pipe that tracks ═▶ node: mark k, read k
//	      ◀─ reply in its turn ············· ◀═ reply
//	      ◀─ invalidation behind it ········ ◀═ gone k
//
// Nodes send both in this order, but a reply can wait here for others, come later, or be fetched. So an
// invalidation has the place behind the newest read that is outstanding when it comes; it never waits for
// commands that read nothing, so a blocking one does not delay it.
//
// What begins with prefixes is told over the pipes that listen, by all nodes.
//
// A FLUSHALL of all nodes is one event for a client, but each node tells it. A client that follows prefixes is told
// when all have, so that it forgets what it has read in between, by whatever connection. After flushPatience it is
// told of what has come, and later again of the rest.
//
// A pipe that breaks takes the marks of its node along, and a node that cannot be reached may own nothing any
// more: then all sessions of the worker forget everything.

// flushPatience is how long a worker waits until all nodes have told of a FLUSHALL. Some may never: then it was
// executed by the others alone, and has failed.
const flushPatience = time.Second

// trackingHere is what a worker keeps for its sessions that track.
type trackingHere struct {
	table tracking.Turns

	flushedBy []*order.Node  // nodes that have told of a FLUSHALL, of which others have not told yet
	patience  *netloop.Timer // ends the wait for those others; nil: there is none
}

// tracker is what a session keeps while it tracks.
type tracker struct {
	*tracking.Client
	until   uint64 // the turn behind the newest command that reads
	behind  heldBack
	follows []string // prefixes that the worker listens to for it
	charged int      // bytes of these, and of those that it is about to follow
	awaited [][]byte // keys that a command reads that may wait; empty: any; nil: there is no such command
	obeys   *session.Tracking
	asked   []following // what is not answered, by turns
}

// following is a CLIENT TRACKING that waits until all nodes know its prefixes.
type following struct {
	seq    uint64
	waits  int               // so many prefixes are not acknowledged
	before *session.Tracking // what the session had asked for; nil: nothing
}

// heldBack are invalidations that wait for replies.
type heldBack struct {
	list  []later
	bytes int
}

// later is an invalidation that has its place behind a turn.
type later struct {
	until uint64
	key   string
	all   bool
}

// track obeys what CLIENT TRACKING has changed. answered reports whether the reply comes later: when all nodes know
// its prefixes, and behind that of another one.
func (s *client) track() (answered bool) {
	if s.state.Tracking == nil {
		s.untrack()
		return false
	}
	if s.tracker == nil {
		s.tracker = &tracker{Client: s.w.tracking.table.Join(s, s.actor())}
	}
	t, before := s.tracker, s.tracker.obeys
	if !s.chargePrefixes() {
		s.trackAsBefore(before)
		s.answer(errNoTracking)
		return true
	}
	waits := s.obey()
	if waits == 0 && len(t.asked) == 0 {
		return false
	}
	t.asked = append(t.asked, following{seq: s.tail, waits: waits, before: before})
	s.issue()
	return true
}

// chargePrefixes charges the prefixes that the session is about to follow. It reports false if there is no memory.
func (s *client) chargePrefixes() (ok bool) {
	t := s.tracker
	before := t.charged
	t.charged = tracking.PrefixesCost(s.state.Tracking.Prefixes)
	if ok = s.conn.TrySetOther(s.otherBytes()); !ok {
		t.charged = before
	}
	return ok
}

// trackAsBefore has the session go on with what it had asked for before a CLIENT TRACKING that is refused; nil:
// nothing.
func (s *client) trackAsBefore(before *session.Tracking) {
	if s.state.SetTracking(before); before == nil {
		s.untrack()
		return
	}
	s.chargePrefixes() // no more than now
	s.obey()
}

// obey has the session track as its state says. It returns how many prefixes it begins to follow.
func (s *client) obey() (waits int) {
	t, now := s.tracker, s.state.Tracking
	if s.Actor = 0; now.NoLoop {
		s.Actor = s.actor()
	}
	s.w.tracking.table.Set(t.Client, now.NoLoop, now.Prefixes)
	for _, p := range now.Prefixes {
		if !slices.Contains(t.follows, p) {
			waits++
			s.w.listening.change(pubsub.Prefix, p, true, change{s: s, seq: s.tail})
		}
	}
	for _, p := range t.follows {
		if !slices.Contains(now.Prefixes, p) {
			s.w.listening.change(pubsub.Prefix, p, false, change{})
		}
	}
	t.follows, t.obeys = now.Prefixes, now
	return waits
}

// actor is by what nodes name the session.
func (s *client) actor() uint64 { return tracking.Actor(s.w.proxy.cfg.Boot, s.state.ID) }

// place returns the place in asked of a turn that is not answered, -1 if there is none.
func (t *tracker) place(seq uint64) int {
	if t == nil {
		return -1
	}
	return slices.IndexFunc(t.asked, func(f following) bool { return f.seq == seq })
}

// followed notes that all nodes know a prefix of a turn, and answers what waits for no more.
func (s *client) followed(seq uint64) {
	at := s.tracker.place(seq)
	if at < 0 {
		return // it was answered otherwise
	}
	s.tracker.asked[at].waits--
	for t := s.tracker; t != nil && len(t.asked) > 0 && t.asked[0].waits == 0; t = s.tracker {
		seq := t.asked[0].seq
		t.asked = t.asked[1:]
		s.reply(seq, resp.AppendOK(nil))
	}
}

// notFollowed refuses a turn because a node does not take a prefix of it, and those that have come behind it. The
// session goes on as before.
func (s *client) notFollowed(seq uint64) {
	t := s.tracker
	at := t.place(seq)
	if at < 0 {
		return
	}
	refused := t.asked[at:]
	t.asked = t.asked[:at:at]
	s.trackAsBefore(refused[0].before)
	for _, f := range refused {
		s.reply(f.seq, errManyFollowed)
	}
}

// untrack ends the session's tracking.
func (s *client) untrack() {
	t := s.tracker
	if t == nil {
		return
	}
	s.tracker, s.Actor = nil, 0
	s.w.tracking.table.Leave(t.Client)
	s.w.tracking.table.TellLater()
	for _, p := range t.follows {
		s.w.listening.change(pubsub.Prefix, p, false, change{})
	}
	for _, f := range t.asked {
		if s.isClosed() {
			break
		}
		s.reply(f.seq, resp.AppendOK(nil))
	}
	if !s.isClosed() {
		s.gather(-t.behind.bytes)
	}
}

// awaitRead notes the keys that a command is to read that may wait.
func (s *client) awaitRead(cmd *command.Command, args [][]byte) {
	t := s.tracker
	if t == nil || cmd.Flags&command.ReadOnly == 0 || !s.state.TracksNow() {
		return
	}
	keys, _ := cmd.AppendKeys(nil, args)
	t.awaited = make([][]byte, 0, len(keys))
	for _, at := range keys {
		t.awaited = append(t.awaited, bytes.Clone(args[at]))
	}
	if !s.Keep(sizeOf(t.awaited)) {
		t.awaited = t.awaited[:0]
	}
}

// haveRead has the client forget, behind the reply to a command that has waited, what it has read: what has woken the
// command took the marks of its keys along, perhaps before the reply.
func (s *client) haveRead(seq uint64, waited bool) {
	t := s.tracker
	if t == nil || t.awaited == nil {
		return
	}
	keys := t.awaited
	t.awaited = nil
	s.Keep(-sizeOf(keys))
	if waited && len(keys) == 0 {
		s.hold(&t.behind, later{until: seq + 1, all: true})
	}
	for i := 0; waited && i < len(keys); i++ {
		s.hold(&t.behind, later{until: seq + 1, key: string(keys[i])})
	}
}

// executeTracked executes a command of a session that tracks.
func (s *client) executeTracked(args [][]byte, raw []byte) bool {
	reads, turn := s.trackReads(args), s.tail
	done := s.execute(args, raw)
	if t := s.tracker; done && reads && t != nil {
		t.until = max(s.tail, turn+1) // a long command may get its turn later
		if s.forgets {
			s.Flush()
		}
	}
	s.forgets = false
	return done
}

// trackReads notes the keys that the command is about to read, and reports whether a client may keep its reply.
func (s *client) trackReads(args [][]byte) (reads bool) {
	row := command.Row(args)
	if row == nil || !row.Built || !row.ArityOK(len(args)) || s.tracker == nil {
		return false
	}
	if row.ID != command.Exec {
		return !s.state.Multi && s.trackKeys(row, args, s.parser.Count())
	}
	if s.state.Tx == nil {
		return false
	}
	words := 0
	for _, q := range s.state.Tx.Queue {
		if words += len(q.Args); words > 2*tracking.MaxKeys {
			s.forgets = true
			return true
		}
		reads = s.trackKeys(q.Cmd, q.Args, len(q.Args)) || reads
	}
	return reads
}

// trackKeys is trackReads of one command of so many words.
func (s *client) trackKeys(row *command.Command, args [][]byte, words int) (reads bool) {
	if row.Flags&command.ReadOnly == 0 && !row.IsScript() {
		return false
	}
	if !s.state.TracksNow() {
		s.tracker.Reads() // if it follows prefixes
		return true
	}
	if words > len(args) {
		s.forgets = true
		return true
	}
	keys, _ := row.AppendKeys(s.w.keys[:0], args)
	if s.w.keys = keys; len(keys) > tracking.MaxKeys {
		s.forgets = true
		return true
	}
	for _, k := range keys {
		if !s.w.tracking.table.Add(s.tracker.Client, args[k]) {
			s.forgets = true
		}
	}
	s.w.tracking.table.TellLater()
	return true
}

// keepTracked asks the nodes for a sign of life: what is gone would be lost on a connection that is cut without a
// word.
func (w *worker) keepTracked() {
	if w.tracking.table.Clients() == 0 {
		return
	}
	for _, n := range w.order.Nodes() {
		n.Each(func(p *order.Pipe) {
			if p.Lane.Tracks && p.IsOpen() && p.Inflight() == 0 {
				w.order.Tell(p, pingRequest)
			}
		})
	}
	w.act()
}

// isTrackingOn reports whether args are CLIENT TRACKING ON.
func isTrackingOn(cmd *command.Command, args [][]byte) bool {
	return cmd.ID == command.ClientTracking && command.EqualFold(args[2], "on")
}
