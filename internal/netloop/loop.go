package netloop

import (
	"container/list"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/boottime"
)

// maxEvents bounds the events that one iteration gets from the system, which returns the others in
// turn.
const maxEvents = 512

// turnLimit is the time after which an iteration leaves its remaining events to the next one.
// Otherwise hundreds of connections with large requests would delay everybody's replies, and
// watchers would take the loop for dead.
const turnLimit = 5 * time.Millisecond

// Loop is one thread with its poller and its connections. Only that thread may call its methods
// (from a handler, or a function given to Post) unless they say otherwise.
type Loop struct {
	index int
	group *Group
	cfg   Config
	log   *slog.Logger

	poller poller

	// now is the group's monotonic clock, unixMilli its time; both are read once an iteration.
	now       time.Duration
	unixMilli int64
	clock     *clock
	steps     uint64        // of the clock, as far as unixMilli has followed
	compared  time.Duration // when the loop compared its clock with the system's
	wall      int64         // the system's time then, in Unix nanoseconds
	suspended time.Duration // for how long the machine was suspended before then, and some constant

	conns     []*Conn     // by descriptor; nil where the descriptor is no conn of this loop
	listeners []*Listener // by number, see listenerTag; nil where closed
	lastGen   int32
	events    []event
	backlog   []event // events that the last iteration had no time for
	scratch   []byte  // input is read here first; handlers see it during one OnData
	pool      pool
	account   *Account   // of the conns without an account of their own
	accounts  []*Account // all others that a conn has had
	refused   bool       // in this iteration, a budget had no chunk for what is not needed yet
	full      bool       // in this iteration, early flushes did not help

	// Work for the rest of an iteration. A conn is on each of these lists at most once, as its
	// flags say. A conn that closes stays on them and is skipped.
	woken         []*Conn
	dirtyFlushers []*Conn
	dirtyConns    []*Conn
	rearm         []*Conn
	closing       []*Conn
	spareWoken    []*Conn // empty: replaces woken while runWoken works through that
	spareFuncs    []func()

	newcomers list.List // of *Conn: new conns with input that wait for their turn, the first to wait first
	blocked   []*Conn   // conns whose socket accepts no more output
	inserting int       // number of conns with inserts
	streaming int       // number of conns that stream, see Conn.Stream
	leaving   []leaver
	dials     map[*dial]struct{}
	timers    timerHeap
	hooks     []func()
	stalls    []stallHook
	gap       time.Duration // between the starts of the last two iterations
	stats     LoopStats
	polling   busyPoll
	idle      bool // events do not follow each other soon: see poll
	rawOnly   bool // tests: always wait by the raw call
	stop      bool

	// Written by the loop only, and read by a Gauge now and then.
	busy       atomic.Int64 // as LoopStats.Busy
	background atomic.Int64 // see Background
	thread     atomic.Int64 // the system's number of the loop's present thread

	_         [64]byte // other threads write below: keep that off the cache line of the fields above
	mail      mailbox
	load      atomic.Int64 // conns given to this loop, including those on their way
	lastStall atomic.Int64
}

// wakeTag and listenerTag take the place of a descriptor in events that are not a conn's.
const wakeTag = -1

func listenerTag(number int) int32 { return -2 - int32(number) }

func newLoop(index int, g *Group, cfg Config) (*Loop, error) {
	clock := g.clock
	l := &Loop{
		index: index, group: g, cfg: cfg, log: cfg.Logger, clock: clock,
		events:  make([]event, maxEvents),
		scratch: make([]byte, scratchSize),
		dials:   make(map[*dial]struct{}),
		account: NewAccount(nil, 0),
	}
	var err error
	l.pool.keep = cfg.Keep
	if err = l.pool.open(); err != nil {
		return nil, err
	}
	if err = l.poller.open(); err != nil {
		l.pool.close()
		return nil, err
	}
	if err := l.mail.waker.open(); err != nil {
		l.poller.close()
		l.pool.close()
		return nil, err
	}
	if err := l.poller.watchWaker(&l.mail.waker); err != nil {
		l.mail.close()
		l.poller.close()
		l.pool.close()
		return nil, err
	}
	now, wall := clock.read()
	l.compared, l.wall, l.suspended = now, wall, boottime.Now()-clock.now()
	l.setNow(now)
	l.Every(min(cfg.Stall/4, time.Second), l.closeStalled)
	return l, nil
}

