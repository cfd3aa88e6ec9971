package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// schedule is a Machine between sessions and two nodes, where everything happens in random order:
// requests arrive, replies arrive at once or later, timers run down, pipes are lost, partitions change
// hands, and tables come, with both nodes or with one.
type schedule struct {
	*Machine
	rng      *rand.Rand
	now      time.Duration
	sessions []*Session
	next     [partitions]uint64           // the newest request for each partition
	executed [sessions][partitions]uint64 // the newest write executed
	acked    [sessions][partitions]uint64 // the newest write whose client knows that it was executed
	known    map[*Session]map[uint64]bool // the requests that were executed once
	pinned   map[*Session]map[uint64]bool // the reads that were deferred once
	server   [partitions]int              // -1: between two nodes
	began    [partitions]uint64           // the epoch in which its server gained it
	owner    [partitions]int              // by the newest table
	alone    bool                         // n1 is not in the newest table
	epoch    uint64                       // of the newest table
	ways     map[*Pipe]*way               // of the open pipes
	order    []*Pipe                      // those
	cut      []*way                       // of lost connections: the node may read what is left
	dialed   []dial
	table    *ring.Table // that the Machine has
	fault    string
}

const sessions, partitions = 3, 2

var lanes = []Lane{{Kind: member.Common, Version: resp.RESP2}, {Kind: member.Large, Version: resp.RESP2}}

// dial is a connection that the Machine has asked for.
type dial struct {
	pipe    *Pipe
	attempt uint64
}

// way is what is on its way over one pipe.
type way struct {
	node    int
	lane    Lane
	lost    bool
	forth   []message
	back    []answer
	latched [partitions]bool
	busy    [partitions]bool // by a write that the node answers later
	later   []message        // what the node answers later
	token   uint64           // of the newest of these
	era     uint64           // the newest epoch that the node knows the proxy to know, see ownership.Gate
}

// message is a request on its way.
type message struct {
	Request        // Session nil: RETRY
	read    bool   // it only reads
	epoch   uint64 // of RETRY
	token   uint64 // not 0: it is answered later
}

// answer is a reply on its way. With a token it is that, or a push.
type answer struct {
	message
	push    bool
	refused bool
	why     Refusal
}

func newSchedule(seed uint64, broken *Broken) *schedule {
	h := &schedule{
		Machine: New(Config{Patience: time.Hour, SilentTicks: 1 << 30, Broken: broken}), rng: rand.New(rand.NewPCG(seed, 1)),
		now: time.Minute, ways: make(map[*Pipe]*way), epoch: 1,
		known: make(map[*Session]map[uint64]bool), pinned: make(map[*Session]map[uint64]bool),
	}
	for range sessions {
		s := &Session{Owner: noOwner{}}
		h.sessions = append(h.sessions, s)
		h.known[s], h.pinned[s] = make(map[uint64]bool), make(map[uint64]bool)
	}
	h.install()
	return h
}

// install has the newest table arrive.
func (h *schedule) install() {
	t := &ring.Table{Epoch: h.epoch, Issuer: "test", Nodes: []ring.Member{{ID: "n0", Boot: 1, Addr: "n0"}, {ID: "n1", Boot: 1, Addr: "n1"}}}
	if h.alone {
		t.Nodes = t.Nodes[:1]
	}
	if h.table != nil {
		t.Ancestors = []ring.Version{h.table.Version()}
	}
	for p, node := range h.owner {
		t.Owner[p] = uint16(node)
	}
	h.Install(t, h.now)
	h.table = h.Table()
	h.run()
}

func (h *schedule) run() {
	for h.HasActions() {
		for _, a := range h.Actions() {
			switch a.Kind {
			case Dial:
				h.dialed = append(h.dialed, dial{a.Pipe, a.Pipe.Attempt()})
			case Write:
				h.write(a.Pipe)
			case Close:
				if w := h.ways[a.Pipe]; w != nil {
					w.lost = true
					h.cut = append(h.cut, w)
					delete(h.ways, a.Pipe)
					h.order = slices.DeleteFunc(h.order, func(p *Pipe) bool { return p == a.Pipe })
				}
			case Fail, Undone, Proceed, Arm, Post, Watch, Refresh: // so few sessions are tried in one turn
			}
		}
	}
}

// connect has the oldest dialed connection reach its node, which closes the older ones of that pipe
// before it acknowledges the new one. The proxy may have one of them open still, if the node has left
// the table and is back.
func (h *schedule) connect() {
	if len(h.dialed) == 0 {
		return
	}
	d := h.dialed[0]
	h.dialed = h.dialed[1:]
	if _, ok := h.Connected(d.pipe, d.attempt); !ok {
		return
	}
	w := &way{lane: d.pipe.Lane, era: h.epoch}
	if d.pipe.Node.Member.ID == "n1" {
		w.node = 1
	}
	for _, p := range slices.Clone(h.order) {
		if old := h.ways[p]; old.node == w.node && old.lane == w.lane {
			h.Lost(p, ErrSilent, h.now)
			h.run()
		}
	}
	h.cut = slices.DeleteFunc(h.cut, func(old *way) bool { return old.node == w.node && old.lane == w.lane })
	h.ways[d.pipe], h.order = w, append(h.order, d.pipe)
	h.Opened(d.pipe, h.now)
	h.run()
}

