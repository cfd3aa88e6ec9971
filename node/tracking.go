package node

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// CLIENT TRACKING. The keys that a tracking connection is about to read are marked in the engine for a watcher:
// its loop, or the pipe over which the proxy of that client sends. Whoever changes a marked key queues for the
// watcher what is gone, while the shard is locked; the watcher's loop then tells its clients, or the proxy:
//
//	loop 1   mark k, read k, reply ······· deliver: tell those with a copy of k
//	loop 2            SET k: gone ─ queue ─┘
//
// A loop delivers between the inputs of its connections, so what is told comes behind the replies of the reads
// before it. A client whose reply is still to come is told behind that (conn.tell); a proxy sees to it itself.
//
// When partitions are lost, when the engine is emptied, when a queue overflows or memory ends, all is gone: the
// watcher's clients forget everything.

const (
	// goneAtOnce is how many keys wait for a watcher's loop, and goneBytes how many bytes of names of keys that
	// begin with prefixes. With more, all is gone.
	goneAtOnce = 1024
	goneBytes  = 32 << 10
	// maxWatchers bounds the loops and pipes that watch.
	maxWatchers = 1<<16 - 1
	// watcherMemory is what a watcher takes, in bytes, when its queue is full.
	watcherMemory = 80 << 10
)

// watchers are those of a node.
type watchers struct {
	mu       sync.Mutex // of changes
	byID     atomic.Pointer[[]*watcher]
	live     int
	followed followedPrefixes

	overflows atomic.Uint64 // of queues of what is gone
}

// watcher has what is gone, and was not told yet.
type watcher struct {
	id      uint16
	loop    *netloop.Loop
	deliver func() // on the loop

	mu      sync.Mutex
	ended   bool
	posted  bool // deliver will come
	all     bool // all is gone
	flushed bool // by nothing but FLUSHALLs of all nodes
	gone    []gone
	names   int // bytes in gone
	of      *watchers
	follows map[string]bool // prefixes; its loop changes it, and any once it has ended, while watchers.mu is locked
}

// gone is a key that has changed.
type gone struct {
	hash, actor uint64
	key         string // if it was told for its prefix
	byPrefix    bool
}

// watch adds a watcher, nil if there are too many.
func (ws *watchers) watch(l *netloop.Loop, deliver func()) *watcher {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	list := []*watcher{nil}
	if old := ws.byID.Load(); old != nil {
		list = slices.Clone(*old)
	}
	at := 1 + slices.Index(list[1:], nil)
	if at == 0 {
		if at = len(list); at > maxWatchers {
			return nil
		}
		list = append(list, nil)
	}
	w := &watcher{id: uint16(at), loop: l, deliver: deliver, of: ws}
	list[at] = w
	ws.byID.Store(&list)
	ws.live++
	return w
}

// unwatch removes a watcher. Marks for it stay as long as there are others: they are told to whoever has its number
// next, in vain.
func (ws *watchers) unwatch(w *watcher, e *engine.Engine) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.mu.Lock()
	w.ended, w.gone = true, nil
	w.mu.Unlock()
	list := slices.Clone(*ws.byID.Load())
	list[w.id] = nil
	ws.byID.Store(&list)
	if ws.followed.end(w, e) {
		w.loop.Post(func() { ws.leaveOn(w.loop, e) })
	}
	if ws.live--; ws.live == 0 {
		e.ForgetMarks()
	}
}

// leaveOn goes on with removing prefixes of watchers that have ended.
func (ws *watchers) leaveOn(l *netloop.Loop, e *engine.Engine) {
	ws.mu.Lock()
	more := ws.followed.leaveSome(e)
	ws.mu.Unlock()
	if more {
		l.Post(func() { ws.leaveOn(l, e) })
	}
}

