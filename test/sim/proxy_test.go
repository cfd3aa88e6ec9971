package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// One worker of a proxy: package proxy/order itself, and around it what the shell in package proxy
// does with sockets and timers. What the machine has queued for a node is read back from its bytes.

type proxy struct {
	w *world
	p *proc

	machine  *order.Machine
	acting   bool
	timer    int              // counts settings of the timer: older ones are void
	moves    bool             // the end of an iteration is to come
	commands map[int]*command // that were sent, by their ids
	ears     ears
}

// pipeEnd is the proxy's end of one connection of a pipe.
type pipeEnd struct {
	x *proxy
	p *order.Pipe
	c *conn
}

func newProxy(p *proc) *proxy {
	x := &proxy{w: p.w, p: p, commands: make(map[int]*command)}
	x.machine = order.New(order.Config{Patience: holdLimit, SilentTicks: silentTicks, Broken: &p.w.order})
	return x
}

func (x *proxy) tick() {
	if x.machine.Tick(x.w.now) {
		x.w.after(x.p, order.SilenceTick, x.tick)
	}
	x.act()
}

func (x *proxy) install(t *ring.Table) {
	x.machine.Install(t, x.w.now)
	x.ears.install(t)
	x.act()
}

// setAlive says who was not declared dead.
func (x *proxy) setAlive(members []ring.Member) {
	alive := make(map[string]bool)
	for _, m := range members {
		alive[m.Name()] = true
	}
	x.machine.SetAlive(alive, x.w.now)
	x.act()
}

// act does what the machine asks for.
func (x *proxy) act() {
	if x.acting {
		return
	}
	x.acting = true
	for x.machine.HasActions() {
		for _, a := range x.machine.Actions() {
			x.do(a)
		}
	}
	x.acting = false
}

func (x *proxy) do(a order.Action) {
	switch a.Kind {
	case order.Dial:
		x.dial(a.Pipe)
	case order.Close:
		if end, ok := a.Pipe.Shell.(*pipeEnd); ok && end.c != nil {
			a.Pipe.Shell = nil
			end.c.close(0)
		}
	case order.Write:
		x.write(a.Pipe)
	case order.Fail:
		s := a.Request.Session.Owner.(*session)
		var reply any = failed{}
		if a.Outcome == order.WaitOver {
			reply = nothing{}
		}
		s.deliver(x.commands[int(a.Request.Seq)], reply)
	case order.Undone:
		a.Request.Part.(order.Asker).Undone()
	case order.Proceed:
		if s, ok := a.Session.Owner.(*session); ok {
			s.take()
		}
	case order.Arm:
		x.timer++
		timer := x.timer
		x.w.after(x.p, a.After, func() {
			if x.timer == timer {
				x.machine.RetryTimer(x.w.now)
				x.act()
			}
		})
	case order.Post:
		x.w.after(x.p, 0, func() {
			x.machine.RetryTurn(x.w.now)
			x.act()
		})
	case order.Watch:
		x.w.after(x.p, order.SilenceTick, x.tick)
	case order.Refresh:
		x.p.agent.refreshSoon()
	case order.ClaimPop, order.ClaimWait, order.ClaimEnd, order.ClaimArm:
		a.Session.Owner.(*session).claimed(a)
	}
}

// dial connects a pipe and introduces it.
func (x *proxy) dial(p *order.Pipe) {
	attempt := p.Attempt()
	end := &pipeEnd{x: x, p: p}
	x.w.dial(x.p, p.Node.Member.Addr, end, func(at *proc, c *conn) endpoint { return &nodeEnd{at: at, c: c} }, func(c *conn) {
		if c == nil {
			if p.Attempt() == attempt {
				x.machine.Lost(p, errUnreachable, x.w.now)
				x.act()
			}
			return
		}
		generation, ok := x.machine.Connected(p, attempt)
		if !ok {
			c.close(0)
			return
		}
		end.c, p.Shell = c, end
		c.send(0, pipeGreeting{pipeKey{x.p.name, p.Lane}, p.Node.Member.Name(), generation})
	})
}

var (
	errUnreachable = errors.New("nobody listens")
	errCut         = errors.New("connection closed")
)

// write sends what a pipe has queued, a message for each request.
func (x *proxy) write(p *order.Pipe) {
	end, ok := p.Shell.(*pipeEnd)
	if !ok {
		return
	}
	for len(p.Queued()) > 0 {
		var parser resp.Parser
		prefix, length, ok := member.CutPrefix(p.Queued())
		if !ok || parser.Parse(p.Queued()[length:]) != resp.Done {
			panic("BUG: a request made by the proxy does not parse")
		}
		end.c.send(0, x.message(prefix, parser.Args()))
		p.Wrote(length + parser.Len())
	}
}

// databaseOf is the database of a command: 0, 5 or 10.
func databaseOf(id int) uint8 { return uint8(id % 3 * 5) }

