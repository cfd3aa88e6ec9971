package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// planAtOnce is about how many words of a transaction are planned in one turn of the loop.
	planAtOnce = 1024
	// parseAtOnce is how many bytes of a command are parsed in one turn: about planAtOnce words, if
	// they are short.
	parseAtOnce = 16 << 10
	// planBytes is how long a proxy's transaction of up to planAtOnce commands may be, in bytes, to be
	// planned in the turn in which it came.
	planBytes = 128 << 10
)

// planning looks at all keys and commands of a transaction before the first one is executed: whether
// they are commands, and of one slot. What a proxy has encoded is parsed on the way. A long transaction
// takes several turns, as a command of many keys does: it is a job of its connection, and each turn is
// a planning of its own.
type planning struct {
	x       *transaction
	heap    exec.Heap
	keyed   bool   // slot is that of all keys so far
	slot    uint16 // a proxy names it, and it counts as keyed from the start
	problem string // why it cannot be executed

	watched, commands int   // how many there are
	looked            int   // how many of them are planned, watched keys first
	words             int   // that were looked at in this turn
	listed            bool  // of the command that comes next: keys are its keys
	keys              []int //
	hashed            int   // so many of them were compared

	tracking      *request // not nil, in a turn: the client, or its proxy, tracks what the commands read
	placement     ring.Placement
	publishesHere bool           // and on no channels of other nodes, so a channel is placed with the keys
	databases     int            // that commands can name
	used          ring.Databases // but 0
	database      uint8          // of the command that is planned

	encoded  bool // by a proxy, as follows
	versions [][]byte
	requests [][]byte
	parser   resp.Parser
	parsed   int // bytes of the request that comes next that parser has seen
}

// read takes a proxy's EXEC apart.
func (p *planning) read(args [][]byte) (ok bool) {
	p.slot, p.versions, p.requests, ok = member.ParseExec(args[2:])
	p.watched, p.commands = len(p.versions)/2, len(p.requests)
	p.parser.SetLimits(resp.Limits{}) // it passed the client's limits
	return ok
}

// isLong reports whether a proxy's transaction is too long to be planned in the turn in which it came.
func (p *planning) isLong() bool {
	if p.watched+p.commands > planAtOnce {
		return true
	}
	n := 0
	for _, raw := range p.requests {
		n += len(raw)
	}
	return n > planBytes
}

// keep has a long transaction survive the present input.
func (p *planning) keep(r *request) {
	size := int64(0)
	args := r.Args
	if p.x.input = r.keepInput(); p.x.input == nil {
		for _, arg := range args {
			size += int64(len(arg))
		}
		args = exec.CloneArgs(args)
	}
	p.x.owned = true
	p.x.charge(r.Heap, size+int64(len(args))*argCost)
	p.read(args)
	// At once, because what grows leaves garbage.
	*p.x.Transaction = session.Transaction{
		Queue: make([]session.Queued, 0, p.commands), Watched: make([]session.Watched, 0, p.watched),
	}
	r.Args = r.Args[:2] // all else is charged
}

// goOn plans for one turn. Behind the last one the transaction is executed.
func (p *planning) goOn(r *request) {
	r.Cmd = command.ByID(command.Exec)
	if r.conn.State.TracksNow() {
		p.tracking = r
	}
	p.turn()
	p.tracking = nil
	switch cn := r.conn; {
	case p.problem != "":
		cn.State.EndTransaction()
		r.Fail(p.problem)
		p.x.end(r.Heap)
	case p.looked < p.watched+p.commands || p.words > planAtOnce && p.x.owned:
		if p.encoded {
			p.x.chargeQueue(r.Heap)
		}
		p.later(r)
	case !p.admitDatabases(r) || p.keyed && !p.admitSlot(r):
		if !cn.Answering { // EXEC is answered; otherwise it waits for a move
			cn.State.EndTransaction()
		}
		p.leave(r)
	default:
		p.execute(r)
	}
	p.x = nil
}

// admitSlot is request.admitSlot for what is planned.
func (p *planning) admitSlot(r *request) bool {
	r.planned = p
	defer func() { r.planned = nil }()
	return r.admitSlot(p.slot)
}

// execute executes what is planned, unless it waits for the end of somebody's hold.
func (p *planning) execute(r *request) {
	p.x.keyed, p.x.partition, r.Database = p.keyed, ring.Partition(p.slot), p.x.database
	start, pins := len(r.Out), len(r.Pins)
	r.planned = p
	ended := r.transact(p.x)
	r.planned = nil
	if ended {
		p.leave(r)
	}
	if len(r.Pins) > pins {
		r.ticketed(start, pins)
	}
}

// leave frees the transaction, unless another planning has it, or EXEC will be read again: the commands
// are then still those of the connection's State.
func (p *planning) leave(r *request) {
	if p.x != nil && !r.putBack {
		p.x.end(r.Heap)
	}
}

// turn plans what it can of a turn, and all of what is not kept.
func (p *planning) turn() {
	for p.words = 0; !p.turnIsOver() && p.one(); {
	}
}

