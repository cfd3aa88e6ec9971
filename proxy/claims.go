package proxy

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/longdouble"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A blocking command that names keys of several slots claims them at the owner of each partition.
// Package order decides (order.Claims); the proxy pops by an ordinary command, and reads the replies.
// BLMOVE and BRPOPLPUSH claim the key from which they move an element; then they are LMOVE and RPOPLPUSH (gathered.go).

const (
	// claimMemory is about what a claim takes in the heap beside its keys.
	claimMemory = 512
	// maxClaimed and maxClaimedBytes are what a node takes of a blocking command: its keys and its arguments.
	maxClaimed, maxClaimedBytes = 256, 64 << 10
)

// claiming is a blocking command that has claims.
type claiming struct {
	*order.Claims
	s      *client
	seq    uint64
	cmd    *command.Command
	args   [][]byte
	keys   []int // which of the arguments are keys
	charge int
	pinned bool           // their database, when they were claimed
	timer  *netloop.Timer // for Tick
}

// kinds are the values that commands wait for that may name keys of several slots.
var kinds = map[command.ID]member.ValueKind{
	command.BLPop: member.List, command.BRPop: member.List, command.BLMPop: member.List,
	command.BZPopMin: member.SortedSet, command.BZPopMax: member.SortedSet, command.BZMPop: member.SortedSet,
	command.BLMove: member.List, command.BRPopLPush: member.List,
	command.XRead: member.Stream, command.XReadGroup: member.Group,
}

// pops reports whether a command takes what it waits for, so that it can be returned.
func pops(id command.ID) bool {
	return (kinds[id] == member.List || kinds[id] == member.SortedSet) && !moves(id)
}

// moves reports whether a blocking command stores what it takes under another key.
func moves(id command.ID) bool { return id == command.BLMove || id == command.BRPopLPush }

// crosses reports whether a blocking command names keys of several slots, and may.
func (s *client) crosses(cmd *command.Command, args [][]byte) bool {
	first := cmd.FirstKey(args)
	if kinds[cmd.ID] == 0 || first == 0 || s.w.order.Level() < ring.ClaimLevel ||
		isRead(cmd) && s.w.order.Level() < ring.StreamsLevel ||
		moves(cmd.ID) && (s.w.order.Level() < ring.ReserveLevel || !s.crossesSlots()) {
		return false
	}
	_, same := s.slotOfAll(cmd, args, first)
	return !same && (!counts(cmd) || numKeys(args) > 0)
}

// counts reports whether a command says how many keys it names.
func counts(cmd *command.Command) bool { return cmd.ID == command.BLMPop || cmd.ID == command.BZMPop }

// numKeys returns how many keys such a command names, 0 if it has not that many arguments.
func numKeys(args [][]byte) int {
	n, _ := resp.ParseInt(args[2])
	if n < 1 || n > int64(len(args)-3) {
		return 0
	}
	return int(n)
}

// claim executes a blocking command that names keys of several slots and waits for up to limit. It reports
// false if the command must wait.
func (s *client) claim(cmd *command.Command, args [][]byte, limit time.Duration) bool {
	keys, _ := cmd.AppendKeys(nil, args)
	if moves(cmd.ID) {
		keys = keys[:1]
	}
	size := sizeOf(args)
	switch {
	case s.Outstanding() > 0:
		return false // nothing else of the session may be in flight while it pops
	case len(keys) > maxClaimed:
		s.answer(errManyClaims)
		return true
	case size > maxClaimedBytes+24*len(args):
		s.answer(errLongClaims)
		return true
	}
	c := &claiming{s: s, seq: s.tail, cmd: cmd, args: cloneAll(args), keys: keys, pinned: s.inPinned()}
	c.Claims = s.w.order.NewClaims(&s.Session, c.seq, s.state.Database, s.partitionOf, c.want(), limit)
	if c.charge = size + claimMemory*c.Len(); !s.Keep(c.charge) {
		s.answer(errNotParked)
		return true
	}
	s.claims = c
	s.awaitRead(cmd, args)
	s.w.stats.Claimed++
	s.issueCounted(cmd)
	s.blocking, s.mutes, s.waits, s.popsLast = true, true, s.tail-1, popsLast(cmd, args)
	c.Begin(s.laneFor(0, false), s.w.loop.Now())
	s.w.act()
	return true
}

// want is what the command claims.
func (c *claiming) want() member.Claim {
	want := member.Claim{Kind: kinds[c.cmd.ID], Keys: make([][]byte, len(c.keys))}
	for i, at := range c.keys {
		want.Keys[i] = c.args[at]
	}
	switch c.cmd.ID {
	case command.XRead:
		at := command.ReadsOf(c.args)
		want.IDs = at.IDs(c.args)
	case command.XReadGroup:
		want.Group, want.MinIdle = c.group()
	}
	return want
}

// claimable returns the limit of a blocking command, and whether it ever waits. valid is false if a node would refuse
// its arguments.
func claimable(cmd *command.Command, args [][]byte) (limit time.Duration, waits, valid bool) {
	if isRead(cmd) {
		return readLimit(cmd, args)
	}
	at, _ := cmd.Limit(args)
	if counts(cmd) && !optionsOK(cmd, args[3+numKeys(args):]) {
		return 0, false, false
	}
	if cmd.ID == command.BLMove && (!isEnd(args[3]) || !isEnd(args[4])) {
		return 0, false, false
	}
	f, infinite, ok := longdouble.Parse(args[at])
	if !ok || infinite {
		return 0, false, false
	}
	seconds, _ := f.Float64()
	if seconds < 0 || seconds >= maxLimit.Seconds() {
		return 0, false, false
	}
	return time.Duration(seconds * float64(time.Second)), true, true
}

