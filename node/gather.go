package node

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command whose keys lie in several slots, as far as that is allowed (proxy.Config.RelaxedSlots), is executed by the
// owner of its home: the partition of the key under which it stores, or else of its first key. A goroutine borrows
// what the keys hold from their owners (gather_loans.go), executes the command on that, beside all other data
// (gather_scratch.go), and stores the result at home (gather_home.go):
//
//	loop       GATHER SUNIONSTORE d a b: token 7 ··································· push 7: reply
//	goroutine      LEND a ─ LEND b ─ scratch: RESTORE a, RESTORE b, SUNIONSTORE d a b, DUMP d ─ home: RESTORE d
//
// So nothing is held while others are asked, and what is stored is stored in one moment, by a command that followers,
// waiters and those who track keys know. The values that were lent may have changed by then. Where the key that is
// stored under is read, too, or another one is to be deleted, versions are compared, and the command begins anew if
// they are others (gather_move.go).

const (
	// gatherPatience is how long a gathered command takes at most, but for the end of what it has begun to store.
	gatherPatience = 5 * time.Second
	// gathersAtOnce is how many such commands a node executes at a time. Others wait.
	gathersAtOnce = 64
	// gatherCost is what an argument takes beside its bytes.
	gatherCost = 128
	// gatherTries is how often one begins anew because a key has changed meanwhile.
	gatherTries = 16
)

// gathers are what gathered commands share.
type gathers struct {
	places    chan struct{} // of all
	computing chan struct{} // of those that do not wait for others
	long      longWork      // the turns of those whose values are long
	asking    chan struct{} // of keys that are borrowed
	scratches scratches
	homes     sync.Pool     // of *home: as many as are used at a time, without a wait for others
	reserved  sync.Pool     // of *reservations
	retries   atomic.Uint64 // see Stats
}

func (g *gathers) open(n *Node) {
	g.places, g.computing = make(chan struct{}, gathersAtOnce), make(chan struct{}, max(1, runtime.NumCPU()/2))
	g.asking, g.scratches.node = make(chan struct{}, gathersAtOnce), n
	g.long = longWork{node: n, turn: make(chan struct{}, 1)}
}

// gatherRun is a gathered command: an exec.Work.
type gatherRun struct {
	node     *Node
	cmd      *command.Command
	args     [][]byte
	how      command.Gathering
	dest     int // argument; 0: none
	slot     uint16
	database uint8 // of its keys
	target   uint8 // of the key that it stores under: COPY may name another one
	version  resp.Version
	heap     exec.Heap
	charged  int64
	deadline time.Time
	lent     int // bytes of what was lent, so far

	reply        exec.Gathered
	text         string // not empty: an error
	moved        bool   // nothing was executed: this node is not the home any more
	hits, misses uint64 // of keys in scratches
}

// Why a gathered command ends.
var (
	errNotHome    = errors.New("this node does not serve the partition any more")
	errKeyChanged = errors.New("a key has changed meanwhile")
)

const (
	errGatherLate = textError("TRYAGAIN not executed: the nodes that have the keys have not answered in time, " +
		"try again in a moment")
	errGatherBusy = textError("TRYAGAIN not executed: a key has changed all the time, try again in a moment")
	errBadGather  = "ERR cannot gather: malformed request, or not on a pipe"
)

// gather: DUNLIN GATHER command arguments...
func gather(r *request) {
	args := r.Args[2:]
	c, refusal := command.Resolve(nil, args)
	if c == nil {
		r.Fail(string(refusal))
		return
	}
	how, at := c.Gathered(args), c.Home(args)
	if how == command.NotGathered || at == 0 || r.conn.pipe == nil {
		r.Fail(errBadGather)
		return
	}
	slot := ring.Slot(args[at])
	if !r.admitSpread(r.Database) || !r.admitSlot(slot) {
		return
	}
	switch {
	case how == command.GatherNew && areLong(args[1:]):
		r.Fail(errLongNew)
		return
	case c.ID == command.SMove && len(args[3]) > maxElement:
		r.Fail(errLong)
		return
	}
	w := &gatherRun{
		node: r.node, cmd: c, how: how, dest: c.Destination(args), slot: slot, database: r.Database, target: r.Database,
		version: r.Version(), heap: r.Heap, deadline: time.Now().Add(gatherPatience),
	}
	w.begin(r, args)
}

// begin hands the command to a goroutine.
func (w *gatherRun) begin(r *request, args [][]byte) {
	size := int64(len(args))*gatherCost + 2*wordBytes(args) // borrowInto notes the keys
	if !w.heap.Charge(size) {
		r.Fail(exec.ErrOOM)
		return
	}
	w.charged, w.args = size, exec.CloneArgs(args)
	r.Args = r.Args[:2] // all else is charged
	e := waits
	if w.dest != 0 {
		e = settles // behind the end of the pipe nothing is stored
	}
	r.workLater(w, e, unkeyed)
}

// wordBytes is how long words are together.
func wordBytes(words [][]byte) (n int64) {
	for _, word := range words {
		n += int64(len(word))
	}
	return n
}

