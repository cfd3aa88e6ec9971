package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/ticket"
	"github.com/dunlin-cache/dunlin/ring"
)

// A pipe is the connection over which one loop of a proxy sends its clients' commands. Each of its
// connections has a generation; package ownership decides which of them live.

// pipeKey names the pipe that a generation belongs to: one loop of one process of a proxy, one kind
// of commands, one protocol version, and commands that count as uses of keys or do not.
type pipeKey struct {
	boot    int64
	loop    int
	kind    member.Kind
	version resp.Version
	noTouch bool
	tracks  bool
}

// pipe is one generation of a pipe. A listener takes what is published for the proxy's loop; nil: that does
// not listen.
type pipe struct {
	key        pipeKey
	generation uint64
	conn       *conn
	ended      chan struct{} // closed when none of its commands is executed any more

	// These belong to the conn's loop.
	hasEnded bool     // ended is closed
	later    bool     // its proxy understands commands that are answered later
	tickets  bool     // tickets were issued over it
	returns  bool     // its proxy may return what blocking commands have popped (return.go)
	flushes  bool     // its proxy tells a FLUSHALL of all nodes from other reasons
	waits    waitList // its commands that wait for keys, which are no jobs yet
	listener *listener
	watcher  *watcher // not nil: it is told what is gone of the keys that its commands read, or by their prefixes
	actor    uint64   // of the request that comes next, see trackRead
	gate     ownership.Gate
}

// Boot identifies the proxy's process.
func (p *pipe) Boot() int64 { return p.key.boot }

// errSuperseded closes a pipe whose next generation opens.
var errSuperseded = errors.New("a newer generation of this pipe was opened")

// pipeRegistry has the generations of all pipes. Pipes open on any loop, so it has a lock, which is
// held for moments.
type pipeRegistry struct {
	mu          sync.Mutex
	generations ownership.Generations[pipeKey, *pipe]
}

func (g *pipeRegistry) claim(now time.Duration, p *pipe) (older []*pipe, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.generations.Claim(now, p.key, p.generation, p)
}

func (g *pipeRegistry) ended(now time.Duration, p *pipe) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generations.Ended(now, p.key, p)
}

// challenge: DUNLIN CHALLENGE
func challenge(r *request) {
	r.conn.nonce, r.conn.outOfTurn = member.NewNonce(), false
	r.ReplyBulk(r.conn.nonce)
}

// proven reports whether proof shows that the peer knows the secret. The proof is about the fields
// and the connection's nonce, which proven uses up. If there is no proof, proven answers the
// refusal.
func (r *request) proven(fields [][]byte, proof []byte) bool {
	if r.node.cfg.Secret.First() == nil {
		return true
	}
	nonce := r.conn.nonce
	r.conn.nonce = nil
	refusal := errBadSecret
	if nonce == nil {
		refusal = errNoChallenge
	} else if r.node.cfg.Secret.ProvedBy(proof, nonce, fields...) {
		return true
	}
	r.Fail(refusal)
	r.conn.Closing = true
	return false
}

// authenticatePeer: DUNLIN PEER boot mac
func authenticatePeer(r *request) {
	if !r.proven(member.ParsePeer(r.Args[2:])) {
		return
	}
	r.conn.peer = true
	r.worker.roster.Remove(r.conn.State)
	r.conn.probation = false
	r.conn.State.LeaveSlot()
	r.conn.limitRequests()
	r.conn.Socket.SetAccount(r.worker.members)
	r.ReplyOK()
}

// openPipe: DUNLIN PIPE boot loop kind generation proto mac [level]
func openPipe(r *request) {
	cn := r.conn
	description, fields, proof, ok := member.ParsePipe(r.Args[2:])
	if !r.proven(fields, proof) {
		return
	}
	if !ok || cn.pipe != nil {
		r.Fail(errBadPipe)
		cn.Closing = true
		return
	}
	if need := clusterLevel(r.view.Table); description.Level < need {
		r.Fail(fmt.Sprintf(errPipeLevel, description.Level, need))
		cn.Closing = true
		return
	}
	p := pipeOf(description)
	p.conn = cn
	if description.Tracks && !p.watch(cn) {
		r.Fail(errNoTracking)
		cn.Closing = true
		return
	}
	p.gate.Open(r.view)
	older, fresh := r.node.pipes.claim(r.node.monotonic(), p)
	if !fresh {
		p.unwatch()
		r.Fail(errOldPipe)
		cn.Closing = true
		return
	}
	cn.becomePipe(p)
	later := description.Level >= ring.LaterLevel
	if len(older) == 0 {
		p.later = later
		r.Out = member.AppendWelcome(r.Out, later)
		return
	}
	r.answerLaterThen(func() []byte { // the pipe itself waits for this
		for _, p := range older {
			p.supersede()
		}
		return member.AppendWelcome(nil, later)
	}, func() { p.later = later })
}

// raisePipe: DUNLIN LEVEL level. From now on the pipe's commands may be answered later, if its proxy
// understands that.
func raisePipe(r *request) {
	p := r.conn.pipe
	level, ok := member.ParseLevel(r.Args[2])
	if !ok || p == nil {
		r.Fail(errBadPipe)
		return
	}
	p.later, p.returns = level >= ring.LaterLevel, level >= ring.ReturnLevel
	r.Out = member.AppendWelcome(r.Out, p.later)
}