// Index returns the loop's index in Group.Loops.
func (l *Loop) Index() int { return l.index }

// Now returns the monotonic time since the group was made, as read at the start of the iteration.
func (l *Loop) Now() time.Duration { return l.now }

// Clock reads the clock: it is Now as of this moment.
func (l *Loop) Clock() time.Duration { return l.clock.now() }

// UnixMilli returns the time of Now in Unix milliseconds. It never steps back, unless the system's
// clock was set and nobody minds (see Group.OnClockStep). Otherwise it may be wrong by as much as the
// system's clock was at the start, and follows that clock slowly.
func (l *Loop) UnixMilli() int64 { return l.unixMilli }

func (l *Loop) setNow(now time.Duration) {
	l.now = now
	if steps := l.clock.steps.Load(); steps != l.steps {
		l.steps, l.unixMilli = steps, 0
	}
	l.unixMilli = max(l.unixMilli, l.clock.unixMilli(now))
}

// Post runs f on the loop, in the order of posting. Any goroutine may call it. Everything posted
// before Group.Close runs; later functions are dropped. The queue is not bounded: callers must
// bound what they have posted and not yet seen done.
func (l *Loop) Post(f func()) { l.mail.post(f) }

// OnIterationEnd runs f in every iteration, after all input and posted functions have been handled
// and before this iteration's output is written, but for what is flushed early. Keep hooks few and quick.
func (l *Loop) OnIterationEnd(f func()) { l.hooks = append(l.hooks, f) }

// run is the loop's goroutine.
func (l *Loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // or the thread would end, and with it processes that it has started
	l.thread.Store(int64(threadID()))
	for !l.stop {
		n := l.wait()
		l.iterate(l.events[:n])
	}
	l.shutdown()
}

// iterate does one round, in the order of a request's way: it reads everything before it writes
// anything, so that the output that many connections cause leaves in one write each. Only makeRoom writes
// earlier.
func (l *Loop) iterate(events []event) {
	l.refused, l.full = false, false
	l.tellStall()
	for i := range events {
		if i%turnStep == turnStep-1 {
			if l.clock.now()-l.now > turnLimit {
				l.backlog = append(l.backlog, events[i:]...)
				break
			}
			l.makeRoom()
		}
		l.dispatch(&events[i])
	}
	l.readNewcomers()
	l.runPosted()
	l.runTimers()
	l.runWoken()
	for _, f := range l.hooks {
		l.call("hook", f)
	}
	flushAll(&l.dirtyFlushers)
	flushAll(&l.dirtyConns)
	l.leaveSome()
	l.reap()
	l.rearmAll()
}

// turnStep is the number of conns that have their turn until the loop looks how much time and memory is
// left for the others.
const turnStep = 4

// makeRoom flushes conns if their output has taken nearly all memory that there is for buffers: the conns
// that follow in this iteration need some. If that does not help, the iteration does not try again.
func (l *Loop) makeRoom() {
	for _, a := range l.accounts {
		switch {
		case l.full || a.hasRoom():
		case !l.refused && a.drawAhead():
		default:
			l.refused = true
			used := a.used
			l.full = l.flushEarly() > 0 && a.used >= used
		}
	}
}

// flushEarly flushes the conns whose turn does not depend on how many there are in an iteration, and returns
// how many these were.
func (l *Loop) flushEarly() (flushed int) {
	n, kept := len(l.dirtyConns), 0
	for i := range n {
		if c := l.dirtyConns[i]; len(c.inserts) > 0 {
			l.dirtyConns[kept] = c
			kept++
		} else {
			c.flush()
		}
	}
	left := kept + copy(l.dirtyConns[kept:], l.dirtyConns[n:])
	clear(l.dirtyConns[left:])
	l.dirtyConns = l.dirtyConns[:left]
	return n - kept
}

