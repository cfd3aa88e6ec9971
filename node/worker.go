package node

import (
	"cmp"
	"container/list"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/measure"
)

// worker is what a node keeps on one loop, to which it belongs.
type worker struct {
	exec.Worker
	node   *Node
	loop   *netloop.Loop
	conns  map[*conn]struct{}
	roster session.Roster // of the clients among them
	rate   measure.Rate
	times  [command.NumIDs]*figures.Durations // of the commands that were timed
	base   *statsBase                         // nil: CONFIG RESETSTAT was never called
	feed   *monitor.Feed
	// untilSample counts the inputs until the next one that is sampled.
	untilSample int
	hot         *measure.HotSketch
	request     request
	clients     *netloop.Account // of their connections
	members     *netloop.Account // of theirs, and of those on probation for want of memory
	ahead       lookahead
	timers      []*netloop.Timer
	pause       session.Pauser
	scarcity    scarcity
	turns       turns
	looksUntil  time.Duration               // when the last client that rests behind a look goes on
	holdQueues  map[*engine.Hold]*list.List // of the connections that wait for a hold
	moving      moving
	blocked     allBlocked
	trier       *trier     // nil: no script was tried lately
	spareRun    *scriptRun // nil, or one that is used no more
	tracking    trackingHere
	trackedKeys []int // scratch

	board    pubsub.Board      // which connections are shown which messages
	inbox    *broker.Receiver  // the messages for them
	taken    []*broker.Message // from the inbox
	messages []*broker.Message // of these, those that are shown next
	shown    []*broker.Message // that are shown now
	leaving  []*subscriber     // those who have gone, whose subscriptions end in turns
	moved    []*conn           // those whose channels may have moved, see endTopics
	outed    int               // of these, those closed so far: one line of the log tells of all
}

func newWorker(n *Node, l *netloop.Loop) *worker {
	w := &worker{
		node: n, loop: l, feed: n.monitors.Feed(l), conns: make(map[*conn]struct{}),
		holdQueues: make(map[*engine.Hold]*list.List), hot: measure.NewHotSketch(l.Clock()),
	}
	w.feed.Changed = func() { w.untilSample = 0 }
	w.turns.loop = l
	w.Turn = w.turns.take
	w.inbox = broker.NewReceiver(inboxLimit, func() { l.Post(w.showMessages) })
	floor := connFloor(n.cfg.Memory, len(n.cfg.Group.Loops()))
	w.clients = netloop.NewAccount(connBudget{n}, floor)
	w.members = netloop.NewAccount(memberBudget{n}, floor/memberFloor)
	w.request.node, w.request.worker = n, w
	n.equip(&w.request.Request, &w.Worker)
	w.request.Host, w.request.Keyspace = &w.request, &w.request
	w.blocked.worker, w.moving.worker = w, w
	w.tracking.table.Heap, w.tracking.table.Post = heapBudget{n}, l.Post
	w.ahead.args = make([][]byte, 0, exec.MaxAhead*resp.MaxSmall)
	return w
}

// equip sets what a request knows of the node.
func (n *Node) equip(r *exec.Request, w *exec.Worker) {
	r.Engine, r.Worker, r.Types, r.Heap = n.engine, w, types, heapBudget{n}
	r.DumpForValkey = n.cfg.DumpForValkey
	r.Databases = cmp.Or(n.cfg.Databases, config.DefaultDatabases)
	r.Encodings = func() exec.Encodings { return encodingsOf(n.settings) }
	r.EvictsByFrequency = func() bool { return n.settings.EvictsByFrequency() }
	r.Level = func() uint8 { return clusterLevel(n.view.Load().Table) }
	r.Notices = exec.Notices{Events: &n.events.classes, Announce: n.events.note}
}

// The timers of a worker.
const (
	idlePeriod = time.Second
)

