package tlsbridge

import (
	"container/list"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/lobby"
)

const (
	// maxHandshakes bounds concurrent handshakes; further connections wait in the listener's queue.
	maxHandshakes = 1024
	// sourceHandshakes bounds those with one source; further connections of that source are parked.
	sourceHandshakes = 128
	// silence is how long a peer may say nothing while others of its source are parked.
	silence = time.Second
	// maxParked bounds parked connections, which take a descriptor each and nothing else.
	maxParked = 16384
)

// processors is how many the process may use, read before anything raises GOMAXPROCS.
var processors = runtime.GOMAXPROCS(0)

// doorway decides which connections shake hands, and which of these compute. A handshake that waits
// for its peer does not compute, so somebody who connects and says nothing delays nobody. Sources
// take turns in computing: one that begins many handshakes delays its own.
//
//	arrives ──> parked ──> started ─┬─ silent: waits for its peer
//	               └> refused       ├─ eager: waits for its turn to compute
//	                                └─ computes
type doorway struct {
	strained func() bool          // see Server.RestWhile; nil: never
	clock    func() time.Duration // for how long the calling thread has had a processor

	mu      sync.Mutex
	free    int // how many more may compute now
	sources map[netip.Addr]*source
	turns   []*source // those with an eager handshake, in turn
	started int       // of all sources
	parked  int       // of all sources
	room    int       // for parked connections
	closed  bool
}

// source is what shares an address, see lobby.Source.
type source struct {
	started list.List // of *handshake, the first to start first
	eager   []*handshake
	parked  []*handshake
}

// handshake is a connection from its arrival until a loop has it.
type handshake struct {
	door   *doorway
	from   netip.Addr // of its source
	source *source
	begin  func(h *handshake) // starts it
	refuse func()             // closes a parked one
	turn   chan struct{}      // receives when it may compute
	begun  time.Duration      // when it last began to compute, by the doorway's clock
	place  *list.Element      // in source.started

	// Guarded by the doorway's mutex.
	conn    net.Conn  // whose peer it waits for; nil: it does not wait
	since   time.Time // from when on it waits
	hurried bool      // conn has a deadline
}

// newDoorway lets a quarter of the processors compute. The others are for those who are in already.
func newDoorway() *doorway {
	d := &doorway{free: max(1, processors/4), sources: make(map[netip.Addr]*source), room: maxParked, clock: threadTime}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		d.room = int(min(uint64(d.room), files.Cur/4)) // the rest is for those who are in
	}
	return d
}

// enter starts a handshake, parks it or refuses it. One source may take three quarters of the
// parking. The last to be parked is the first to start: it has not given up yet, and those who came
// before it may never say anything.
func (d *doorway) enter(address netip.Addr, begin func(h *handshake), refuse func()) {
	h := &handshake{door: d, from: lobby.Source(address), begin: begin, refuse: refuse, turn: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		h.refuse()
		return
	}
	h.source = d.sources[h.from]
	if h.source == nil {
		h.source = &source{}
		d.sources[h.from] = h.source
	}
	switch s := h.source; {
	case s.started.Len() < sourceHandshakes:
		d.start(h)
	case d.parked < d.room && len(s.parked) < d.room*3/4:
		d.parked++
		if s.parked = append(s.parked, h); len(s.parked) == 1 {
			s.hurry()
		}
	default:
		h.refuse()
	}
}

// start is called with the lock held, as the functions below are.
func (d *doorway) start(h *handshake) {
	d.started++
	h.place = h.source.started.PushBack(h)
	h.begin(h)
}

// hurry limits how long the silent ones of a source may be silent.
func (s *source) hurry() {
	for e := s.started.Front(); e != nil; e = e.Next() {
		if h := e.Value.(*handshake); h.conn != nil {
			h.hurried = true
			_ = h.conn.SetReadDeadline(h.since.Add(silence))
		}
	}
}