// Run executes the command, in a goroutine.
func (w *gatherRun) Run(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, w.deadline)
	defer cancel()
	defer func() {
		if problem := recover(); problem != nil {
			w.node.log.Error("a gathered command panics", "panic", problem, "stack", string(debug.Stack()))
			w.fail(ctx, textError(errInternal))
		}
	}()
	leave, err := enter(ctx, w.node.gathers.places)
	if err == nil {
		defer leave()
		err = w.run(ctx)
	}
	if err != nil {
		w.fail(ctx, err)
	}
}

// enter takes a place, and returns what gives it back. Behind the end of ctx nobody gets one.
func enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rest waits before something is tried again. It returns an error if ctx ends meanwhile.
func (g *gathers) rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(loanPause):
		g.retries.Add(1)
		return nil
	}
}

func (w *gatherRun) run(ctx context.Context) error {
	switch w.how {
	case command.GatherRead:
		return w.read(ctx)
	case command.GatherCopy, command.GatherMove:
		return w.move(ctx)
	case command.GatherElement:
		return w.moveElement(ctx)
	case command.GatherNew:
		return w.setNew(ctx)
	default:
		return w.again(ctx, w.store)
	}
}

// again calls f until no key has changed meanwhile.
func (w *gatherRun) again(ctx context.Context, f func(ctx context.Context) error) error {
	for tries := range gatherTries {
		if tries > 0 {
			w.node.gathers.retries.Add(1)
		}
		if err := f(ctx); !errors.Is(err, errKeyChanged) {
			return err
		}
	}
	return errGatherBusy
}

// fail notes why the command has ended.
func (w *gatherRun) fail(ctx context.Context, err error) {
	w.reply.End()
	var text textError
	switch {
	case errors.As(err, &text):
		w.text = string(text)
	case errors.Is(err, errNotHome):
		w.moved = true
	case errors.Is(ctx.Err(), context.Canceled):
		w.text = errCanceled
	default:
		w.text = string(errGatherLate)
	}
}

// compute has f compute when there is a place.
func (w *gatherRun) compute(ctx context.Context, f func() error) error {
	if w.lent >= longLoans {
		return w.node.gathers.long.compute(ctx, f)
	}
	leave, err := enter(ctx, w.node.gathers.computing)
	if err != nil {
		return err
	}
	defer leave()
	return f()
}

// answer answers with a reply, which is copied. An error is returned.
func (w *gatherRun) answer(reply []byte) error {
	if resp.IsError(reply) {
		return replyError(reply)
	}
	w.reply.Append(w.heap, reply) // or the reply is lost, and says so
	return nil
}

// read executes a command that stores nothing.
func (w *gatherRun) read(ctx context.Context) error {
	b := &borrowed{gatherRun: w}
	defer b.end()
	if err := b.borrow(ctx); err != nil {
		return err
	}
	return w.compute(ctx, func() error {
		reply, err := b.execute(ctx)
		if err != nil {
			return err
		}
		return w.answer(reply)
	})
}

// store executes a command that stores its result.
func (w *gatherRun) store(ctx context.Context) error {
	key := w.args[w.dest]
	b := &borrowed{gatherRun: w, dest: key}
	defer b.end()
	if err := b.borrow(ctx); err != nil {
		return err
	}
	var reply, dumped []byte
	err := w.compute(ctx, func() (err error) {
		if reply, err = b.execute(ctx); err != nil {
			return err
		}
		reply = bytes.Clone(reply) // an error, a number, or OK
		if !resp.IsError(reply) {
			dumped, err = b.scratch.do(ctx, []byte("DUMP"), key)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case resp.IsError(reply):
		return w.answer(reply)
	case resp.IsError(dumped):
		return w.answer(dumped)
	}
	return w.atHome(ctx, b.scratch.stored, func(x *home) error {
		expireAt := int64(0)
		switch {
		case b.before == nil:
		case !bytes.Equal(x.version(key), b.before.Version):
			return errKeyChanged
		case w.how == command.GatherMerge:
			expireAt = b.before.expireAt(x.Now)
		}
		if payload, found := resp.DecodeBulk(dumped); !found {
			dumped = x.remove(key)
		} else {
			dumped = x.restore(key, payload, expireAt, true)
		}
		if resp.IsError(dumped) {
			reply = dumped
		}
		return w.answer(reply)
	})
}

// Reply answers the command, on the loop.
func (w *gatherRun) Reply(r *exec.Request) {
	host := r.Host.(*request)
	count := &host.worker.Count
	count.Hits, count.Misses = count.Hits+w.hits, count.Misses+w.misses
	count.Commands[w.cmd.ID]++
	r.Cmd = w.cmd
	switch {
	case w.moved:
		host.refuse(w.slot, ring.Partition(w.slot))
	case w.text != "":
		r.Fail(w.text)
	default:
		w.reply.Answer(r)
	}
}

// End frees what Reply has not used.
func (w *gatherRun) End() {
	w.reply.End()
	w.heap.Refund(w.charged)
	w.charged = 0
}