// revoke is engine.Config.Revoke. Whoever has changed another key than the marked one has not changed that itself.
func (ws *watchers) revoke(m engine.Watch, key []byte, actor uint64) {
	if list := *ws.byID.Load(); int(m.Watcher) < len(list) && list[m.Watcher] != nil {
		if actor != 0 && tracking.Hash(key) != m.Hash {
			actor = 0
		}
		list[m.Watcher].add(gone{hash: m.Hash, actor: actor})
	}
}

// flushTracking tells all watchers that all is gone, by a FLUSHALL of all nodes or otherwise.
func (n *Node) flushTracking(ofAllNodes bool) {
	// First: whose marks are forgotten is in the list, and who marks later reads what is there later.
	n.engine.ForgetMarks()
	list := n.watchers.byID.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		if w != nil {
			w.flush(ofAllNodes)
		}
	}
}

// add queues what is gone. The caller has a shard locked.
func (w *watcher) add(g gone) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.all {
		return
	}
	if n := len(w.gone); n > 0 && g.byPrefix && w.gone[n-1] == g {
		return
	}
	if len(w.gone) >= goneAtOnce || w.names+len(g.key) > goneBytes {
		w.gone, w.names, w.all, w.flushed = nil, 0, true, false
		w.of.overflows.Add(1)
	} else {
		w.gone = append(w.gone, g)
		w.names += len(g.key)
	}
	w.post()
}

// flush queues that all is gone, in the place of what is queued.
func (w *watcher) flush(ofAllNodes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = ofAllNodes && (w.flushed || !w.all)
	w.gone, w.names, w.all = nil, 0, true
	w.post()
}

func (w *watcher) post() {
	if !w.posted && !w.ended {
		w.posted = true
		w.loop.Post(w.deliver)
	}
}

// take returns what is gone. The caller gives spare back, whose elements were told.
func (w *watcher) take(spare []gone) (list []gone, all, flushed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, all, flushed = w.gone, w.all, w.flushed
	clear(spare)
	w.gone, w.names, w.all, w.flushed, w.posted = spare[:0], 0, false, false, false
	return list, all, flushed
}

// trackingHere is what a worker keeps for its clients that track.
type trackingHere struct {
	table   tracking.Turns
	watcher *watcher // nil before the first client
	spare   []gone
}

// track obeys the connection's CLIENT TRACKING. It returns the error to be answered, "" if there is none. An error
// leaves what was tracked before.
func (cn *conn) track() (refusal string) {
	w, t := cn.worker, cn.State.Tracking
	if t == nil {
		cn.untrack()
		return ""
	}
	here := &w.tracking
	if here.watcher == nil {
		if !(heapBudget{w.node}).Charge(watcherMemory) {
			return errNoTracking
		}
		if here.watcher = w.node.watchers.watch(w.loop, w.deliverGone); here.watcher == nil {
			heapBudget{w.node}.Refund(watcherMemory)
			return errNoTracking
		}
	}
	joins := cn.tracker == nil
	if joins {
		cn.tracker = here.table.Join(cn, cn.actor())
	}
	if refusal = cn.follow(t.Prefixes); refusal == "" {
		here.table.Set(cn.tracker, t.NoLoop, t.Prefixes)
	} else if joins {
		cn.untrack()
	}
	return refusal
}

// actor is by what a client is named that wants no word of what it does itself.
func (cn *conn) actor() uint64 { return tracking.Actor(cn.node.cfg.Boot, cn.State.ID) }

// actAs: DUNLIN AS actor
func actAs(r *request) {
	actor, ok := member.ParseAs(r.Args[2])
	if p := r.conn.pipe; ok && p != nil && p.watcher != nil {
		p.actor = actor
		r.ReplyOK()
		return
	}
	r.Fail(exec.ErrNotInteger)
}

// untrack ends the connection's tracking.
func (cn *conn) untrack() {
	if cn.tracker == nil {
		return
	}
	w := cn.worker
	here := &w.tracking
	here.table.Leave(cn.tracker)
	cn.tracker, cn.behind, cn.forgets = nil, nil, false
	cn.unfollow()
	here.table.TellLater()
	if here.table.Clients() == 0 {
		w.node.watchers.unwatch(here.watcher, w.node.engine)
		here.watcher = nil
		heapBudget{w.node}.Refund(watcherMemory)
	}
}