// clusterLevel returns the level of a table, 0 if there is none.
func clusterLevel(t *ring.Table) uint8 {
	if t == nil {
		return 0
	}
	return t.Level
}

func pipeOf(d member.Pipe) *pipe {
	key := pipeKey{boot: d.Boot, loop: d.Loop, kind: d.Kind, version: d.Version, noTouch: d.NoTouch, tracks: d.Tracks}
	return &pipe{
		key: key, generation: d.Generation, ended: make(chan struct{}),
		flushes: d.Level >= ring.FlushedLevel, returns: d.Level >= ring.ReturnLevel,
	}
}

// becomePipe turns a client's connection into a pipe.
func (cn *conn) becomePipe(p *pipe) {
	cn.pipe = p
	cn.probation = false
	cn.State.LeaveSlot()
	cn.State.Version, cn.State.NoTouch = p.key.version, p.key.noTouch
	cn.State.Authenticated = true
	cn.limitRequests()
	cn.Socket.SetAccount(cn.worker.members)
	cn.node.clients.Add(-1)
	cn.node.session.Directory().Remove(cn.State.ID)
	cn.worker.roster.Remove(cn.State)
	if p.key.tracks {
		cn.State.SetTracking(new(session.Tracking))
	}
}

// supersede closes the pipe and returns when it has ended, which takes its loop a moment: it does not
// wait for goroutines. It must not be called on a loop.
func (p *pipe) supersede() {
	cn := p.conn
	cn.worker.loop.Post(func() {
		if !cn.closed {
			cn.Closing = true
			cn.Socket.Close(errSuperseded)
		}
	})
	select {
	case <-p.ended:
	case <-cn.node.ctx.Done():
	}
}

// prefix returns the prefix of the request at the front of the input, and its length. It reports false if the prefix is
// malformed. Only pipes have prefixes: a client has selected a database.
func (cn *conn) prefix(in []byte) (p member.Prefix, length int, ok bool) {
	if cn.pipe == nil || cn.Upload != nil { // whose prefix has come before
		return member.Prefix{Database: cn.State.Database}, 0, true
	}
	return member.CutPrefix(in)
}

// endPipe declares the pipe ended: its connection is closed. What goroutines still work on is
// dropped, except for settings and the rest of a transaction. The pipe's end waits for these, unless
// they hold their partition: then whoever wants that waits, and a script would keep all others.
func (cn *conn) endPipe() {
	p := cn.pipe
	if p == nil || p.hasEnded || cn.jobs.settling > 0 {
		return
	}
	p.hasEnded = true
	p.unwatch()
	cn.node.pipes.ended(cn.node.monotonic(), p)
	close(p.ended)
}

// gate returns the Gate of the request's pipe, nil for a client.
func (r *request) gate() *ownership.Gate {
	if p := r.conn.pipe; p != nil {
		return &p.gate
	}
	return nil
}

// latch has the node refuse the pipe's later commands on these partitions too, because it refused
// one.
func (r *request) latch(partitions ...uint16) {
	r.gate().Refused(partitions...)
	r.careful = r.gate().Careful(r.view, r.fenced)
}

// retry: DUNLIN RETRY epoch
func retry(r *request) {
	epoch, ok := member.ParseRetry(r.Args[2])
	if !ok {
		r.Fail(exec.ErrNotInteger)
		return
	}
	r.gate().Retry(epoch, r.view)
	r.careful = r.gate().Careful(r.view, r.fenced)
	r.ReplyOK()
}

// ticketed replaces the reply that begins at start, with the pins from Pins[firstPin] on, by a
// ticket, if the reply is large and would go over a common pipe.
func (r *request) ticketed(start, firstPin int) {
	p := r.conn.pipe
	if p == nil || p.key.kind != member.Common {
		return
	}
	start += member.PoppedLen(r.Out[start:]) // which is no part of the reply
	text, values := len(r.Out)-start, 0
	for i := firstPin; i < len(r.Pins); i++ {
		p := &r.Pins[i]
		if p.Pin.OfReply() && plans[r.Cmd.ID].keys != oneKey {
			text += len(p.Bytes)
		} else {
			values += len(p.Bytes)
		}
	}
	if !ticket.Fits(text, values) {
		return
	}
	if number, size, ok := r.node.tickets.Issue(p, &r.Request, start, firstPin); ok {
		p.tickets = true
		r.Out = member.AppendTicket(r.Out, number, size)
	}
}

// redeem: DUNLIN FETCH ticket offset count. A count of 0 ends the ticket, on the pipe over which it
// was issued.
func redeem(r *request) {
	piece, ok := member.ParseFetch(r.Args[2:])
	p := r.conn.pipe
	if !ok || p == nil {
		r.Fail(errBadFetch)
		return
	}
	if piece.Count == 0 {
		r.node.tickets.Drop(p, piece.Ticket)
		r.ReplyBulk(nil)
		return
	}
	if !r.Room(piece.Count + exec.LineRoom) {
		return
	}
	out, ok := r.node.tickets.AppendPiece(r.Out, p, piece.Ticket, piece.Offset, piece.Count)
	if r.Out = out; !ok {
		r.Fail(errNoTicket)
	}
}