// one plans the next watched key or command, or some of a long command. It reports false if there
// is none, or a problem.
func (p *planning) one() bool {
	tx := p.x.Transaction
	switch i := p.looked - p.watched; {
	case p.looked < p.watched:
		if i = p.looked; p.encoded {
			database, version, ok := member.CutWatched(p.versions[2*i+1])
			if !ok {
				p.problem = errBadExec
				return false
			}
			tx.Watched = append(tx.Watched, session.Watched{Key: p.versions[2*i], Version: version, Database: database})
		}
		w := &tx.Watched[i]
		p.x.size += int64(len(w.Key)+len(w.Version)) + queuedCost
		p.key(w.Database, w.Key)
		p.words++
	case i == p.commands:
		return false
	case len(tx.Queue) == i && !p.parse(p.requests[i]), !p.compare(&tx.Queue[i]):
		return p.problem == ""
	}
	p.looked++
	return p.problem == ""
}

// turnIsOver reports whether what is left must be planned in later turns.
func (p *planning) turnIsOver() bool { return p.words >= planAtOnce && p.x.owned }

// compare compares the slots of a command's keys. It reports false if some are left for the next
// turn.
func (p *planning) compare(q *session.Queued) (whole bool) {
	if !p.listed {
		p.x.size += queuedCost
		for _, arg := range q.Args {
			p.x.size += int64(len(arg)) + argCost
		}
		p.keys, _ = q.Cmd.AppendKeys(p.keys[:0], q.Args)
		if channel := q.Cmd.Placed(); channel > 0 && p.publishesHere {
			p.key(0, q.Args[channel])
		}
		p.listed, p.hashed = true, 0
		if q.Cmd.ID == command.Select {
			p.selects(q.Args[1])
		}
		p.words += len(q.Args) - len(p.keys)
	}
	for ; p.hashed < len(p.keys) && (len(p.keys) <= planAtOnce || !p.turnIsOver()); p.hashed++ {
		key := q.Args[p.keys[p.hashed]]
		if p.key(p.database, key); p.tracking != nil && readsKeys(q.Cmd) {
			p.tracking.trackKey(p.database, key)
		}
		p.words++
	}
	p.listed = p.hashed < len(p.keys)
	return !p.listed
}

// selects notes the database of the commands behind a SELECT that is not executed yet.
func (p *planning) selects(database []byte) {
	if n, refusal := session.ParseDatabase(database, p.databases); refusal == "" {
		p.database = n
	}
}

// key compares the slot of a key, or of a channel as if it were one of database 0, with that of those before.
func (p *planning) key(database uint8, key []byte) {
	slot := p.placement.SlotOf(database, key)
	if p.keyed && slot != p.slot {
		switch {
		case !p.encoded:
			p.problem = session.ErrMultiCrossSlot
		case database == 0 && p.used == 0:
			p.problem = errBadExec
		default:
			p.problem = errMisplaced
		}
	}
	p.slot, p.keyed = slot, true
	if database != 0 {
		p.used = p.used.With(database)
	}
}

// admitDatabases reports whether the databases that the transaction uses are open, and its keys lie where they did
// when they were planned. If not, it answers that.
func (p *planning) admitDatabases(r *request) bool {
	for d := uint8(1); p.used>>d != 0; d++ {
		switch {
		case !p.used.Has(d):
		case !r.admitDatabase(d):
			return false
		case r.Placement.Pins(d) != p.placement.Pins(d):
			r.refuseDatabase(d)
			return false
		}
	}
	return true
}

// parse appends a command that a proxy has encoded. Its arguments are views. It reports false if
// the command cannot be queued, or if some of it is left for the next turn.
func (p *planning) parse(raw []byte) (whole bool) {
	if p.parsed += parseAtOnce; p.parsed > len(raw) || !p.x.owned {
		p.parsed = len(raw)
	}
	outcome := p.parser.Parse(raw[:p.parsed])
	if outcome == resp.NeedMore && p.parsed < len(raw) {
		p.words += planAtOnce
		return false
	}
	args := p.parser.Args()
	if p.parsed = 0; outcome != resp.Done || p.parser.Len() != len(raw) || len(args) == 0 {
		p.problem = errBadExec
		return false
	}
	c, _ := command.Resolve(nil, args)
	known := c != nil && plans[c.ID].handler != nil && plans[c.ID].keys != allKeys
	selects := c != nil && c.ID == command.Select
	if !selects && (!known || plans[c.ID].keys == noKeys && c.Route != command.AnyNode) {
		p.problem = errBadExec
		return false
	}
	if len(args) > planAtOnce {
		p.parser.GiveArgs()
	} else {
		args = append([][]byte(nil), args...)
	}
	tx := p.x.Transaction
	tx.Queue = append(tx.Queue, session.Queued{Cmd: c, Args: args})
	return true
}

// later has another turn go on, when the others of the loop have had theirs.
func (p *planning) later(r *request) { r.workLater(p.move(), yields, again) }

// move hands the transaction over to another planning, which goes on with it.
func (p *planning) move() *planning {
	next := new(planning)
	*next = *p
	p.x = nil
	return next
}

// Run does nothing: a planning waits for its turn, for the end of a hold, or for a move.
func (p *planning) Run(context.Context) {}

// Reply goes on.
func (p *planning) Reply(r *exec.Request) { p.goOn(r.Host.(*request)) }

// End gives up a transaction that has not begun.
func (p *planning) End() {
	if p.x != nil {
		p.x.end(p.heap)
	}
}