// leave ends a handshake: a loop has its connection, or it has failed. Then a parked one of its
// source starts.
func (d *doorway) leave(h *handshake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := h.source
	d.started--
	s.started.Remove(h.place)
	if len(s.parked) > 0 && s.started.Len() < sourceHandshakes {
		last := len(s.parked) - 1
		next := s.parked[last]
		s.parked[last] = nil
		s.parked = s.parked[:last]
		d.parked--
		d.start(next)
	}
	if s.started.Len() == 0 {
		delete(d.sources, h.from)
	}
}

// close refuses all that are parked or will come.
func (d *doorway) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, s := range d.sources {
		for _, h := range s.parked {
			h.refuse()
		}
		s.parked = nil
	}
	d.parked = 0
}

// ready reports whether another connection may enter.
func (d *doorway) ready() bool { return d.running() < maxHandshakes }

// running returns how many handshakes have started and not ended.
func (d *doorway) running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.started
}

// compute waits until the handshake may compute. Whoever computes does not wait for a peer, so a
// turn is short; while loops are strained, it rests, too. The goroutine keeps its thread until rest, so
// that its time can be told.
func (d *doorway) compute(h *handshake) {
	d.await(h)
	runtime.LockOSThread()
	h.begun = d.clock()
}

// await waits for h's turn.
func (d *doorway) await(h *handshake) {
	d.mu.Lock()
	if h.conn = nil; d.free > 0 {
		d.free--
		d.mu.Unlock()
		return
	}
	s := h.source
	if s.eager = append(s.eager, h); len(s.eager) == 1 {
		d.turns = append(d.turns, s)
	}
	d.mu.Unlock()
	<-h.turn
}

const (
	// restFactor is for how much longer than it has computed a handshake's turn rests while loops are
	// strained: handshakes then have a quarter of what they have otherwise. Of 2 processors, that is
	// some 600 a second with ECDSA certificates.
	restFactor = 3
	// longestRest bounds such a rest. It is far above what a handshake with the largest keys leads to.
	longestRest = 100 * time.Millisecond
)

// rest ends h's turn. The next one begins at once, unless loops are strained.
func (d *doorway) rest(h *handshake) {
	computed := d.clock() - h.begun
	runtime.UnlockOSThread()
	if d.strained == nil || !d.strained() {
		d.pass()
		return
	}
	time.AfterFunc(min(restFactor*computed, longestRest), d.pass)
}

// pass lets another handshake compute.
func (d *doorway) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.turns) == 0 {
		d.free++
		return
	}
	s := d.turns[0]
	d.turns = d.turns[1:]
	next := s.eager[0]
	if s.eager = s.eager[1:]; len(s.eager) > 0 {
		d.turns = append(d.turns, s)
	}
	next.turn <- struct{}{}
}

// listen notes that a handshake waits for the peer of conn.
func (d *doorway) listen(h *handshake, conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.conn, h.since = conn, time.Now()
	switch crowded := len(h.source.parked) > 0; {
	case crowded:
		h.hurried = true
		_ = conn.SetReadDeadline(h.since.Add(silence))
	case h.hurried:
		h.hurried = false
		_ = conn.SetReadDeadline(time.Time{})
	}
}

// gate is the connection of a handshake, which computes except while it reads. Afterwards it only
// passes calls on.
type gate struct {
	net.Conn
	handshake *handshake // nil when it is over
	computes  bool
}

func (g *gate) Read(b []byte) (int, error) {
	h := g.handshake
	if h == nil {
		return g.Conn.Read(b)
	}
	if g.computes {
		h.door.rest(h)
	}
	h.door.listen(h, g.Conn)
	n, err := g.Conn.Read(b)
	h.door.compute(h)
	g.computes = true
	return n, err
}

// end ends the handshake's use of the connection.
func (g *gate) end() {
	if g.computes {
		g.handshake.door.rest(g.handshake)
	}
	g.handshake = nil
	_ = g.SetReadDeadline(time.Time{}) // there may be one
}
