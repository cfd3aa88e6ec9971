package proxy

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/hoard"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	keepScratch = 64 << 10
	// idlePeriod is how often clients are looked for that have been silent for too long.
	idlePeriod = time.Second
)

// worker is what one loop owns. All of it is used on that loop only.
type worker struct {
	proxy *Proxy
	loop  *netloop.Loop
	feed  *monitor.Feed

	order  *order.Machine
	acting bool // the Machine's actions are being done

	settings uint64 // the version of those of the cluster

	account *netloop.Account // of clients: their buffers and early replies
	pending *netloop.Account // of pipes; pipeRoom bounds these, here they are only counted

	clients    []*client
	roster     session.Roster // of these
	listening  *listening
	tracking   trackingHere
	copyWaits  copyWaits
	moving     *moving        // not nil: sessions are to move
	retryTimer *netloop.Timer // set by order.Arm; nil: there was none
	idleTimer  *netloop.Timer
	watchTimer *netloop.Timer // set by order.Watch; nil: never
	pause      session.Pauser
	memory     hoard.Scarcity

	scratch  []byte // for replies that are put together; valid until the next use
	keys     []int
	parts    []byte   // for the requests of parts; valid until the next use
	words    [][]byte // for the arguments of a chunk; valid until the next use
	script   scriptRoom
	turns    turns
	turn     netloop.Turn // of the client whose input is read
	others   others
	pace     pace // of long commands
	widePace pace // of commands over the whole cluster
	strained func() bool
	pieces   []*piece // free ones
	warnings warnings
	popped   uint64 // the token for what the reply at hand has popped; 0: none
	stats    Stats
	// untilSample is how many commands come before the next one is timed.
	untilSample int
}

func newWorker(p *Proxy, l *netloop.Loop) *worker {
	w := &worker{
		proxy: p,
		loop:  l,
		feed:  p.monitors.Feed(l),
		order: order.New(order.Config{
			Patience:    p.cfg.Patience,
			SilentTicks: max(1, int(p.cfg.Silence/order.SilenceTick)),
			Room:        &p.pipeRoom,
		}),
		account:  netloop.NewAccount(p.cfg.Buffers, 0),
		pending:  netloop.NewAccount(p.cfg.PipeBudget, 0),
		warnings: newWarnings(),
		pace:     pace{loop: l},
		widePace: pace{loop: l},
		strained: p.cfg.Group.IsStrained,
	}
	w.listening = newListening(w)
	w.copyWaits.w = w
	w.tracking.table.Post = l.Post
	if p.cfg.Buffers != nil {
		w.tracking.table.Heap = p.cfg.Buffers
	}
	w.pause = session.Pauser{
		Server: p.server, Clients: &w.roster, Now: l.Now,
		After: func(d time.Duration, f func()) func() { return l.After(d, f).Stop }, Post: l.Post,
	}
	w.idleTimer = l.Every(idlePeriod, w.closeSilent)
	l.OnIterationEnd(w.iterationEnd)
	return w
}

// act carries out the Machine's actions. Actions that follow from them run after those that are
// already due.
func (w *worker) act() {
	if w.acting {
		return
	}
	w.acting = true
	for w.order.HasActions() {
		for _, a := range w.order.Actions() {
			w.do(&a)
		}
	}
	w.acting = false
}

func (w *worker) do(a *order.Action) {
	switch a.Kind {
	case order.Dial:
		w.shellOf(a.Pipe).dial()
	case order.Close:
		w.shellOf(a.Pipe).close(a)
	case order.Write:
		w.write(a.Pipe)
	case order.Fail:
		w.failed(a)
	case order.Undone:
		a.Request.Part.(order.Asker).Undone()
	case order.Proceed:
		if s, ok := a.Session.Owner.(*client); ok {
			s.progress()
		}
	case order.WaitParked:
		if s := a.Session.Owner.(*client); s.blocking { // otherwise it is being submitted, see forwardBlocking
			s.blocked()
		}
	case order.Arm:
		if w.retryTimer != nil {
			w.retryTimer.Stop()
		}
		w.retryTimer = w.loop.After(a.After, func() {
			w.order.RetryTimer(w.loop.Now())
			w.act()
		})
	case order.Post:
		w.loop.Post(func() {
			w.order.RetryTurn(w.loop.Now())
			w.act()
		})
	case order.Watch:
		w.watchTimer = w.loop.Every(order.SilenceTick, w.tick)
	case order.Refresh:
		if moved := w.proxy.cfg.Moved; moved != nil {
			moved()
		}
	case order.ClaimPop, order.ClaimWait, order.ClaimEnd, order.ClaimArm:
		a.Session.Owner.(*client).claimed(a)
	}
}

// failed answers a request without the reply of a node. A reply to a disconnected client does not count as lost.
func (w *worker) failed(a *order.Action) {
	r := &a.Request
	s, ofClient := r.Session.Owner.(*client)
	reply := errParkedLong
	switch a.Outcome {
	case order.TooLate:
	case order.WaitOver:
		reply = s.waitOver(r.Part != nil)
	case order.NoMemory:
		reply = errNotParked
	case order.Unknown:
		reply = errUnknown
		if ofClient && !s.isClosed() {
			w.stats.LostReplies++
		}
	}
	if r.Part != nil {
		r.Part.Done(r.ID, reply)
		return
	}
	s.reply(r.Seq, reply)
}

