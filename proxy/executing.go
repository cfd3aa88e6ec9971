package proxy

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// executing is EXEC of a long transaction: of more than maxKeys commands, of more than chunkBytes,
// or with slow commands that need no node. Its loop divides the commands among the parts in turns of
// maxKeys words or chunkBytes, executes those that need no node in such turns, and then sends the
// parts. If the arguments are long, a goroutine divides the commands: one argument may be longer than a
// turn may take.
type executing struct {
	s       *client
	tx      *session.Transaction
	t       *transaction
	lane    order.Lane
	queued  bool        // it waits for its turn
	apart   bool        // a goroutine divides it: only that may use tx and t
	gone    atomic.Bool // nobody needs it any more
	divided bool        // all watched keys and commands are in their parts
	refused bool        // the keys lie in several slots and must not

	watched int // so many pieces of watched keys are in their part
	next    int // the command that is divided next
	words   int // that were looked at in this turn; wordBytes count as one more
	local   int // so many commands were executed here, as far as they need no node

	// Of the command that is divided next, if it is long:
	keys    command.KeyRuns // nil: it was not begun
	slot    uint16          // of the first key
	looked  int             // so many of its arguments were looked at: the keys among them were compared
	length  int             // of these, encoded
	encoded int             // so many of its arguments are in the part's body

	size int // of the requests, at most; charged to the session
	own  int // of tx; charged to the session
}

// apartBytes is from how many bytes of arguments on a goroutine divides a transaction.
const apartBytes = 1 << 20

// wordBytes of long arguments make a turn as long as another word.
const wordBytes = chunkBytes / maxKeys

// execInTurns starts EXEC of a long transaction.
func (s *client) execInTurns(tx *session.Transaction) {
	size, own := s.state.QueuedBytes(), s.state.OwnBytes()
	if !s.Keep(size) {
		s.state.EndTransaction()
		s.chargeOther()
		s.answer(errNotParked)
		return
	}
	s.state.TakeTransaction()
	s.kept += own
	heavy := slices.ContainsFunc(tx.Queue, func(q session.Queued) bool { return q.Cmd.Flags&command.Heavy != 0 })
	x := &executing{s: s, tx: tx, t: s.newTransaction(tx), lane: s.laneFor(size, heavy), size: size, own: own}
	s.w.stats.Commands[command.Exec]++
	x.t.seq = s.tail
	s.issue()
	s.long = x
	x.goOn()
}

func (x *executing) goOn() {
	s := x.s
	if x.queued || x.apart || s.long != x || s.waitsFor != nil || x.divided && !s.enterLane(x.lane) {
		return
	}
	x.queued = true
	s.w.turns.take(s.w.loop, x)
}

func (x *executing) turn() {
	x.queued, x.words = false, 0
	switch entries := len(x.t.entries); {
	case x.s.long != x: // the client has gone
		return
	case x.refused:
		x.refuse()
		return
	case !x.divided && x.size > apartBytes:
		x.apart = true
		x.s.w.proxy.dividers.Go(x.s.w.loop, x.divideApart, x.joinLoop)
	case !x.divided:
		x.refused = !x.divide()
	case !x.s.enterLane(x.lane):
	case x.local < entries:
		if !x.executeHere() {
			return
		}
	default:
		x.send()
	}
	x.goOn()
}

// divideApart divides all, in a goroutine.
func (x *executing) divideApart() {
	for !x.divided && !x.refused && !x.gone.Load() {
		x.words = 0
		x.refused = !x.divide()
	}
}

// joinLoop goes on with what a goroutine has divided.
func (x *executing) joinLoop(panicked bool) {
	x.apart = false
	switch {
	case x.s.long != x: // the client has gone
		x.free()
	case panicked:
		x.s.conn.Close(errPanicked)
	default:
		x.goOn()
	}
}

// dividers are goroutines that divide transactions for loops.
type dividers struct {
	log    *slog.Logger
	places chan struct{} // of those that compute
	all    sync.WaitGroup
}

func newDividers(log *slog.Logger) dividers {
	return dividers{log: log, places: make(chan struct{}, max(1, runtime.NumCPU()/2))}
}

// Go has f run in a goroutine, and then back on l.
func (d *dividers) Go(l *netloop.Loop, f func(), back func(panicked bool)) {
	d.all.Go(func() {
		d.places <- struct{}{}
		panics := true
		defer func() {
			if problem := recover(); problem != nil {
				d.log.Error("a long EXEC panics", "panic", problem, "stack", string(debug.Stack()))
			}
			<-d.places
			l.Post(func() { back(panics) })
		}()
		f()
		panics = false
	})
}

