package netloop

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// maxEvents is how many events one iteration deals with. The system takes turns among the rest.
const maxEvents = 512

// turnLimit is after how long an iteration leaves the rest of its events to the next one.
// Hundreds of connections with large requests would hold up everybody's replies, and the
// loop's owner would take it for dead.
const turnLimit = 5 * time.Millisecond

// Loop is one thread with its poller and its connections. Its methods may be
// called only on that thread (from a handler, or a function given to Post) unless they
// say otherwise.
type Loop struct {
	index int
	cfg   Config
	log   *slog.Logger

	poller poller

	// now is the group's monotonic clock, unixMilli its time; both are read once an
	// iteration.
	now       time.Duration
	unixMilli int64
	clock     *clock

	conns     []*Conn     // by descriptor; nil where the descriptor is not a conn of this loop
	listeners []*Listener // by number, see listenerTag; nil where closed
	lastGen   int32
	events    []event
	backlog   []event // what the last iteration had no time for
	scratch   []byte  // input is read here first; given to handlers, valid during one OnData
	pool      pool
	account   *Account // of conns that have no other

	// Work for the rest of an iteration. A conn is on each of these at most once (its
	// flags say so); one that closes stays on them, and is passed over.
	woken         []*Conn
	dirtyFlushers []*Conn
	dirtyConns    []*Conn
	rearm         []*Conn
	closing       []*Conn
	spareWoken    []*Conn // empty: takes the place of woken while that is worked through
	spareFuncs    []func()

	blocked   []*Conn // those whose socket takes no more output
	inserting int     // conns with inserts
	streaming int     // conns that said so, see Conn.Stream
	leaving   []leaver
	dials     map[*dial]struct{}
	timers    timerHeap
	hooks     []func()
	stalls    []stallHook
	gap       time.Duration // between the starts of the last two iterations
	stats     LoopStats
	idle      bool // the last wait brought nothing
	rawOnly   bool // tests: never wait by a blocking call
	stop      bool

	_         [64]byte // other threads write below: not into the cache line of the fields above
	mail      mailbox
	load      atomic.Int64 // conns given to this loop, also those still on their way
	lastStall atomic.Int64
}

// wakeTag and listenerTag stand in the place of a descriptor in events of what is not a conn.
const wakeTag = -1

func listenerTag(number int) int32 { return -2 - int32(number) }

func newLoop(index int, cfg Config, clock *clock) (*Loop, error) {
	l := &Loop{
		index: index, cfg: cfg, log: cfg.Logger, clock: clock,
		events:  make([]event, maxEvents),
		scratch: make([]byte, scratchSize),
		dials:   make(map[*dial]struct{}),
		account: NewAccount(nil, 0),
	}
	var err error
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
	l.setNow(clock.now())
	l.Every(min(cfg.Stall/4, time.Second), l.closeStalled)
	return l, nil
}

// Index returns the loop's place in Group.Loops.
func (l *Loop) Index() int { return l.index }

// Now returns the time since the group was made, monotonic, as read at the start of the
// iteration.
func (l *Loop) Now() time.Duration { return l.now }

// Clock reads the clock: Now as of this moment.
func (l *Loop) Clock() time.Duration { return l.clock.now() }

// UnixMilli returns the time in unix milliseconds as of Now. It never steps, and may be
// off by what the system's clock was at the start; then it follows that slowly.
func (l *Loop) UnixMilli() int64 { return l.unixMilli }

func (l *Loop) setNow(now time.Duration) {
	l.now = now
	l.unixMilli = max(l.unixMilli, l.clock.unixMilli(now))
}

// Post has f run on the loop, from any goroutine, in the order of posting. Everything
// posted before Group.Close is run; later it is dropped. The queue is not bounded:
// whoever posts must bound what it has posted and not yet seen done.
func (l *Loop) Post(f func()) { l.mail.post(f) }

// OnIterationEnd has f run in every iteration, when all input and posted functions were
// dealt with and nothing of this iteration's output is written. Keep hooks few and
// quick.
func (l *Loop) OnIterationEnd(f func()) { l.hooks = append(l.hooks, f) }

// run is the loop's thread.
func (l *Loop) run() {
	runtime.LockOSThread()
	for !l.stop {
		n := l.wait()
		l.iterate(l.events[:n])
	}
	l.shutdown()
}

// iterate does one round. The order is that of a request's way through: everything is
// read before anything is written, so that what many connections cause is sent in one
// write each.
func (l *Loop) iterate(events []event) {
	l.tellStall()
	for i := range events {
		if i%4 == 3 && l.clock.now()-l.now > turnLimit {
			l.backlog = append(l.backlog, events[i:]...)
			break
		}
		l.dispatch(&events[i])
	}
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

// dispatch handles one event. The system returned it before this iteration began: the conn may have
// closed since, and its descriptor may already be another conn's, which the generation shows.
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
		if hangup || ev.has(readable) {
			c.receive(hangup)
		}
	case hangup:
		// Nobody reads, so the error would be reported for ever. Both directions are
		// gone: nothing is lost.
		c.Close(c.socketError())
	}
}

func (l *Loop) runPosted() {
	if !l.mail.pending.Load() {
		return
	}
	funcs := l.mail.take(l.spareFuncs)
	l.stats.Posted += uint64(len(funcs))
	for _, f := range funcs {
		l.call("posted function", f)
	}
	clear(funcs)
	l.spareFuncs = funcs[:0]
}

// runWoken offers kept input again. A handler that calls Wake meanwhile is called in
// the next iteration: the others come first.
func (l *Loop) runWoken() {
	list := l.woken
	l.woken = l.spareWoken
	for _, c := range list {
		if c.woken {
			c.woken = false
			c.offerKept()
		}
	}
	l.spareWoken = emptied(list)
}

// flushAll flushes the conns of list. What is marked dirty meanwhile waits for the next
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

// reap calls OnClose for every conn that closed in this iteration, also those that
// another's OnClose closes.
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

// rearmAll tells the system what changed.
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

// emptied returns list without its elements, and without keeping them from the garbage
// collector.
func emptied(list []*Conn) []*Conn {
	clear(list)
	return list[:0]
}

// call runs f; a panic is logged and counted.
func (l *Loop) call(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			l.logPanic(what, r)
		}
	}()
	f()
}

// recoverConn is deferred around every call of a handler: its panic closes that conn
// only.
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