// dispatch handles one event. The system returned it before this iteration began: the conn may have
// closed since, and its descriptor may already belong to another conn, which the generation shows.
func (l *Loop) dispatch(ev *event) {
	tag := ev.tag()
	if tag < 0 {
		if tag != wakeTag {
			l.accept(int(-2 - tag))
		}
		return
	}
	c := l.conns[tag]
	if c == nil || c.gen != ev.generation() {
		return
	}
	if c.dial != nil {
		c.dial.finish()
		return
	}
	if ev.has(writable) {
		c.writable()
	}
	hangup := ev.has(hungUp)
	switch {
	case c.stops == 0 || c.lingering:
		if (hangup || ev.has(readable)) && (c.newcomer == nil || hangup || c.lingering || !l.waitsAsNew(c)) {
			c.receive(hangup)
		}
	case hangup:
		// Reading is stopped, so the system would report the error for ever. Both directions are
		// closed: nothing is lost.
		c.Close(c.socketError())
	case ev.has(peerLeft):
		c.peerHasLeft()
	}
}

func (l *Loop) runPosted() {
	if !l.mail.pending.Load() {
		return
	}
	funcs := l.mail.take(l.spareFuncs)
	l.stats.Posted += uint64(len(funcs))
	for i, f := range funcs {
		if i%turnStep == 0 {
			l.makeRoom()
		}
		l.call("posted function", f)
	}
	clear(funcs)
	l.spareFuncs = funcs[:0]
}

// runWoken offers kept input again. A conn that is woken meanwhile has its turn in the next
// iteration, after the others.
func (l *Loop) runWoken() {
	list := l.woken
	l.woken = l.spareWoken
	for i, c := range list {
		if i%turnStep == turnStep-1 {
			l.makeRoom()
		}
		if c.woken {
			c.woken = false
			c.offerKept()
		}
	}
	l.spareWoken = emptied(list)
}

// flushAll flushes the conns of list. A conn that is marked dirty meanwhile waits for the next
// iteration: handlers that keep marking each other cannot keep the loop from reading.
func flushAll(list *[]*Conn) {
	n := len(*list)
	for i := range n {
		(*list)[i].flush()
	}
	left := copy(*list, (*list)[n:])
	clear((*list)[left:])
	*list = (*list)[:left]
}

// reap calls OnClose for every conn that closed in this iteration, including those that another
// conn's OnClose closes.
func (l *Loop) reap() {
	for i := 0; i < len(l.closing); i++ {
		c := l.closing[i]
		c.settleAccount()
		l.callClose(c)
	}
	l.closing = emptied(l.closing)
}

func (l *Loop) callClose(c *Conn) {
	if c.handler == nil {
		return
	}
	defer l.recoverConn(c)
	c.handler.OnClose(c, c.err)
}

// rearmAll tells the system which interests have changed.
func (l *Loop) rearmAll() {
	for _, c := range l.rearm {
		c.rearming = false
		events := c.interest()
		if c.closed || events == c.armed {
			continue
		}
		c.armed = events
		if err := l.poller.change(c.fd, int32(c.fd), c.gen, events); err != nil {
			c.Close(err)
		}
	}
	l.rearm = emptied(l.rearm)
}

// emptied returns list without its elements, which it releases to the garbage collector.
func emptied(list []*Conn) []*Conn {
	clear(list)
	return list[:0]
}

// call runs f; it logs and counts a panic.
func (l *Loop) call(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			l.logPanic(what, r)
		}
	}()
	f()
}

// recoverConn is deferred around every call of a handler: the handler's panic closes its conn only.
func (l *Loop) recoverConn(c *Conn) {
	if r := recover(); r != nil {
		l.logPanic("handler", r)
		c.Close(fmt.Errorf("handler panicked: %v", r))
	}
}

func (l *Loop) logPanic(what string, r any) {
	l.stats.Panics++
	l.log.Error("panic on event loop", "in", what, "loop", l.index,
		"panic", r, "stack", string(debug.Stack()))
}
