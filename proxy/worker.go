package proxy

import (
	"errors"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	silenceTick = 50 * time.Millisecond
	keepScratch = 64 << 10
)

// worker is what one loop owns. All of it is used on that loop only.
type worker struct {
	proxy *Proxy
	loop  *netloop.Loop
	feed  *monitor.Feed

	table  *ring.Table
	owner  [ring.Partitions]*peer // by the table, and by -MOVED replies since; nil: no owner, or no table yet
	route  uint64                 // counts the changes of owner
	peers  map[string]*peer       // the table's nodes by ring.Member.Name
	byAddr map[string]*peer
	// leaving are nodes of older tables that still owe answers.
	leaving []*peer
	tableAt time.Duration // when the table came

	account *netloop.Account // of clients: their buffers and early replies
	pending *netloop.Account // of pipes; each bounds its own, so these are only counted

	clients     []*client
	holding     []*client      // with held requests
	retryTimer  *netloop.Timer // when those are tried again; nil: not armed
	retryPause  time.Duration  // before the next time
	redirected  []*client      // with a -MOVED to be followed at the end of this iteration
	generation  uint64
	silentLimit int // ticks
	timer       *netloop.Timer
	pauseTimer  *netloop.Timer // ends the last CLIENT PAUSE; nil: there was none

	scratch  []byte // for replies that are put together; valid until the next use
	keys     []int
	pieces   []*piece // free ones
	warnings warnings
	stats    Stats
	// untilSample is how many commands come before the next one is timed.
	untilSample int
}

// peer is a node as one worker sees it.
type peer struct {
	w      *worker
	member ring.Member
	owned  ring.PartitionSet // by the table
	gone   bool              // declared dead, or left: its pipes stay closed unless it turns out to be alive
	goneAt time.Duration
	pipes  [member.Kinds][2]*pipe

	fetches int // large replies that it keeps for us
}

func newWorker(p *Proxy, l *netloop.Loop) *worker {
	w := &worker{
		proxy:       p,
		loop:        l,
		feed:        p.monitors.Feed(l),
		peers:       make(map[string]*peer),
		byAddr:      make(map[string]*peer),
		silentLimit: max(1, int(p.cfg.Silence/silenceTick)),
		account:     netloop.NewAccount(p.cfg.Buffers, 0),
		pending:     netloop.NewAccount(nil, 0),
		warnings:    newWarnings(),
		retryPause:  retryFirst,
	}
	w.timer = l.Every(silenceTick, w.tick)
	l.OnIterationEnd(w.iterationEnd)
	return w
}

// pipe is the peer's pipe for a lane, made when first asked for. It may be closed.
func (n *peer) pipe(l lane) *pipe {
	at := &n.pipes[l.kind][l.version-resp.RESP2]
	if *at == nil {
		*at = &pipe{w: n.w, peer: n, lane: l}
	}
	return *at
}

// each calls f with every pipe that was made.
func (n *peer) each(f func(*pipe)) {
	for k := range n.pipes {
		for _, p := range n.pipes[k] {
			if p != nil {
				f(p)
			}
		}
	}
}

// failingSince is since when the node cannot be reached, as far as its pipes know: where one cannot be opened, the others are as
// little use, though they may not have noticed yet. 0: it can, or nobody has tried.
func (n *peer) failingSince() (since time.Duration) {
	if n.gone {
		return n.goneAt
	}
	now := n.w.loop.Now()
	n.each(func(p *pipe) {
		if p.failing(now) && (since == 0 || p.failingSince < since) {
			since = p.failingSince
		}
	})
	return since
}

// inflight is the number of requests that its pipes have not answered, and of replies that were not fetched.
func (n *peer) inflight() (count int) {
	count = n.fetches
	n.each(func(p *pipe) { count += p.inflight.len() })
	return count
}

// drop closes a peer's pipes.
func (n *peer) drop() {
	n.gone, n.goneAt = true, n.w.loop.Now()
	n.each(func(p *pipe) { p.fail(errPeerGone) })
}

// install routes by a newer table.
func (w *worker) install(t *ring.Table) {
	if w.table != nil && !t.Newer(w.table) {
		return
	}
	w.table = t
	w.tableAt = w.loop.Now()
	old := w.peers
	w.peers = make(map[string]*peer, len(t.Nodes))
	w.byAddr = make(map[string]*peer, len(t.Nodes))
	nodes := make([]*peer, len(t.Nodes))
	for i, m := range t.Nodes {
		n := old[m.Name()]
		if n == nil {
			n = &peer{w: w, member: m}
		}
		delete(old, m.Name())
		n.owned = ring.PartitionSet{}
		w.peers[m.Name()], w.byAddr[m.Addr], nodes[i] = n, n, n
	}
	for p, i := range t.Owner {
		w.owner[p] = nil
		if int(i) < len(nodes) {
			w.owner[p] = nodes[i]
			nodes[i].owned.Add(uint16(p))
		}
	}
	w.route++
	for _, n := range old {
		w.leaving = append(w.leaving, n)
	}
	w.retryHeld()
}

