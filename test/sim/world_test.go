package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// world is one history: a clock, the events to come, and the processes that they happen to. One
// goroutine runs it and all chance comes from its seed, so a seed always leads to the same history.
type world struct {
	options
	rng    *rand.Rand
	now    time.Duration
	queue  events
	serial uint64 // of the newest event
	steps  int

	tracked []uint16 // the partitions that have keys; places in here stand for them everywhere
	procs   []*proc  // of all times
	byAddr  map[string]*proc
	boots   int64
	seal    uint64
	issued  map[ring.Version]*ring.Table

	cut       [maxHosts][maxHosts]bool // packets between two hosts are lost
	lossy     float64                  // share of gossip's packets lost
	slow      float64                  // share of messages that take long
	pace      time.Duration            // that the pieces of snapshots keep
	starting  bool                     // the cluster is not yet one
	peace     bool                     // nothing bad happens any more
	calm      bool                     // and all has become well
	takerDies bool                     // the next node to which a table gives something does
	issuer    issuer                   // that stands still
	cutNow    bool                     // nodes are cut off from each other
	lastReset time.Duration
	lastCut   time.Duration
	atLeast   int                     // --min-members
	ids       int                     // of commands
	trouble   [maxHosts]time.Duration // when something bad last happened to a host

	truth  []truth         // by place
	halves map[[2]int]bool // places and values of which transactions that gave up have set one key

	published [places][]publication // on the channel of each place, in this order
	untold    time.Duration         // when the next owner of a channel was not told everything in time, the last time
	proxyCut  time.Duration         // until when a proxy and a node are cut off from each other, at most

	lists    [][]int          // of all times; the first is empty
	elements map[int]*element // of which it is known what becomes of them
	journals [spots][]int     // the entries of journals that everybody has to find

	lines []string // the trace
	fault string   // the first violation
}

const maxHosts = 12

// event is what happens to a process at a time; proc nil: to the world.
type event struct {
	at     time.Duration
	serial uint64
	proc   *proc
	run    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}

// proc is one life of a process. Its events wait while it is stopped, and are lost when it is
// killed.
type proc struct {
	w        *world
	id, name string
	boot     int64
	addr     string
	host     int // of its id
	role     ring.Role
	dead     bool
	left     bool // dead, but it has left in an orderly way
	stopped  bool
	since    time.Duration // it is stopped
	slept    time.Duration // for how long it was, in all
	deferred []func()
	conns    []*conn

	agent *agent
	node  *node  // one of the two
	proxy *proxy // is nil
}

// after has f happen to p, if it lives, in d.
func (w *world) after(p *proc, d time.Duration, f func()) {
	w.serial++
	heap.Push(&w.queue, event{w.now + d, w.serial, p, f})
}

// run lets events happen until the time, or a violation.
func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until && w.fault == "" {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.steps++
		switch p := e.proc; {
		case p == nil:
			e.run()
		case p.dead:
		case p.stopped:
			p.deferred = append(p.deferred, e.run)
		default:
			e.run()
		}
	}
	w.now = max(w.now, until)
}

// between is a random time.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) tracef(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%9.1fms  ", float64(w.now.Microseconds())/1000)+fmt.Sprintf(format, args...))
}

// violate ends the history.
func (w *world) violate(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
		w.tracef("VIOLATION: %s", w.fault)
	}
}

// trace is the end of what happened, at most so many lines.
func (w *world) trace(lines int) string {
	from := max(0, len(w.lines)-lines)
	return strings.Join(w.lines[from:], "\n")
}

// kill ends a process: its connections break.
func (p *proc) kill() {
	w := p.w
	p.dead = true
	w.hurt(p)
	w.tracef("%s is killed", p.name)
	if w.byAddr[p.addr] == p {
		delete(w.byAddr, p.addr)
	}
	for _, c := range slices.Clone(p.conns) {
		c.lost(c.end(p))
	}
}

// hurt notes that something bad happened to a process.
func (w *world) hurt(p *proc) { w.trouble[p.host] = w.now + 1 }

// stop is SIGSTOP.
func (p *proc) stop() {
	if !p.dead && !p.stopped {
		p.stopped, p.since = true, p.w.now
		p.w.tracef("%s is stopped", p.name)
	}
}

// resume is SIGCONT. Its threads go on in any order.
func (p *proc) resume() {
	if p.dead || !p.stopped {
		return
	}
	w := p.w
	p.stopped = false
	gap := w.now - p.since
	p.slept += gap
	w.tracef("%s goes on after %v", p.name, gap.Round(time.Millisecond))
	if gap > stallLimit/2 {
		w.hurt(p)
	}
	if gap > standstill {
		p.agent.standstills++
	}
	for _, e := range p.agent.peers {
		e.heard += gap // memberlist goes by its own probes, which stood still too
	}
	if p.node != nil {
		p.node.slept(gap)
	}
	for _, f := range p.deferred {
		w.after(p, w.between(0, 3*time.Millisecond), f)
	}
	p.deferred = nil
}