// trackRead notes the keys that a command is about to read, for a connection that tracks.
func (r *request) trackRead(s *step) {
	cn := r.conn
	if p := cn.pipe; p != nil {
		r.Actor, p.actor = p.actor, 0
	} else if cn.State.Tracking.NoLoop {
		r.Actor = cn.actor()
	}
	if s.plan == nil || !readsKeys(s.cmd) {
		if cn.tracker != nil && s.cmd != nil && s.cmd.ID == command.Exec {
			cn.tracker.Reads() // perhaps; its planning tracks the keys
		}
		return
	}
	if !cn.State.TracksNow() {
		cn.tracker.Reads() // if it follows prefixes
		return
	}
	// Of a long request the parser has listed enough words: more keys than they have are too many.
	keys, valid := s.cmd.AppendKeys(r.worker.trackedKeys[:0], s.args)
	if r.worker.trackedKeys = keys; len(keys) > tracking.MaxKeys || !valid && r.isUnlisted() {
		cn.forgets = cn.pipe == nil // a proxy counts the keys itself
		return
	}
	for _, k := range keys {
		r.trackKey(r.Database, s.args[k])
	}
}

// tracksReads reports whether the keys of the present command were marked for a client of the node.
func (r *request) tracksReads() bool {
	cn := r.conn
	return readsKeys(r.Cmd) && cn.tracker != nil && cn.State.TracksNow()
}

// tellAgain tells the client of a command that has waited, behind its reply, to forget what it has read: what has woken
// the command took the marks of its keys along, perhaps before the reply. A proxy does that for its client itself.
func (w *blocked) tellAgain() {
	if !w.traits.has(wantsMarks) {
		return
	}
	cn, args := w.conn, unpackArgs(nil, []byte(w.Text()))
	keys, _ := command.ByID(w.cmd).AppendKeys(nil, args)
	cn.worker.loop.Post(func() {
		for _, at := range keys {
			cn.Invalidate(string(args[at]))
		}
	})
}

// readsKeys reports whether a client may keep what the command replies of its keys.
func readsKeys(c *command.Command) bool { return c.Flags&command.ReadOnly != 0 || c.IsScript() }

// trackKey notes that the connection is about to read a key of a database.
func (r *request) trackKey(database uint8, key []byte) {
	cn := r.conn
	watch := engine.Watch{Hash: tracking.Hash(key)}
	if p := cn.pipe; p != nil {
		watch.Watcher = p.watcher.id
	} else if cn.tracker != nil {
		here := &r.worker.tracking
		watch.Watcher = here.watcher.id
		if !here.table.Add(cn.tracker, key) {
			cn.forgets = true
			return
		}
		here.table.TellLater()
	}
	switch {
	case watch.Watcher == 0: // it tracks no more
	case r.node.engine.Mark(engine.Section(r.Placement.PartitionOf(database, key), database), key, watch):
	case cn.pipe != nil:
		cn.pipe.watcher.flush(false)
	default:
		cn.forgets = true
	}
}

// endTracked has what waits for the reply of a command follow on it.
func (cn *conn) endTracked() {
	if cn.tracker != nil && (cn.forgets || len(cn.behind) > 0) {
		cn.worker.loop.Post(cn.tellHeld)
	}
}

func (cn *conn) tellHeld() {
	behind, forgets := cn.behind, cn.forgets
	cn.behind, cn.forgets = nil, false
	if len(behind) > 0 {
		cn.tell(behind)
	}
	if forgets {
		cn.Flush()
	}
}

// deliverGone tells the clients of the loop what is gone.
func (w *worker) deliverGone() {
	here := &w.tracking
	if here.watcher == nil {
		return
	}
	list, all, _ := here.watcher.take(here.spare)
	if all {
		here.table.Flush()
	}
	for _, g := range list {
		if g.byPrefix {
			here.table.Changed(g.key, g.actor)
		} else {
			here.table.Gone(g.hash, g.actor)
		}
	}
	here.spare = list
	here.table.Tell()
}

