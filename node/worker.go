package node

import (
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/hyperloglog"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// worker is what a node keeps on one loop. It belongs to that loop.
type worker struct {
	node  *Node
	loop  *netloop.Loop
	conns map[*conn]struct{}
	count counters
	rate  rateWindow
	times [command.NumIDs]*figures.Durations // of the commands that were timed
	feed  *monitor.Feed
	// untilSample is how many inputs come before the next one is sampled.
	untilSample int
	hot         *hotSketch
	request     request
	account     *netloop.Account // of the connections' buffers
	ahead       lookahead
	heap        atomic.Int64 // what of account is in the Go heap, as of the last sample
	timers      []*netloop.Timer
	pauseTimer  *netloop.Timer // ends the last CLIENT PAUSE; nil: there was none

	// Scratch space of handlers, valid during one command.
	number [32]byte
	body   []byte
	union  *hyperloglog.Registers // nil until it is needed
	views  [][]byte               // of values in the engine

	heldPins []*heldPin // free ones
}

// maxBodyKept is how large a reply's scratch space is kept for the next one.
const maxBodyKept = 1 << 20

// maxViewsKept is how many views are kept room for.
const maxViewsKept = 1 << 10

func newWorker(n *Node, l *netloop.Loop) *worker {
	w := &worker{node: n, loop: l, feed: n.monitors.Feed(l), conns: make(map[*conn]struct{}), hot: newHotSketch(l.Clock())}
	w.feed.Changed = func() { w.untilSample = 0 }
	w.account = netloop.NewAccount(connBudget{n}, connFloor(n.cfg.Memory, len(n.cfg.Group.Loops())))
	w.request.node, w.request.worker = n, w
	w.ahead.args = make([][]byte, 0, maxAhead*resp.MaxSmall)
	return w
}

// keepBody gives scratch space back that a command has grown.
func (w *worker) keepBody(body []byte) {
	w.body = body[:0]
	if cap(body) > maxBodyKept {
		w.body = nil
	}
}

// The timers of a worker.
const (
	samplePeriod = 100 * time.Millisecond
	idlePeriod   = time.Second
)

func (w *worker) startTimers() {
	if w.node.ctx.Err() != nil {
		return
	}
	w.timers = []*netloop.Timer{
		w.loop.Every(samplePeriod, w.sample),
		w.loop.Every(idlePeriod, w.closeSilent),
	}
}

// add begins a client's connection.
func (w *worker) add(c *netloop.Conn) *conn {
	cn := &conn{node: w.node, worker: w, socket: c}
	cn.state = w.node.session.NewState(c.RemoteAddr(), c.LocalAddr(), w.loop.UnixMilli())
	cn.state.FD = c.FD()
	cn.limitRequests()
	c.SetOther(connMemory)
	w.conns[cn] = struct{}{}
	w.count.connections++
	w.node.clients.Add(1)
	return cn
}

// remove ends a connection's membership, whatever it has become.
func (w *worker) remove(cn *conn) {
	delete(w.conns, cn)
	if cn.pipe == nil {
		w.node.clients.Add(-1)
	}
}

// closeIdle closes what is between two requests, or waits before one, for Drain.
func (w *worker) closeIdle() {
	for cn := range w.conns {
		if cn.state.Waiting != nil {
			cn.wake(nil)
		}
		idle := !cn.answering && cn.unread == 0 && cn.upload == nil
		if (idle || cn.state.Blocked) && !cn.closing {
			cn.closing = true
			cn.socket.CloseAfterFlush()
		}
	}
}

// closeSilent closes the clients that were silent for longer than CONFIG's
// timeout, and who stops in the middle of a large value. Pipes and members are silent when there is nothing to do, and so is
// who monitors.
func (w *worker) closeSilent() {
	limit, now := w.node.settings.IdleTimeout(), w.loop.UnixMilli()
	for cn := range w.conns {
		silence := time.Duration(now-cn.state.LastMilli) * time.Millisecond
		client := cn.pipe == nil && !cn.peer && !cn.answering && !cn.state.Monitor
		if cn.upload != nil && !cn.upload.held && silence > uploadPatience {
			cn.socket.Close(errUploadStalled)
		}
		if client && (limit > 0 && silence > limit || cn.probation && silence > idlePeriod) {
			cn.socket.Close(nil)
		}
	}
}

// stop closes everything, for Close.
func (w *worker) stop() {
	for _, t := range w.timers {
		t.Stop()
	}
	if w.pauseTimer != nil {
		w.pauseTimer.Stop()
	}
	for cn := range w.conns {
		cn.socket.Close(errClosed)
	}
}
