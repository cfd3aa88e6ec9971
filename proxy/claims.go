package proxy

import (
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A blocking command that names keys of several slots claims them at the owner of each partition (see
// internal/member). When an owner says that a key is ready, the proxy pops from that key alone, as if its
// client had named no other, and goes on if it finds nothing:
//
//	BLPOP k1 k2 0   CLAIM k1 ─▶ node 1: token
//	                CLAIM k2 ─▶ node 2: token  ···  READY ─▶ BLPOP k2 0.001, PASS ─▶ the reply
//	                                                         CANCEL ─▶ node 1
//
// At first all owners are asked, and if several keys are ready, the first of them is popped from, as in Redis.
// An owner that does not answer then delays the command for firstClaims only.

const (
	// firstClaims is how long a command waits for the first answers of all owners.
	firstClaims = 100 * time.Millisecond
	// claimPause is how long a claim waits that its node has not taken, before it is made again.
	claimPause = 10 * time.Millisecond
	// claimMemory is about what a claim takes in the heap beside its keys.
	claimMemory = 512
	// maxClaimed and maxClaimedBytes are what a node takes of a blocking command: its keys and its arguments.
	maxClaimed, maxClaimedBytes = 256, 64 << 10
)

// claiming is a blocking command that has claims.
type claiming struct {
	s      *client
	seq    uint64
	cmd    *command.Command
	args   [][]byte
	charge int
	begun  time.Duration
	limit  time.Duration // 0: none
	claims []*claim      // by their first keys

	popping bool           // a pop is on its way: the claims do not count as outstanding
	settled bool           // all owners have answered, or have had the time for it
	timer   *netloop.Timer // for the next of: firstClaims, claims to be made again, the limit
	over    bool
}

// claim is for the keys of one partition. It is the Part of its requests.
type claim struct {
	of        *claiming
	partition uint16
	keys      [][]byte
	at        []int // where they stand among the keys of the command
	state     claimState
	pipe      *order.Pipe // that it waits on
	attempt   uint64      // of the pipe
	token     uint64
	ready     member.Ready
}

type claimState uint8

const (
	unclaimed claimState = iota // to be made, or made again
	asked
	claimWaits
	claimReady
	claimPops // the pop from its key is on its way
)

// kinds are the values that commands wait for that may name keys of several slots.
var kinds = map[command.ID]member.ValueKind{
	command.BLPop: member.List, command.BRPop: member.List, command.BLMPop: member.List,
	command.BZPopMin: member.SortedSet, command.BZPopMax: member.SortedSet, command.BZMPop: member.SortedSet,
}

// crosses reports whether a blocking command names keys of several slots, and may.
func (s *client) crosses(cmd *command.Command, args [][]byte) bool {
	first := cmd.FirstKey(args)
	if kinds[cmd.ID] == 0 || first == 0 || s.w.order.Level() < ring.ClaimLevel {
		return false
	}
	_, same := s.slotOf(cmd, args, first)
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
	size := 0
	for _, arg := range args {
		size += len(arg) + 24
	}
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
	c := &claiming{s: s, seq: s.tail, cmd: cmd, begun: s.w.loop.Now(), limit: limit, args: cloneAll(args)}
	c.divide(keys)
	if c.charge = size + claimMemory*len(c.claims); !s.Keep(c.charge) {
		s.answer(errNotParked)
		return true
	}
	s.claims = c
	s.w.stats.Claimed++
	s.w.order.Begin(&s.Session, s.laneFor(0, false))
	s.issueCounted(cmd)
	s.blocking, s.mutes, s.waits, s.popsLast = true, true, s.tail-1, popsLast(cmd, args)
	c.goOn()
	s.w.act()
	return true
}

// claimable returns the limit of a blocking command. valid is false if a node would refuse its arguments.
func claimable(cmd *command.Command, args [][]byte) (limit time.Duration, valid bool) {
	at := len(args) - 1
	if counts(cmd) {
		at = 1
		if valid = optionsOK(cmd, args[3+numKeys(args):]); !valid {
			return 0, false
		}
	}
	seconds, err := strconv.ParseFloat(string(args[at]), 64)
	if err != nil || !(seconds >= 0 && seconds < maxLimit.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// maxLimit is a limit that is longer than any that a client means, and short enough for sums of times.
const maxLimit = 100 * 365 * 24 * time.Hour

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

// naming returns a blocking command that names one key only, and has another limit unless that is nil.
func naming(cmd *command.Command, args [][]byte, key, limit []byte) [][]byte {
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

// divide makes a claim for each partition.
func (c *claiming) divide(keys []int) {
	of := make(map[uint16]*claim)
	for i, at := range keys {
		key := c.args[at]
		p := ring.PartitionOf(key)
		if of[p] == nil {
			of[p] = &claim{of: c, partition: p}
			c.claims = append(c.claims, of[p])
		}
		of[p].keys, of[p].at = append(of[p].keys, key), append(of[p].at, i)
	}
}

// goOn makes the claims that are to be made, and pops if it is time for that.
func (c *claiming) goOn() {
	if c.over {
		return
	}
	now := c.s.w.loop.Now()
	for _, cl := range c.claims {
		if cl.state == unclaimed {
			cl.ask(now)
		}
	}
	c.decide()
}

// decide pops from the first key that is ready, or waits.
func (c *claiming) decide() {
	if c.over || c.popping {
		return
	}
	now := c.s.w.loop.Now()
	var first *claim
	open := false
	for _, cl := range c.claims {
		switch cl.state {
		case unclaimed, asked:
			open = true
		case claimReady:
			if first == nil || cl.at[cl.ready.Key] < first.at[first.ready.Key] {
				first = cl
			}
		case claimWaits, claimPops:
		}
	}
	c.settled = c.settled || !open || now-c.begun >= firstClaims
	switch {
	case first != nil && c.settled:
		c.pop(first)
	case c.limit > 0 && now-c.begun >= c.limit:
		c.finish(resp.AppendNullArray(nil, c.s.state.Version))
		return
	case c.settled:
		c.s.blocked()
	}
	c.arm(now)
}

// arm sets the timer.
func (c *claiming) arm(now time.Duration) {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.over {
		return
	}
	next := time.Duration(-1)
	within := func(d time.Duration) {
		if d = max(d, 0); next < 0 || d < next {
			next = d
		}
	}
	if c.limit > 0 && !c.popping {
		within(c.begun + c.limit - now)
	}
	if !c.settled {
		within(c.begun + firstClaims - now)
	}
	for _, cl := range c.claims {
		if cl.state == unclaimed {
			within(claimPause)
			break
		}
	}
	if next >= 0 {
		c.timer = c.s.w.loop.After(next, func() {
			c.timer = nil
			c.goOn()
			c.s.w.act()
		})
	}
}

// ask makes the claim, if its node can be asked now.
func (cl *claim) ask(now time.Duration) {
	s := cl.of.s
	w := s.w
	owner := w.order.Owner(cl.partition)
	if owner == nil {
		return
	}
	waited := now - cl.of.begun
	raw := member.AppendClaim(w.scratch[:0], &member.Claim{Waited: waited, Kind: kinds[cl.of.cmd.ID], Keys: cl.keys})
	w.keepScratch(raw)
	r := order.Request{Session: &s.Session, Part: cl, Seq: cl.of.seq, Origin: order.Origin{Partition: cl.partition}}
	if w.order.Ask(owner.Pipe(s.Lane()), r, raw, now) {
		cl.state = asked
	}
}

// Waits implements order.Claimant: nothing is ready yet.
func (cl *claim) Waits(p *order.Pipe, token uint64) {
	cl.pipe, cl.attempt, cl.token, cl.state = p, p.Attempt(), token, claimWaits
	if cl.of.over {
		cl.cancel()
	}
	cl.of.decide()
}

// Undone implements order.Asker: the partition has moved, or the pipe is lost.
func (cl *claim) Undone() {
	cl.state = unclaimed
	cl.of.decide()
	cl.of.s.w.act()
}

// Done implements order.Part: a key is ready, or the node has ended the wait.
func (cl *claim) Done(_ int32, reply []byte) {
	ready, ok := member.ParseReady(reply, len(cl.keys))
	c := cl.of
	switch {
	case c.over:
		if ok {
			cl.state, cl.ready = claimReady, ready
			cl.pass()
		}
	case ok:
		cl.state, cl.ready = claimReady, ready
		c.decide()
	case resp.IsError(reply):
		if !c.popping {
			if string(reply) == string(canceled) { // order has canceled it: there was no memory
				reply = outOfMemory
			}
			c.finish(reply)
		}
		cl.state = unclaimed
	default: // the node ends all waits
		cl.state = unclaimed
		c.decide()
	}
	c.s.w.act()
}

// cancel has the node end the wait of the claim, or its turn.
func (cl *claim) cancel() {
	switch cl.state {
	case claimWaits:
		if cl.pipe.Attempt() == cl.attempt {
			cl.of.s.w.order.CancelClaim(cl.pipe, cl.token, cl)
		}
	case claimReady:
		cl.pass()
	case unclaimed, asked, claimPops:
	}
}

// pass gives up the turn of the claim. Where that is not possible, the turn ends by itself.
func (cl *claim) pass() {
	w := cl.of.s.w
	owner := w.order.Owner(cl.partition)
	if cl.ready.Turn == 0 || owner == nil {
		return
	}
	if p := owner.Pipe(cl.of.s.Lane()); p.IsOpen() && !p.IsFull(0) {
		key := cl.keys[cl.ready.Key]
		w.order.Tell(p, member.AppendPass(nil, member.Pass{Kind: kinds[cl.of.cmd.ID], Turn: cl.ready.Turn, Key: key}))
	}
}

// pop pops from the key that is ready. Its limit is short, and only one that is not 0.
func (c *claiming) pop(cl *claim) {
	s := c.s
	w := s.w
	key := cl.keys[cl.ready.Key]
	cl.state, c.popping = claimPops, true
	raw := resp.AppendRequest(nil, naming(c.cmd, c.args, key, []byte("0.001"))...)
	lane := s.laneFor(len(raw), false)
	s.End()
	w.order.Enter(&s.Session, lane)
	r := order.Request{Session: &s.Session, Seq: c.seq, Origin: order.Origin{Partition: cl.partition}}
	s.Block(w.loop.Now())
	if p, ok := w.order.Submit(&s.Session, r, raw, w.loop.Now()); !ok {
		w.order.Park(r, raw, w.loop.Now())
	} else if p != nil {
		w.write(p)
	}
	cl.pass() // behind the pop, so that nobody who waits takes what the claim was told of
}

// popped takes the reply to a pop, and returns the reply to the command. goesOn reports that there is none yet,
// because the pop has found nothing.
func (c *claiming) popped(reply []byte) (_ []byte, goesOn bool) {
	s := c.s
	switch nothing := reply[0] == '_' || string(reply) == "*-1\r\n"; {
	case !nothing:
		return reply, false
	case s.woken != nil:
		return canceled, false
	}
	for _, cl := range c.claims {
		if cl.state == claimPops {
			cl.state = unclaimed
		}
	}
	c.popping = false
	s.w.order.Begin(&s.Session, s.laneFor(0, false))
	c.goOn()
	s.w.act()
	return nil, true
}

// finish ends the command, of which no pop is on its way, with a reply.
func (c *claiming) finish(reply []byte) {
	c.s.End()
	c.end()
	c.s.reply(c.seq, reply)
}

// end ends all claims.
func (c *claiming) end() {
	c.over = true
	c.s.claims = nil
	c.s.Keep(-c.charge)
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	for _, cl := range c.claims {
		cl.cancel()
	}
	c.s.w.act()
}