// Invalidate implements tracking.Sink.
func (cn *conn) Invalidate(key string) { cn.invalidate(key, false) }

// Flush implements tracking.Sink.
func (cn *conn) Flush() { cn.invalidate("", true) }

func (cn *conn) invalidate(key string, all bool) {
	t := cn.State.Tracking
	switch {
	case cn.closed || t == nil:
	case t.Redirect != 0:
		if to := cn.node.session.Directory().Find(t.Redirect); to != nil {
			to.Redirected(key, all)
			return
		}
		t.Broken = true
		if cn.State.Version == resp.RESP3 {
			cn.tell(tracking.AppendBroken(nil, t.Redirect))
		}
	case cn.State.Version == resp.RESP3:
		cn.tell(tracking.AppendInvalidate(nil, resp.RESP3, key, all))
	}
}

// Redirected implements tracking.Target.
func (cn *conn) Redirected(key string, all bool) {
	cn.worker.loop.Post(func() {
		if cn.pipe == nil && !cn.peer && (cn.State.Version == resp.RESP3 || cn.State.Subscribes()) {
			cn.tell(tracking.AppendInvalidate(nil, cn.State.Version, key, all))
		}
	})
}

// tell sends an invalidation. If the reply to a command is still to come, it waits for that: the command may
// have read the key before. A command that is Blocked reads nothing that a client keeps.
func (cn *conn) tell(frame []byte) {
	switch {
	case cn.closed || cn.Closing:
		return
	case !cn.Answering || cn.State.Blocked:
		if out, ok := cn.Socket.Grow(cn.Socket.Out(), len(frame)); ok {
			cn.Socket.SetOut(append(out, frame...))
			cn.worker.Count.Invalidations++
		}
	case len(cn.behind)+len(frame) > tracking.MaxHeld:
		cn.behind, cn.forgets = nil, true
	default:
		cn.behind = append(cn.behind, frame...)
		cn.Socket.SetOther(cn.otherBytes()) // without memory for it the connection is closed
	}
}

// deliverGone tells the proxy what is gone. While it does not read, the rest waits in the queue.
func (p *pipe) deliverGone() {
	cn := p.conn
	if cn.closed || cn.Closing {
		return
	}
	if cn.Socket.Full() {
		cn.worker.loop.After(pushPause, p.deliverGone)
		return
	}
	list, all, flushed := p.watcher.take(nil)
	size := member.GoneSize
	for i := range list {
		size += member.GoneSize + len(list[i].key)
	}
	out, ok := cn.Socket.Grow(cn.Socket.Out(), size)
	if !ok {
		return // no memory for it: the pipe is closed
	}
	if all {
		flushed = flushed && p.key.kind == member.Listening && p.flushes
		out = member.AppendGone(out, member.Gone{All: true, Flushed: flushed})
	}
	for _, g := range list {
		told := member.Gone{Hash: g.hash, ByPrefix: g.byPrefix, Key: []byte(g.key), Actor: g.actor}
		out = member.AppendGone(out, told)
	}
	cn.Socket.SetOut(out)
	cn.worker.Count.Invalidations += uint64(len(list))
}

// watch has a pipe that begins be told what is gone. It reports false if there is no room for that.
func (p *pipe) watch(cn *conn) bool {
	if !(heapBudget{cn.node}).Charge(watcherMemory) {
		return false
	}
	if p.watcher = cn.node.watchers.watch(cn.worker.loop, p.deliverGone); p.watcher == nil {
		heapBudget{cn.node}.Refund(watcherMemory)
		return false
	}
	return true
}

func (p *pipe) unwatch() {
	if w := p.watcher; w != nil {
		p.watcher = nil
		n := p.conn.node
		heapBudget{n}.Refund(watcherMemory)
		n.watchers.unwatch(w, n.engine)
	}
}