// write sends what was queued.
func (h *schedule) write(p *Pipe) {
	w := h.ways[p]
	if w == nil {
		return // lost meanwhile
	}
	first := p.inflight.len() - p.TakeUnsent()
	for i := first; i < p.inflight.len(); i++ {
		r := *p.inflight.at(i)
		begin := p.acked
		if i > 0 {
			begin = p.inflight.at(i - 1).end
		}
		w.forth = append(w.forth, message{Request: r, read: onlyReads(words(p.buf[begin-p.base : r.end-p.base])), epoch: p.latch.epoch})
	}
	p.Wrote(len(p.Queued()))
}

func (h *schedule) submit() {
	s := h.sessions[h.rng.IntN(sessions)]
	if !h.Enter(s, lanes[h.rng.IntN(len(lanes))]) {
		return
	}
	partition := uint16(h.rng.IntN(partitions))
	h.next[partition]++
	r := Request{Session: s, Seq: h.next[partition], Origin: Origin{Partition: partition}}
	raw := []string{"GET x\r\n", "SET x 1\r\n", "INCR x\r\n"}[h.rng.IntN(3)]
	if p, _ := h.Submit(s, r, []byte(raw), h.now); p != nil {
		h.write(p)
		if slices.ContainsFunc(s.strays, func(q *Pipe) bool { return q.Node.left }) {
			h.fault = "a session remembers strays at a node that left"
		}
	}
	h.run()
}

// execute has the node read the next message of a pipe.
func (h *schedule) execute(w *way) {
	if len(w.forth) == 0 {
		return
	}
	a := answer{message: w.forth[0]}
	w.forth = w.forth[1:]
	switch p := a.Partition; {
	case a.Session == nil:
		w.latched, w.era = [partitions]bool{}, max(w.era, a.epoch)
	case w.latched[p] || w.busy[p] || h.server[p] != w.node || h.began[p] > w.era || h.rng.IntN(10) == 0:
		h.refuse(w, &a)
	case h.rng.IntN(2) == 0:
		h.postpone(w, &a.message)
	default:
		h.judge(w, &a.message)
	}
	w.back = append(w.back, a)
}

// refuse has the node refuse a request.
func (h *schedule) refuse(w *way, a *answer) {
	p := a.Partition
	a.refused = true
	switch other := h.server[p]; {
	case other == w.node:
		a.why = Refusal{Epoch: h.began[p]}
	case other >= 0 && !w.latched[p]:
		a.why = Refusal{Moved: true, Partition: p, Addr: fmt.Sprintf("n%d", other)}
	}
	w.latched[p] = true
}

// postpone has the node answer a request later. A read has its moment now.
func (h *schedule) postpone(w *way, r *message) {
	w.token++
	r.token = w.token
	if r.read {
		h.judge(w, r)
		h.pinned[r.Session][r.number()] = true
	} else {
		w.busy[r.Partition] = true
	}
	w.later = append(w.later, *r)
}

// complete has the node finish a request that it answers later. A write may be refused then: because
// the partition has gone, or the node does not know whether it has.
func (h *schedule) complete(w *way) {
	if len(w.later) == 0 {
		return
	}
	i := h.rng.IntN(len(w.later))
	a := answer{message: w.later[i], push: true}
	w.later = slices.Delete(w.later, i, i+1)
	if p := a.Partition; !a.read {
		w.busy[p] = false
		if h.server[p] != w.node || h.began[p] > w.era || h.rng.IntN(4) == 0 {
			h.refuse(w, &a)
		} else {
			h.judge(w, &a.message)
		}
	}
	w.back = append(w.back, a)
}

// number tells a request from the others of its session.
func (r *message) number() uint64 { return r.Seq*partitions + uint64(r.Partition) }

// judge notices a request that is executed too late: for the first time behind a newer write of its
// session, or at all behind one that was answered. A read may be whose connection was lost, or that
// is repeated because another was lost before it was complete: its client has the replies to neither.
func (h *schedule) judge(w *way, r *message) {
	i, p := slices.Index(h.sessions, r.Session), r.Partition
	known := h.known[r.Session]
	id := r.number()
	late := r.Seq < h.acked[i][p] || r.Seq < h.executed[i][p] && !known[id]
	if late && !(r.read && (w.lost || h.pinned[r.Session][id])) {
		h.fault = fmt.Sprintf("session %d: %d is executed behind %d", i, r.Seq, h.executed[i][p])
	}
	known[id] = true
	if !r.read {
		h.executed[i][p] = max(h.executed[i][p], r.Seq)
	}
}