// maxLimit is a limit that is longer than any that a client means, and short enough for sums of times.
const maxLimit = 100 * 365 * 24 * time.Hour

// isEnd reports whether an argument is an end of a list.
func isEnd(arg []byte) bool { return command.EqualFold(arg, "left") || command.EqualFold(arg, "right") }

// optionsOK reports whether a node takes what stands behind the keys of a BLMPOP or BZMPOP.
func optionsOK(cmd *command.Command, options [][]byte) bool {
	ends := [2]string{"left", "right"}
	if cmd.ID == command.BZMPop {
		ends = [2]string{"min", "max"}
	}
	switch {
	case len(options) == 0 || !command.EqualFold(options[0], ends[0]) && !command.EqualFold(options[0], ends[1]):
		return false
	case len(options) == 1:
		return true
	case len(options) != 3 || !command.EqualFold(options[1], "count"):
		return false
	}
	count, ok := resp.ParseInt(options[2])
	return ok && count > 0
}

// naming returns a blocking command that names one key only, and has another limit unless that is nil. An XREAD is one
// that its node refuses.
func naming(cmd *command.Command, args [][]byte, key, limit []byte) [][]byte {
	if isRead(cmd) {
		return nameOne(args)
	}
	if moves(cmd.ID) { // one that its node refuses
		args = slices.Clone(args)
		args[2] = key
		return args
	}
	if counts(cmd) {
		if limit == nil {
			limit = args[1]
		}
		return append([][]byte{args[0], limit, []byte("1"), key}, args[3+numKeys(args):]...)
	}
	if limit == nil {
		limit = args[len(args)-1]
	}
	return [][]byte{args[0], key, limit}
}

// claimed does what the session's claims want done, unless they are over.
func (s *client) claimed(a *order.Action) {
	c := s.claims
	if c == nil || c.Claims != a.Claims {
		return
	}
	switch a.Kind {
	case order.ClaimPop:
		c.pop()
	case order.ClaimWait:
		s.blocked()
	case order.ClaimArm:
		c.arm()
	case order.ClaimEnd:
		switch {
		case a.Err != nil:
			c.finish(errMerge)
		case a.Reply == nil:
			c.finish(resp.AppendNullArray(nil, s.state.Version))
		default: // canceled if there was no memory, see unblocked
			c.finish(a.Reply)
		}
	}
}

// arm sets the timer.
func (c *claiming) arm() {
	c.stop()
	w := c.s.w
	if after, ok := c.Due(w.loop.Now()); ok {
		c.timer = w.loop.After(after, func() {
			c.timer = nil
			c.Tick(w.loop.Now())
			w.act()
		})
	}
}

func (c *claiming) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

const (
	// popWait is how many seconds a pop from a key that is ready waits there.
	popWait = "0.001"
	// popLimit is how long it waits to be sent. Then the key is claimed again: others wait for its turn.
	popLimit = time.Second
)

// pop pops from the key that is ready, as if the client had named no other. Its limit is short, and
// only one that is not 0.
func (c *claiming) pop() {
	var few [1]int
	places := c.AppendPopped(few[:0])
	if isRead(c.cmd) {
		c.read(places)
		return
	}
	s := c.s
	w := s.w
	key := c.args[c.keys[places[0]]]
	var raw []byte
	if moves(c.cmd.ID) {
		key = c.args[2]
		raw = member.AppendGather(nil, unblocking(c.args))
	} else {
		raw = resp.AppendRequest(nil, naming(c.cmd, c.args, key, []byte(popWait))...)
	}
	c.Pop(s.laneFor(len(raw), false))
	r := order.Request{Session: &s.Session, Seq: c.seq, Origin: s.origin(s.partitionOf(key))}
	s.BlockBriefly(c.seq, popLimit, w.loop.Now())
	if p, ok := w.order.Submit(&s.Session, r, raw, w.loop.Now()); !ok {
		w.order.Park(r, raw, w.loop.Now())
	} else if p != nil {
		w.write(p)
	}
	if !moves(c.cmd.ID) {
		c.Popped()
	}
}

// unblocking returns the command that moves an element at once, in the place of a blocking one.
func unblocking(args [][]byte) [][]byte {
	name := "LMOVE"
	if len(args) == 4 {
		name = "RPOPLPUSH"
	}
	return append([][]byte{[]byte(name)}, args[1:len(args)-1]...)
}

// popped takes the reply to a pop, and returns the reply to the command. goesOn reports that there is
// none yet, because the pop has found nothing.
func (c *claiming) popped(reply []byte) (_ []byte, goesOn bool) {
	s := c.s
	if moves(c.cmd.ID) {
		c.Popped() // it has not gone the way of the end of the turn
	}
	switch nothing := reply[0] == '_' || string(reply) == "*-1\r\n" || string(reply) == "$-1\r\n"; {
	case !nothing:
		return reply, false
	case s.woken != nil:
		return canceled, false
	}
	c.GoOn(s.laneFor(0, false), s.w.loop.Now())
	s.w.act()
	return nil, true
}

// finish ends the command, of which no pop is on its way, with a reply.
func (c *claiming) finish(reply []byte) {
	c.end()
	c.s.reply(c.seq, reply)
}

// end ends all claims.
func (c *claiming) end() {
	c.s.claims = nil
	c.s.Keep(-c.charge)
	c.stop()
	c.End()
	c.s.w.act()
}