// delay is how long a message takes.
func (w *world) delay() time.Duration {
	if w.chance(w.slow) {
		return w.between(2*time.Millisecond, 60*time.Millisecond)
	}
	return w.between(100*time.Microsecond, 2*time.Millisecond)
}

func (w *world) reachable(a, b *proc) bool { return !w.cut[a.host][b.host] }

// datagram calls f at the process that listens at the address of to, unless the packet is lost.
// Packets may overtake one another.
func (w *world) datagram(from, to *proc, f func()) {
	if w.chance(w.lossy) || !w.reachable(from, to) {
		return
	}
	w.after(to, w.delay(), f)
}

// conn is a TCP connection: messages arrive in order, as long as both ends live and the network
// does not keep them apart.
type conn struct {
	w     *world
	procs [2]*proc
	ends  [2]endpoint // nil: closed
	ways  [2]way      // to that end
}

type endpoint interface {
	received(m any)
	closed()
}

// way is one direction of a connection.
type way struct {
	queue []any
	busy  bool
}

type fin struct{}

// dial connects from to the process that listens at the address. accept returns the other end. dial
// calls done with the connection, or with nil if nothing listens there. While the network is cut,
// nothing happens.
func (w *world) dial(from *proc, addr string, local endpoint, accept func(*proc, *conn) endpoint, done func(*conn)) {
	var arrive func()
	arrive = func() {
		if from.dead {
			return
		}
		to := w.byAddr[addr]
		switch {
		case to == nil:
			w.after(from, w.delay(), func() { done(nil) })
		case !w.reachable(from, to):
			w.after(nil, 200*time.Millisecond, arrive)
		default:
			c := &conn{w: w, procs: [2]*proc{from, to}}
			c.ends[0] = local
			from.conns, to.conns = append(from.conns, c), append(to.conns, c)
			c.ends[1] = accept(to, c)
			w.after(from, w.delay(), func() { done(c) })
		}
	}
	w.after(nil, w.delay(), arrive)
}

func (c *conn) end(p *proc) int {
	if c.procs[0] == p {
		return 0
	}
	return 1
}

// send sends a message from an end.
func (c *conn) send(from int, m any) {
	if c.ends[from] == nil {
		return
	}
	c.push(1-from, m)
}

func (c *conn) push(to int, m any) {
	l := &c.ways[to]
	l.queue = append(l.queue, m)
	if !l.busy {
		l.busy = true
		c.w.after(c.procs[to], c.w.delay(), func() { c.pump(to) })
	}
}

// pump delivers the oldest message of a direction.
func (c *conn) pump(to int) {
	w, l := c.w, &c.ways[to]
	if !w.reachable(c.procs[0], c.procs[1]) {
		w.after(c.procs[to], w.between(50*time.Millisecond, 250*time.Millisecond), func() { c.pump(to) })
		return
	}
	m := l.queue[0]
	l.queue = l.queue[1:]
	if end := c.ends[to]; end != nil {
		if _, ended := m.(fin); ended {
			c.ends[to] = nil
			c.forget(to)
			end.closed()
		} else {
			end.received(m)
		}
	}
	if len(l.queue) == 0 {
		l.busy = false
		return
	}
	d := w.between(0, 20*time.Microsecond) // in one packet with the last one
	if w.chance(0.3) {
		d = w.delay()
	}
	w.after(c.procs[to], d, func() { c.pump(to) })
}

// close closes an end. What it sent before still arrives.
func (c *conn) close(end int) {
	if c.ends[end] == nil {
		return
	}
	c.ends[end] = nil
	c.forget(end)
	c.push(1-end, fin{})
}

// lost breaks the connection because the process at an end is gone.
func (c *conn) lost(end int) {
	c.ends[end] = nil
	c.push(1-end, fin{})
}

func (c *conn) forget(end int) {
	p := c.procs[end]
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == c })
}

// The outcomes of a call that has no answer.
type callError uint8

const (
	callTimeout callError = iota + 1
	callRefused
)

// call asks the process that listens at an address. serve runs there, and done gets its answer.
// done gets a callError if nothing listens, or if no answer came in time: then the question may
// still be on its way.
func (w *world) call(from *proc, addr string, timeout time.Duration, serve func(at *proc, reply func(any)), done func(any)) {
	open := true
	finish := func(answer any) {
		if open {
			open = false
			done(answer)
		}
	}
	w.after(from, timeout, func() { finish(callTimeout) })
	w.after(nil, w.delay(), func() {
		to := w.byAddr[addr]
		switch {
		case to == nil:
			w.after(from, w.delay(), func() { finish(callRefused) })
		case !w.reachable(from, to):
		default:
			w.after(to, w.delay(), func() {
				serve(to, func(answer any) {
					if w.reachable(from, to) && !w.chance(w.lossy) {
						w.after(from, w.delay(), func() { finish(answer) })
					}
				})
			})
		}
	})
}
