package order

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Claims are those of a blocking command that names keys of several partitions (see
// internal/member): one claim for each partition. They decide when a claim is made, from which
// keys the command pops, and how it ends:
//
//	Begin ─▶ CLAIM k1 ─▶ node 1: token
//	         CLAIM k2 ─▶ node 2: token  ···  READY ─▶ ClaimPop: the pop from k2, PASS ─▶ its reply: End
//	                                                  CANCEL ─▶ node 1       found nothing: GoOn
//
// At first all owners are asked, and if several keys are ready, the first of them is popped from,
// as in Redis. An owner that does not answer then delays the command for FirstClaims only. A pop
// of streams is a read: it reads all that are ready, and takes nothing away from the others that
// wait.
//
// While a pop is on its way, nothing else of the session is, and the claims do not count as
// outstanding.
type Claims struct {
	m        *Machine
	s        *Session
	seq      uint64
	database uint8
	want     member.Claim // of all keys
	begun    time.Duration
	limit    time.Duration // 0: none
	list     []*claim      // by their first keys

	popping bool // a pop is on its way
	popped  bool // one has found nothing
	settled bool // all owners have answered, or have had the time for it
	expired bool // the time of the command is up
	over    bool
}

const (
	// FirstClaims is how long a command waits for the first answers of all owners.
	FirstClaims = 100 * time.Millisecond
	// claimPause is how long a claim waits that its node has not taken, before it is made again.
	claimPause = 10 * time.Millisecond
)

// claim is for the keys of one partition. It is the Part of its requests.
type claim struct {
	of        *Claims
	partition uint16
	at        []int    // where its keys stand among those of the command
	keys      [][]byte // these keys
	ids       [][]byte // of a stream, for each of them
	state     claimState
	pipe      *Pipe  // that it waits on
	attempt   uint64 // of the pipe
	token     uint64
	ready     member.Ready
}

type claimState uint8

const (
	unclaimed claimState = iota // to be made, or made again
	asked
	claimWaits
	claimReady
	claimPops // the pop from its keys is on its way
)

// NewClaims returns the claims of a command of the session with that number, in a database.
// partitionOf places its keys. It keeps want, which has all keys of the command. Once a node has
// said which ID a $ is, that takes the place of the $ in want.IDs. limit is how long the command
// waits, 0 for ever.
func (m *Machine) NewClaims(
	s *Session, seq uint64, database uint8, partitionOf func(key []byte) uint16, want member.Claim, limit time.Duration,
) *Claims {
	c := &Claims{m: m, s: s, seq: seq, database: database, want: want, limit: limit}
	of := make(map[uint16]*claim)
	for i, key := range want.Keys {
		p := partitionOf(key)
		cl := of[p]
		if cl == nil {
			cl = &claim{of: c, partition: p}
			of[p], c.list = cl, append(c.list, cl)
		}
		cl.at, cl.keys = append(cl.at, i), append(cl.keys, key)
		if want.IDs != nil {
			cl.ids = append(cl.ids, want.IDs[i])
		}
	}
	return c
}

// Len returns how many claims there are.
func (c *Claims) Len() int { return len(c.list) }

// IsPopping reports whether a pop is on its way, or about to be.
func (c *Claims) IsPopping() bool { return c.popping }

// Begin makes the claims, in a lane. Nothing of the session may be outstanding.
func (c *Claims) Begin(l Lane, now time.Duration) {
	c.begun = now
	c.m.Begin(c.s, l)
	c.Tick(now)
}

// Due returns when Tick is to be called next, if ok.
func (c *Claims) Due(now time.Duration) (after time.Duration, ok bool) {
	within := func(d time.Duration) {
		if d = max(d, 0); !ok || d < after {
			after, ok = d, true
		}
	}
	if c.over {
		return 0, false
	}
	if c.limit > 0 && !c.popping && !c.m.broken.forgetsLimits() {
		within(c.begun + c.limit - now)
	}
	if !c.settled {
		within(c.begun + FirstClaims - now)
	}
	if slices.ContainsFunc(c.list, func(cl *claim) bool { return cl.state == unclaimed }) {
		within(claimPause)
	}
	return after, ok
}

// Tick is the event that time has passed, see ClaimArm. It makes the claims that are to be made.
func (c *Claims) Tick(now time.Duration) {
	if c.over {
		return
	}
	c.settled = c.settled || now-c.begun >= FirstClaims
	c.expired = c.limit > 0 && now-c.begun >= c.limit && !c.m.broken.forgetsLimits()
	for _, cl := range c.list {
		if cl.state == unclaimed {
			cl.ask(now)
		}
	}
	c.decide()
}

// decide has the command pop from the first key that is ready, wait on, or end. When its time is
// up it pops once more at most, if it has not yet: in Redis, a command looks at its keys before it
// waits.
func (c *Claims) decide() {
	if c.over || c.popping {
		return
	}
	var first *claim
	open := false
	for _, cl := range c.list {
		switch cl.state {
		case unclaimed, asked:
			open = true
		case claimReady:
			if first == nil || cl.place() < first.place() {
				first = cl
			}
		case claimWaits, claimPops:
		}
	}
	c.settled = c.settled || !open || c.expired
	switch {
	case first != nil && c.settled && !(c.expired && c.popped):
		c.pop(first)
	case c.expired:
		c.answer(nil, nil)
		return
	case c.settled:
		c.act(ClaimWait)
	}
	c.act(ClaimArm)
}

func (c *Claims) act(kind ActionKind) { c.m.act(Action{Kind: kind, Session: c.s, Claims: c}) }

// pop has the command pop from a key that is ready, or read all streams that are.
func (c *Claims) pop(first *claim) {
	c.popping = true
	for _, cl := range c.list {
		if cl == first || c.reads() && cl.state == claimReady {
			cl.state = claimPops
		}
	}
	if c.m.broken.passesEarly() {
		c.pass()
	}
	c.act(ClaimPop)
}

// reads reports whether the command reads streams.
func (c *Claims) reads() bool { return c.want.Kind == member.Stream || c.want.Kind == member.Group }

// AppendPopped appends from which keys the command pops, by their places among those of the
// command.
func (c *Claims) AppendPopped(places []int) []int {
	begun := len(places)
	for _, cl := range c.list {
		switch {
		case cl.state != claimPops:
		case c.reads():
			places = append(places, cl.at...)
		default:
			places = append(places, cl.place())
		}
	}
	slices.Sort(places[begun:])
	return places
}

// Pop gives way to the pop, which the shell is about to submit in a lane.
func (c *Claims) Pop(l Lane) {
	c.s.End()
	c.m.Enter(c.s, l)
}

// Popped is the event that the pop was submitted. The turns of the claims end behind it, so that
// nobody who waits takes what they were told of. If the pop was parked, they end by themselves.
func (c *Claims) Popped() {
	sent := len(c.s.parked) == 0 || c.m.broken.passesUnsent()
	if sent && !c.m.broken.passesEarly() {
		c.pass()
	}
}

func (c *Claims) pass() {
	for _, cl := range c.list {
		if cl.state == claimPops {
			cl.pass()
		}
	}
}

// GoOn is the event that the pop has found nothing. The keys are claimed again, in a lane.
func (c *Claims) GoOn(l Lane, now time.Duration) {
	c.popping, c.popped = false, true
	for _, cl := range c.list {
		if cl.state == claimPops {
			cl.state = unclaimed
		}
	}
	c.m.Begin(c.s, l)
	c.Tick(now)
}

// answer ends the command, of which no pop is on its way.
func (c *Claims) answer(reply []byte, err error) {
	c.End()
	c.m.act(Action{Kind: ClaimEnd, Session: c.s, Claims: c, Reply: reply, Err: err})
}

var errIDs = errors.New("a node has not said which IDs a claim means")

// End is the event that the command has a reply, or that its client is gone. It ends all claims.
func (c *Claims) End() {
	if c.over {
		return
	}
	c.over = true
	if !c.popping {
		c.s.End()
	}
	for _, cl := range c.list {
		cl.cancel()
	}
}

// place returns where the key that is ready stands among those of the command.
func (cl *claim) place() int { return cl.at[cl.ready.Key] }

// ask makes the claim, if its node can be asked now.
func (cl *claim) ask(now time.Duration) {
	c, m := cl.of, cl.of.m
	owner := m.owner[cl.partition]
	if owner == nil {
		return
	}
	want := c.want
	want.Keys, want.IDs, want.Waited = cl.keys, cl.ids, now-c.begun
	if m.broken.forgetsAges() {
		want.Waited = 0
	}
	m.claim = member.AppendClaim(m.claim[:0], &want)
	r := Request{Session: c.s, Part: cl, Seq: c.seq, Origin: Origin{Partition: cl.partition, Database: c.database}}
	if m.Ask(owner.Pipe(c.s.lane), r, m.claim, now) {
		cl.state = asked
	}
}

// Waits implements Claimant: nothing is ready yet.
func (cl *claim) Waits(p *Pipe, token uint64, ids []byte) {
	cl.pipe, cl.attempt, cl.token, cl.state = p, p.attempt, token, claimWaits
	if cl.of.over {
		cl.cancel()
		return
	}
	cl.settle(ids)
	cl.of.decide()
}

// Undone implements Asker: the partition has moved, or the pipe is lost.
func (cl *claim) Undone() {
	if !cl.of.m.broken.forgetsUndone() {
		cl.state = unclaimed
	}
	cl.of.decide()
}

// Done implements Part: a key is ready, or the node has ended the wait.
func (cl *claim) Done(_ int32, reply []byte) {
	c := cl.of
	ready, ok := member.ParseReady(reply, len(cl.keys))
	switch {
	case ok:
		cl.state, cl.ready = claimReady, member.Ready{Key: ready.Key, Turn: ready.Turn}
		if c.over {
			cl.pass()
			return
		}
		cl.settle(ready.IDs)
	case !c.over && !c.popping && resp.IsError(reply):
		cl.state = unclaimed
		c.answer(bytes.Clone(reply), nil)
	default:
		cl.state = unclaimed
	}
	c.decide()
}

// settle notes which IDs the command means from now on.
func (cl *claim) settle(ids []byte) {
	c := cl.of
	if c.m.broken.forgetsIDs() {
		return
	}
	ok := member.Settle(cl.ids, bytes.Clone(ids))
	for i, id := range cl.ids {
		c.want.IDs[cl.at[i]] = id
	}
	if !ok && !c.popping {
		c.answer(nil, errIDs)
	}
}

// cancel has the node end the wait of the claim, or its turn.
func (cl *claim) cancel() {
	switch cl.state {
	case claimWaits:
		if cl.pipe.attempt == cl.attempt {
			cl.of.m.CancelClaim(cl.pipe, cl.token, cl)
		}
	case claimReady:
		cl.pass()
	case unclaimed, asked, claimPops:
	}
}

// pass gives up the turn of the claim. Where that is not possible, the turn ends by itself.
func (cl *claim) pass() {
	c, m := cl.of, cl.of.m
	owner := m.owner[cl.partition]
	if cl.ready.Turn == 0 || owner == nil {
		return
	}
	if p := owner.Pipe(c.s.lane); p.IsOpen() && !p.IsFull(0) {
		m.tellOf(c.database, p, member.AppendPass(nil, member.Pass{
			Kind: c.want.Kind, Turn: cl.ready.Turn, Key: cl.keys[cl.ready.Key], Group: c.want.Group,
		}))
	}
}