// message is what a request behind a prefix says to a node of the simulation.
func (x *proxy) message(prefix member.Prefix, args [][]byte) any {
	known := func(id int) *command {
		if got := databaseOf(id); got != prefix.Database {
			panic(fmt.Sprintf("BUG: a request of database %d names %d: %q", got, prefix.Database, args))
		}
		return x.commands[id]
	}
	commandOf := func(id []byte) *command {
		n, _ := strconv.Atoi(string(id))
		return known(n)
	}
	if string(args[0]) != member.Name {
		if len(args) == 1 {
			return pinging{}
		}
		if string(args[0]) == pop.String() {
			from, id := x.w.parseKeys(args[1 : len(args)-1])
			seconds, _ := strconv.ParseFloat(string(args[len(args)-1]), 64)
			return popping{cmd: known(id), from: from, limit: time.Duration(seconds * float64(time.Second)), waited: prefix.Waited, sent: x.w.now}
		}
		if string(args[0]) == "XREADGROUP" {
			millis, keys, _ := parseRead(args[4:])
			from, id := x.w.parseKeys(keys)
			limit := time.Duration(max(0, millis)) * time.Millisecond
			return popping{known(id), from, limit, millis < 0, prefix.Waited, x.w.now}
		}
		if string(args[0]) == read.String() {
			millis, keys, ids := parseRead(args[3:])
			from, id := x.w.parseKeys(keys)
			limit := time.Duration(max(0, millis)) * time.Millisecond
			return reading{popping{known(id), from, limit, millis < 0, prefix.Waited, x.w.now}, parseIDs(ids)}
		}
		return request{commandOf(args[2])} // behind its key
	}
	switch string(args[1]) {
	case member.VerbGather:
		_, id := x.w.parseKeys(args[3:5])
		return gathering{known(id)}
	case member.VerbClaim:
		claim, _ := member.ParseClaim(args[2:])
		from, id := x.w.parseKeys(claim.Keys)
		return claiming{known(id), from, parseIDs(claim.IDs), claim.Waited, x.w.now}
	case member.VerbPass:
		pass, _ := member.ParsePass(args[2:])
		at, id := x.w.parseKeys([][]byte{pass.Key})
		known(id)
		return passing{at[0], pass.Turn}
	case member.VerbListen:
		l, _ := member.ParseListen(args[2:], uint8(pubsub.Kinds))
		l.Name = bytes.Clone(l.Name)
		return listening{l}
	case member.VerbCancel:
		token, _ := member.ParseCancel(args[2])
		return canceling{token}
	case member.VerbRetry:
		epoch, _ := member.ParseRetry(args[2])
		return retrying{epoch}
	case member.VerbLevel:
		return pinging{} // it changes nothing here
	}
	wanted, words, _ := member.ParseEach(args[2:])
	q := question{cmd: commandOf(words[1])}
	for k, p := range x.w.tracked {
		if wanted.Has(p) {
			q.wanted |= 1 << k
		}
	}
	return q
}

func (e *pipeEnd) closed() {
	if e.p.Shell == e {
		e.x.machine.Lost(e.p, errCut, e.x.w.now)
		e.x.ears.broke()
		e.x.act()
	}
}

func (e *pipeEnd) received(m any) {
	x, p := e.x, e.p
	if p.Shell != e {
		return
	}
	p.Heard()
	if p.IsOpening() {
		p.AnswersLater = x.w.later || x.w.claims || x.w.reads
		x.machine.Opened(p, x.w.now)
		x.ears.broke()
		x.act()
		return
	}
	r := p.Front()
	switch m := m.(type) {
	case later:
		m.settled.note()
		if !x.machine.Later(p, m.token, m.settled.text()) {
			x.w.violate("a token is out of step")
		}
	case pushed:
		x.completed(p, &m)
	case moved:
		x.machine.Refused(p, order.Refusal{Moved: true, Partition: m.partition, Addr: m.addr}, x.w.now)
	case waitFor:
		x.machine.Refused(p, order.Refusal{Epoch: m.epoch}, x.w.now)
	case message:
		x.ears.heard(m)
	case lost:
		x.ears.lost()
	case covered:
		c, id := r.Part.(*census), r.ID
		p.Pop()
		c.answer(id, &m)
	case readied:
		m.settled.note()
		part, id := r.Part, r.ID
		p.Pop()
		part.Done(id, m.raw)
	case []byte:
		part, id := r.Part, r.ID
		p.Pop()
		part.Done(id, m)
	default:
		s, seq := r.Session, int(r.Seq)
		if p.Pop(); s != nil {
			s.Owner.(*session).deliver(x.commands[seq], m)
		}
	}
	x.act()
	x.followMoves()
}

// completed handles the completion of a command that was answered later.
func (x *proxy) completed(p *order.Pipe, m *pushed) {
	var ok bool
	switch reply := m.reply.(type) {
	case moved:
		ok = x.machine.RefusedLater(p, m.token, order.Refusal{Moved: true, Partition: reply.partition, Addr: reply.addr}, x.w.now)
	case waitFor:
		ok = x.machine.RefusedLater(p, m.token, order.Refusal{Epoch: reply.epoch}, x.w.now)
	default:
		var r order.Request
		r, ok = x.machine.Completed(p, m.token)
		switch claim := reply.(type) {
		case []byte:
			r.Part.Done(r.ID, claim)
		default:
			r.Session.Owner.(*session).deliver(x.commands[int(r.Seq)], reply)
		}
	}
	if !ok {
		x.w.violate("a completion is out of step")
	}
}

// followMoves ends the iteration in which something was redirected.
func (x *proxy) followMoves() {
	if !x.machine.HasMoves() || x.moves {
		return
	}
	x.moves = true
	x.w.after(x.p, 0, func() {
		x.moves = false
		x.machine.FollowMoves(x.w.now)
		x.act()
	})
}