// divide adds watched keys and commands to their parts. It reports false if the keys lie in several
// slots and must not.
func (x *executing) divide() bool {
	for ; x.watched < len(x.tx.Encoded) && x.words < maxKeys; x.watched++ {
		e := &x.tx.Encoded[x.watched]
		x.words += e.Keys + len(e.Text)/wordBytes
		x.t.watch(e)
	}
	if !x.t.mayDivide() {
		return false
	}
	for x.next < len(x.tx.Queue) && x.words < maxKeys {
		q := x.tx.Queue[x.next]
		if len(q.Args) > maxKeys && isRemote(q.Cmd) {
			done, ok := x.divideLong(q)
			if !ok {
				return false
			}
			if !done {
				return true
			}
		} else if !x.addWhole(q) {
			return false
		}
		x.next++
		if !x.t.mayDivide() {
			return false
		}
	}
	x.divided = x.watched == len(x.tx.Encoded) && x.next == len(x.tx.Queue)
	return true
}

// addWhole adds a command in this turn.
func (x *executing) addWhole(q session.Queued) bool {
	x.words += len(q.Args)
	for _, arg := range q.Args {
		x.words += len(arg) / wordBytes
	}
	return x.t.add(q)
}

// divideLong adds a long command to its part, and reports whether all of it is added. ok is false
// if its keys lie in several slots and must not. If they may, it is cut in one turn.
func (x *executing) divideLong(q session.Queued) (done, ok bool) {
	t := x.t
	if x.keys == nil {
		if x.keys = q.Cmd.KeyRuns(q.Args); x.keys == nil {
			return true, x.addWhole(q)
		}
		x.slot = t.placement.SlotOf(t.database, q.Args[q.Cmd.FirstKey(q.Args)])
		x.looked, x.length, x.encoded = 0, 0, 0
	}
	for ; x.looked < len(q.Args) && x.words < maxKeys; x.looked++ {
		x.words++
		arg := q.Args[x.looked]
		if x.length += member.BulkSize(arg); x.keys.Has(x.looked) && t.placement.SlotOf(t.database, arg) != x.slot {
			x.keys = nil
			return true, x.t.relaxed && x.addWhole(q)
		}
	}
	if x.looked < len(q.Args) {
		return false, true
	}
	p := &t.parts[t.part(x.slot)]
	if x.encoded == 0 {
		p.body = member.AppendQueuedHeader(slices.Grow(p.body, min(x.size, chunkBytes)), len(q.Args), x.length)
	}
	for first := x.encoded; x.encoded < len(q.Args) && (x.words < maxKeys || x.encoded == first); x.encoded++ {
		arg := q.Args[x.encoded]
		x.words += 1 + len(arg)/wordBytes
		p.body = resp.AppendBulk(p.body, arg)
	}
	if x.encoded < len(q.Args) {
		return false, true
	}
	p.body = member.AppendQueuedEnd(p.body)
	p.commands++
	t.entries = append(t.entries, entry{Queued: q, parts: p.alone})
	x.keys = nil
	return true, true
}

// executeHere executes the next commands that need no node, until their words and replies make a
// turn. It reports false if there is no memory for the replies: then the session is closed.
func (x *executing) executeHere() bool {
	for ; x.local < len(x.t.entries) && x.words < maxKeys; x.local++ {
		size, ok := x.t.executeHere(x.local)
		if !ok {
			return false
		}
		x.words += 1 + size/wordBytes
	}
	return true
}

// send sends the parts, if the pipes have room for them.
func (x *executing) send() {
	s, t := x.s, x.t
	for i := range t.parts {
		if owner := s.w.order.Owner(ring.Partition(t.parts[i].slot)); owner != nil {
			if p := owner.Pipe(s.Lane()); p.IsFull(x.size) {
				s.waitFor(p)
				return
			}
		}
	}
	requests := make([][]byte, len(t.parts))
	for i := range t.parts {
		requests[i] = t.parts[i].request()
	}
	t.send(requests)
	x.end()
	s.progress()
}

// refuse answers that the keys lie in several slots.
func (x *executing) refuse() {
	s := x.s
	x.end()
	s.reply(x.t.seq, s.crossSlot())
}

// take gives a request away: it was made for that.
func (x *executing) take(raw []byte) order.Body {
	n := min(len(raw), x.size)
	x.size -= n
	return &shared{s: x.s, uses: 1, copy: n}
}

func (x *executing) client() *client { return x.s }

func (x *executing) end() {
	x.s.long = nil
	x.gone.Store(true)
	if !x.apart {
		x.free()
	}
}

// free frees the transaction, and what is left of its requests.
func (x *executing) free() {
	x.tx.Release()
	x.s.Keep(-x.size - x.own)
	x.size, x.own = 0, 0
}