// install makes the worker route by a newer table.
func (w *worker) install(t *ring.Table) {
	if old := w.order.Table(); old == nil || old.Owner != t.Owner {
		defer w.forgetAll() // a node that was cut off may tell nobody what is gone
	}
	first := w.order.Table() == nil
	w.order.Install(t, w.loop.Now())
	w.act()
	w.listening.install(t)
	if first {
		w.tableCame()
	}
}

// setAlive closes the pipes to nodes that were declared dead.
func (w *worker) setAlive(alive map[string]bool) {
	w.order.SetAlive(alive, w.loop.Now())
	w.act()
}

// tick looks for silent nodes while something is outstanding.
func (w *worker) tick() {
	if !w.order.Tick(w.loop.Now()) {
		w.watchTimer.Stop()
	}
	w.act()
}

// iterationEnd runs after all input of an iteration was handled and before anything is written.
func (w *worker) iterationEnd() {
	if w.order.HasMoves() {
		w.order.FollowMoves(w.loop.Now())
		w.act()
	}
}

// add takes a new session.
func (w *worker) add(s *client) {
	s.index = len(w.clients)
	w.clients = append(w.clients, s)
	w.roster.Add(s.state)
	w.proxy.server.Directory().Add(s.state.ID, s)
	w.stats.Accepted++
}

// forget drops a session whose connection is gone.
func (w *worker) forget(s *client, err error) {
	last := len(w.clients) - 1
	w.clients[s.index] = w.clients[last]
	w.clients[s.index].index = s.index
	w.clients[last] = nil
	w.clients = w.clients[:last]
	w.roster.Remove(s.state)
	w.proxy.clients.Add(-1)
	w.proxy.server.Directory().Remove(s.state.ID)
	if s.state.Monitor {
		w.feed.Remove(s.conn)
	}
	switch {
	case errors.Is(err, netloop.ErrSlowReader), errors.Is(err, errSlowSubscriber):
		w.stats.SlowReaders++
		w.warn(&w.warnings.slow, "client", s.state.Addr)
	case errors.Is(err, netloop.ErrNoMemory):
		w.stats.Starved++
		w.proxy.starved.Add(1)
		w.warn(&w.warnings.starved, "client", s.state.Addr)
	case errors.Is(err, errCutOff):
		w.warn(&w.warnings.cutOff, "client", s.state.Addr, "err", err)
	case errors.Is(err, errTooEarly):
		w.stats.EarlyClosed++
		w.warn(&w.warnings.early, "client", s.state.Addr)
	}
}

// drain ends every session: no more commands are taken, what was taken is answered, then the
// connection closes.
func (w *worker) drain() {
	w.moving = nil
	for _, s := range w.clients {
		if s.state.Waiting != nil {
			s.Wake(nil)
		}
		s.closeWhenDone()
	}
}

// closeSilent closes the clients that were silent for longer than CONFIG's timeout, but none that
// waits, monitors or subscribes. While memory is scarce, it closes those whose long requests hardly come.
func (w *worker) closeSilent() {
	w.listening.keepHeard()
	w.keepTracked()
	w.proxy.server.TurnOutLate()
	limit, full, now := w.proxy.settings.IdleTimeout(), w.proxy.isOverfull(), w.loop.Now()
	scarce := w.memory.Look(w.proxy.starved.Load(), now)
	for _, s := range w.clients {
		if s.stalls() && scarce {
			s.conn.Close(hoard.ErrStalled)
			continue
		}
		if s.head < s.tail || s.state.Blocked || s.state.Monitor || s.state.Subscribes() || s.conn.Queued() > 0 {
			continue
		}
		if limit > 0 && now-s.state.LastUsed > limit || !s.state.KeepsSlot(full, now) {
			s.conn.Close(nil)
		}
	}
}

// stalls looks at how fast a long request comes, and reports whether it hardly does.
func (s *client) stalls() bool {
	if s.conn.Unfinished() < hoard.MinRate {
		s.coming = hoard.Pace{}
		return false
	}
	received, _ := s.conn.Traffic()
	return s.coming.Crawls(int64(received))
}

// stop closes everything that the worker owns. Its hooks stay with the loop and find nothing to do.
func (w *worker) stop() {
	w.idleTimer.Stop()
	w.pause.Stop()
	for _, s := range w.clients {
		s.conn.Close(nil)
	}
	w.order.Stop(w.loop.Now())
	w.act()
	if w.watchTimer != nil {
		w.watchTimer.Stop()
	}
}

// keepScratch keeps the scratch buffer that b was made in, unless it has grown large.
func (w *worker) keepScratch(b []byte) {
	if cap(b) <= keepScratch {
		w.scratch = b[:0]
	}
}