// setAlive closes the pipes to nodes that were declared dead. They stay in the route until a table says otherwise.
func (w *worker) setAlive(alive map[string]bool) {
	for _, n := range w.leaving {
		if !alive[n.member.Name()] {
			n.drop()
		}
	}
	for name, n := range w.peers {
		switch {
		case !alive[name] && !n.gone:
			n.drop()
		case alive[name] && n.gone:
			n.gone = false // it was declared dead by mistake, and is back before any table dropped it
		}
	}
}

// tick looks for silent nodes.
func (w *worker) tick() {
	w.closeSilent()
	for _, n := range w.peers {
		n.each(func(p *pipe) { p.tick(w.silentLimit) })
	}
	w.leaving = slices.DeleteFunc(w.leaving, func(n *peer) bool {
		n.each(func(p *pipe) { p.tick(w.silentLimit) })
		if n.inflight() > 0 {
			return false
		}
		n.drop()
		return true
	})
}

// iterationEnd runs after all input of an iteration was handled and before anything is written.
func (w *worker) iterationEnd() {
	if len(w.redirected) > 0 {
		w.retryRedirected()
	}
}

// add takes a new session.
func (w *worker) add(s *client) {
	s.index = len(w.clients)
	w.clients = append(w.clients, s)
	w.stats.Accepted++
}

// forget drops a session whose connection is gone.
func (w *worker) forget(s *client, err error) {
	last := len(w.clients) - 1
	w.clients[s.index] = w.clients[last]
	w.clients[s.index].index = s.index
	w.clients[last] = nil
	w.clients = w.clients[:last]
	w.proxy.clients.Add(-1)
	if s.state.Monitor {
		w.feed.Remove(s.conn)
	}
	switch {
	case errors.Is(err, netloop.ErrSlowReader):
		w.stats.SlowReaders++
		w.warn(&w.warnings.slow, "client", s.state.Addr)
	case errors.Is(err, netloop.ErrNoMemory):
		w.stats.Starved++
		w.warn(&w.warnings.starved, "client", s.state.Addr)
	case errors.Is(err, errCutOff):
		w.warn(&w.warnings.cutOff, "client", s.state.Addr, "err", err)
	case errors.Is(err, errTooEarly):
		w.stats.EarlyClosed++
		w.warn(&w.warnings.early, "client", s.state.Addr)
	}
}

// drain ends every session: no more commands are taken, what was taken is answered, then the connection closes.
func (w *worker) drain() {
	for _, s := range w.clients {
		if s.state.Waiting != nil {
			s.wake(nil)
		}
		s.closeWhenDone()
	}
}

// closeSilent closes the clients that were silent for longer than CONFIG's timeout, but none that waits or monitors.
func (w *worker) closeSilent() {
	limit := w.proxy.settings.IdleTimeout().Milliseconds()
	if limit <= 0 {
		return
	}
	now := w.loop.UnixMilli()
	for _, s := range w.clients {
		if s.head == s.tail && !s.state.Blocked && !s.state.Monitor && s.conn.Queued() == 0 && now-s.state.LastMilli > limit {
			s.conn.Close(nil)
		}
	}
}

// stop closes everything that the worker owns. Its hooks stay with the loop and find nothing to do.
func (w *worker) stop() {
	w.timer.Stop()
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
	}
	for _, s := range w.clients {
		s.conn.Close(nil)
	}
	for _, n := range w.peers {
		n.drop()
	}
	for _, n := range w.leaving {
		n.drop()
	}
	w.peers, w.leaving, w.holding = nil, nil, nil
}

// keepScratch keeps the scratch buffer that b was made in, unless it has grown large.
func (w *worker) keepScratch(b []byte) {
	if cap(b) <= keepScratch {
		w.scratch = b[:0]
	}
}

// noteBroken logs and counts a pipe that failed. Of attempts in a row to open one, the first is logged.
func (w *worker) noteBroken(p *pipe, err error, wasOpen bool) {
	w.stats.PipesBroken++
	if (wasOpen || p.backoff == 0) && !p.peer.gone {
		w.warn(&w.warnings.broken, "node", p.peer.member.ID, "addr", p.peer.member.Addr,
			"kind", p.lane.kind.String(), "inflight", p.inflight.len(), "err", err)
	}
}