func (w *worker) startTimers() {
	w.pause = session.Pauser{
		Server: w.node.session, Clients: &w.roster, Now: w.loop.Now,
		After: func(d time.Duration, f func()) func() { return w.loop.After(d, f).Stop }, Post: w.loop.Post,
	}
	if w.node.ctx.Err() != nil {
		return
	}
	w.timers = []*netloop.Timer{
		w.loop.Every(measure.SamplePeriod, w.sample),
		w.loop.Every(idlePeriod, w.closeSilent),
	}
}

// add begins a connection, which is a client's until it says otherwise, and has no place yet.
func (w *worker) add(c *netloop.Conn) *conn {
	cn := &conn{Conn: exec.Conn{Socket: c}, node: w.node, worker: w}
	cn.State = w.node.session.NewState(c.RemoteAddr(), c.LocalAddr(), w.loop.Now())
	cn.State.FD, cn.State.Loop, cn.State.Client = c.FD(), w.loop.Index(), cn
	c.SetOther(connMemory)
	w.conns[cn] = struct{}{}
	w.roster.Add(cn.State)
	w.Count.Connections++
	w.node.clients.Add(1)
	w.node.session.Directory().Add(cn.State.ID, cn)
	return cn
}

// remove forgets a connection.
func (w *worker) remove(cn *conn) {
	delete(w.conns, cn)
	w.roster.Remove(cn.State)
	w.node.session.Directory().Remove(cn.State.ID)
	if cn.pipe == nil {
		w.node.clients.Add(-1)
	}
}

// pipes returns the number of connections that are proxies' pipes.
func (w *worker) pipes() (count int) {
	for cn := range w.conns {
		if cn.pipe != nil {
			count++
		}
	}
	return count
}

// closeIdle closes the connections that are between two requests, or wait before one, for Drain. Who waits for brokers
// to know of its subscriptions loses these with its connection, and a broker that drains, too, may never answer.
func (w *worker) closeIdle() {
	for cn := range w.conns {
		if cn.State.Waiting != nil {
			cn.Wake(nil)
		}
		idle := !cn.Answering && cn.unread == 0 && cn.Upload == nil && cn.owesNothing()
		asks := cn.topics != nil && cn.topics.asks
		if (idle || cn.State.Blocked || asks) && !cn.Closing {
			cn.Closing = true
			cn.Socket.CloseAfterFlush()
		}
	}
}

// closeSilent closes clients that have been silent for longer than CONFIG's timeout, and
// connections that stop in the middle of a large value. Pipes and members are silent when they have
// nothing to do, and so are clients that run MONITOR or subscribe.
func (w *worker) closeSilent() {
	w.node.session.TurnOutLate()
	w.restTrier()
	limit, now := w.node.settings.IdleTimeout(), w.loop.Now()
	full := w.node.isFull(1)
	w.scarcity.begin(w.node.engine.Refused()+w.node.starved.Load(), now)
	for cn := range w.conns {
		silence := now - cn.State.LastUsed
		client := cn.pipe == nil && !cn.peer && !cn.Answering && !cn.State.Monitor && !cn.State.Subscribes()
		if cn.Upload != nil && !cn.Upload.Paused && silence > uploadPatience {
			cn.Socket.Close(errUploadStalled)
		}
		w.scarcity.look(cn)
		if client && (limit > 0 && silence > limit || cn.probation && silence > idlePeriod ||
			!cn.State.KeepsSlot(full, now)) {
			cn.Socket.Close(nil)
		}
	}
	w.scarcity.end(w)
}

// stop closes all connections, for Close.
func (w *worker) stop() {
	for _, t := range w.timers {
		t.Stop()
	}
	w.pause.Stop()
	for cn := range w.conns {
		cn.Socket.Close(errClosed)
	}
}

// sample takes the measurements that need a timer.
func (w *worker) sample() {
	w.rate.Sample(w.Count.OfClients())
	w.hot.Fade(w.loop.Now())
	if w.loop == w.node.workers[0].loop {
		w.node.notePeak(w.node.engine.Used())
		if w.node.following.HasEnded(w.loop.Now()) && w.node.broker.Keeps() {
			w.node.goJob(w.node.broker.Forget)
		}
		if w.node.events.isLate() {
			w.node.events.review()
		}
	}
}