// answer has the proxy read the next reply of a pipe.
func (h *schedule) answer(p *Pipe, w *way) {
	if len(w.back) == 0 {
		return
	}
	a := w.back[0]
	w.back = w.back[1:]
	inStep := true
	switch {
	case a.push && a.refused:
		inStep = h.RefusedLater(p, a.token, a.why, h.now)
	case a.refused:
		h.Refused(p, a.why, h.now)
	case a.token > 0 && !a.push:
		inStep = h.Later(p, a.token, nil)
	default:
		if a.Session != nil && !a.read {
			acked := &h.acked[slices.Index(h.sessions, a.Session)][a.Partition]
			*acked = max(*acked, a.Seq)
		}
		if !a.push {
			p.Pop()
		} else {
			_, inStep = h.Completed(p, a.token)
		}
	}
	if !inStep {
		h.fault = "the pipe is out of step"
	}
	h.run()
}

// move takes a partition from its owner, or has the next owner serve it.
func (h *schedule) move(p int) {
	if h.server[p] < 0 {
		h.server[p], h.began[p] = h.owner[p], h.epoch
	} else if h.rng.IntN(4) == 0 && !h.alone {
		h.server[p], h.owner[p] = -1, 1-h.owner[p]
		h.epoch++
	}
}

// leave takes n1 out of the table, or brings it back.
func (h *schedule) leave() {
	h.alone = !h.alone
	h.epoch++
	for p, node := range h.owner {
		if h.alone && node == 1 {
			h.server[p], h.owner[p] = -1, 0
		}
	}
}

// step lets something happen.
func (h *schedule) step() {
	h.now += time.Duration(h.rng.IntN(int(3 * time.Millisecond)))
	switch x := h.rng.IntN(100); {
	case x < 30:
		h.submit()
	case x < 70 && len(h.order) > 0:
		p := h.order[h.rng.IntN(len(h.order))]
		switch w := h.ways[p]; h.rng.IntN(9) {
		case 0, 1, 2, 3:
			h.execute(w)
		case 4:
			h.complete(w)
		default:
			h.answer(p, w)
		}
	case x < 73 && len(h.cut) > 0:
		w := h.cut[h.rng.IntN(len(h.cut))]
		h.execute(w)
		h.complete(w)
	case x < 80:
		h.connect()
	case x < 87:
		h.RetryTimer(h.now)
		h.run()
	case x < 92:
		h.FollowMoves(h.now)
		h.run()
	case x < 95:
		h.move(h.rng.IntN(partitions))
	case x < 97:
		h.install()
	case x < 98 && len(h.order) > 0:
		h.Lost(h.order[h.rng.IntN(len(h.order))], ErrSilent, h.now)
		h.run()
		h.count()
	case x < 99 && h.rng.IntN(4) == 0:
		h.leave()
	default:
		h.Tick(h.now)
		h.run()
	}
}

// count notices a request of which nobody knows any more.
func (h *schedule) count() {
	for i, s := range h.sessions {
		n := len(s.parked)
		for _, node := range append(slices.Clone(h.list), h.leaving...) {
			node.Each(func(p *Pipe) {
				for i := range p.inflight.len() {
					if p.inflight.at(i).Session == s {
						n++
					}
				}
				for _, d := range p.later.list {
					if d.Session == s {
						n++
					}
				}
			})
		}
		if n != s.Outstanding() {
			h.fault = fmt.Sprintf("session %d: %d requests are outstanding, and %d are somewhere", i, s.Outstanding(), n)
		}
	}
}

// firstFault is the first schedule in which a rule was broken.
func firstFault(schedules int, broken *Broken) (seed uint64, fault string) {
	for seed = 1; seed <= uint64(schedules); seed++ {
		h := newSchedule(seed, broken)
		for range 1000 {
			if h.step(); h.fault != "" {
				return seed, h.fault
			}
		}
	}
	return 0, ""
}

// The requests of a session for one partition are executed in their order, whatever is refused and
// moves meanwhile.
func TestOrderInRandomSchedules(t *testing.T) {
	if seed, fault := firstFault(500, nil); fault != "" {
		t.Errorf("schedule %d: %s", seed, fault)
	}
}

// Random schedules show what becomes of rules that are broken.
func TestBrokenRulesInRandomSchedules(t *testing.T) {
	for name, broken := range map[string]Broken{
		"say RETRY while refusals are on their way":             {RetryEarly: true},
		"send parked requests before the others have come back": {ResendEarly: true},
		"send past what is parked":                              {PassParked: true},
		"change the route of outstanding requests":              {IgnoreRoutes: true},
		"change the lane of outstanding requests":               {ChangeLanes: true},
		"overtake strays in another lane":                       {ForgetStrays: true},
		"forget what was deferred when its pipe broke":          {ForgetDeferred: true},
		"take what is deferred for answered":                    {UncountDeferred: true},
		"send for a partition while a write is deferred":        {OvertakeDeferred: true},
	} {
		if seed, fault := firstFault(500, &broken); fault == "" {
			t.Errorf("%s: not noticed in 500 schedules", name)
		} else {
			t.Logf("%s: schedule %d: %s", name, seed, fault)
		}
	}
}
