package exec

import (
	"context"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// KeyLocks walks over the keys of a command and locks one partition at a time. Neighbouring keys in
// one partition share the lock, as all keys with one {hash tag} do.
//
// A walk stops before a partition that somebody else holds, and behind every keysAtOnce keys, or
// RewriteFrom bytes that were copied, so that no command of many keys keeps the loop. When the hold
// has ended, or when others of the loop had their turn, the command runs again, from the key before
// which it stopped.
type KeyLocks struct {
	r         *Request
	txn       engine.Txn
	partition uint16
	locked    bool
	touched   int // how many keys were passed to Engine.Touch
	start     int // where this run's part of the reply begins in Out
	firstPin  int
	single    bool         // it walks over elements of one key
	copied    int          // bytes, in this run
	holder    *engine.Hold // why the walk stopped, if not for its length

	First  int   // the first key to visit: those before were visited by earlier runs
	Sum    int64 // what earlier runs counted
	State  any   // of the command; Stop keeps it for the next run, or calls its End if there is none (see runner)
	AtOnce int   // how many keys are visited in one run
}

// keysAtOnce is how many keys most commands visit in one run: about 0.2 ms.
const keysAtOnce = 1024

// LockKeys begins a walk over the command's keys. What the handler appends to Out from here on is
// its reply. The caller must call Release at the end.
func (r *Request) LockKeys() (k KeyLocks) {
	k.begin(r)
	return k
}

func (k *KeyLocks) begin(r *Request) {
	*k = KeyLocks{r: r, start: len(r.Out), firstPin: len(r.Pins), AtOnce: keysAtOnce}
	if rest := r.Rest; rest != nil {
		k.First, k.Sum, k.State, rest.state = rest.Done, rest.sum, rest.state, nil
	}
	k.touched = k.First
}

// Begun returns where this run's part of the reply begins in Out.
func (k *KeyLocks) Begun() int { return k.start }

// LockElements begins a walk over the elements that a command names for its only key, argument 1. At
// locks the same partition for each.
func (r *Request) LockElements() KeyLocks {
	k := r.LockKeys()
	k.single = true
	return k
}

// At locks the partition of the i-th key, if it is not locked yet, and unlocks the one before. t is
// valid until the next call. i must not skip keys. A walk may go round twice: then the first key
// follows on the last one. If ok is false, the walk stops before the key: call Stop, and return.
func (k *KeyLocks) At(i int) (t engine.Txn, key []byte, ok bool) {
	r := k.r
	p := r.Partition
	if k.single {
		key = r.Args[1]
	} else {
		if i == k.touched && i < len(r.Keys) {
			k.touch()
		}
		at := i
		if at >= len(r.Keys) {
			at -= len(r.Keys)
		}
		key, p = r.Args[r.Keys[at]], r.Partitions[at]
	}
	if r.InTransaction && i-k.First < k.AtOnce {
		return r.Transaction, key, true
	}
	if i-k.First >= k.AtOnce {
		k.Hold()
		return t, nil, false
	}
	if k.locked && k.partition == p {
		return k.txn, key, true
	}
	k.Release()
	k.txn = r.Engine.Lock(engine.Section(p, r.Database), r.Now)
	if r.Actor != 0 {
		k.txn.As(r.Actor)
	}
	k.partition, k.locked = p, true
	if h := k.txn.Holder(); h != nil && h != r.Hold {
		k.Release()
		k.holder = h
		return t, nil, false
	}
	if next := i + 1; next < len(r.Keys) && r.Partitions[next] == p && r.Cmd.Flags&command.Write != 0 {
		r.BeginUnit(k.txn)
	}
	return k.txn, key, true
}

// Copied notes that the command has copied n bytes for the i-th key. A walk stops when it has copied
// much, as it stops behind many keys.
func (k *KeyLocks) Copied(i, n int) {
	if k.copied += n; k.copied > RewriteFrom {
		k.AtOnce = min(k.AtOnce, i+1-k.First)
	}
}

// Hold unlocks the partition. If all keys lie in it, the command holds it until it is answered, so
// that nobody sees the command half done.
func (k *KeyLocks) Hold() {
	r := k.r
	defer k.Release()
	if r.Hold != nil || !k.single && !r.InOne && !inOne(r.Partitions) {
		return
	}
	t := k.txn
	if r.InTransaction {
		t = r.Transaction
	}
	r.Host.HoldOn(t)
}

// inOne reports whether all keys lie in one partition.
func inOne(partitions []uint16) bool {
	for _, p := range partitions {
		if p != partitions[0] {
			return false
		}
	}
	return true
}

// Stop has the command go on later from the i-th key, before which At stopped. sum is what was
// counted so far.
func (k *KeyLocks) Stop(i int, sum int64) {
	r := k.r
	if i == 0 {
		if r.Undo(k.start); !r.Listed && r.Rest == nil { // the reply may have begun
			r.Host.Held(k.holder)
			return
		}
	}
	rest := new(Rest)
	if r.Rest == nil {
		rest.take(r)
	} else {
		*rest, *r.Rest = *r.Rest, Rest{} // which ends with this run
	}
	rest.Done, rest.sum, rest.state, rest.holder = i, sum, k.State, k.holder
	rest.reply.Take(r, k.start, k.firstPin)
	kept := rest.kept
	if r.Host.Later(rest); kept {
		r.Keys, r.Partitions = nil, nil // they are the rest's
	}
}

// Whole puts what earlier runs replied in front of this run's reply. Call it when the last key was
// visited.
func (k *KeyLocks) Whole() {
	k.Release()
	if rest := k.r.Rest; rest != nil && !rest.reply.Empty() {
		rest.reply.Take(k.r, k.start, k.firstPin)
		rest.reply.Answer(k.r)
	}
}

// WholeText is Whole for a reply whose beginning is known only in the end: head, what earlier runs
// replied, and t. It reports false if there was no room for all of it.
func (k *KeyLocks) WholeText(head []byte, t *Text) (fits bool) {
	k.Release()
	r := k.r
	if rest := r.Rest; rest != nil && !rest.reply.Empty() {
		fits = rest.reply.AppendText(r.Heap, t)
		rest.reply.Head = head
		rest.reply.Answer(r)
		return fits
	}
	if !r.Room(len(head)) {
		t.Drop()
		return false
	}
	r.Out = append(r.Out, head...)
	return r.ReplyText(t)
}

// touch has the engine read the next keys' memory ahead, up to MaxAhead keys at a time, so that
// their cache misses overlap.
func (k *KeyLocks) touch() {
	r, probes := k.r, &k.r.Worker.Probes
	n := min(len(r.Keys)-k.touched, len(probes))
	for i := range n {
		at := k.touched + i
		probes[i] = engine.Probe{Section: engine.Section(r.Partitions[at], r.Database), Key: r.Args[r.Keys[at]]}
	}
	k.touched += n
	if n > 1 {
		r.Engine.Touch(probes[:n])
	}
	clear(probes[:n])
}

// Release unlocks the partition that At has locked, if any.
func (k *KeyLocks) Release() {
	if k.locked {
		k.locked = false
		k.txn.Unlock()
	}
}

// Rest is a command of several keys that has visited some of them.
type Rest struct {
	cmd        *command.Command
	Done       int // so many keys
	args       [][]byte
	input      *netloop.Buffer // in which they lie; nil: elsewhere
	kept       bool            // the request's own lists became the rest's
	keys       []int           // Request.Keys and Partitions
	partitions []uint16
	database   uint8
	pinned     bool // the database is

	upload  *Upload
	sum     int64
	state   any
	reply   Gathered      // so far
	holder  *engine.Hold  // somebody else's, for whose end the command waits
	held    bool          // for too long
	waited  time.Duration // Request.Waited
	host    Host
	heap    Heap
	charged int64
}

// take keeps the present command, and becomes the owner of its upload. Of a very long command it takes
// over all memory: to copy a million keys would take as long as to visit very many of them.
func (rest *Rest) take(r *Request) {
	rest.cmd, rest.host, rest.heap, rest.upload, rest.waited = r.Cmd, r.Host, r.Heap, r.Upload, r.Waited
	rest.database, rest.pinned = r.Database, r.Placement.Pins(r.Database)
	r.Upload.HideElements(r.Args)
	if rest.upload != nil {
		r.giveUpload()
	}
	size := int64(len(r.Args)) * ArgSize
	rest.input, rest.kept = r.Host.KeepArgs()
	if rest.input == nil { // whose bytes would be charged already
		for _, arg := range r.Args {
			size += int64(len(arg))
		}
	}
	if rest.kept {
		rest.args, rest.keys, rest.partitions = r.Args, r.Keys, r.Partitions
	} else {
		rest.args, rest.keys, rest.partitions = CloneArgs(r.Args), slices.Clone(r.Keys), slices.Clone(r.Partitions)
	}
	rest.charge(size + int64(len(rest.keys))*KeySize)
}

// IsPlaced reports whether the keys lie still where they did.
func (rest *Rest) IsPlaced(r *Request) bool { return r.Placement.Pins(rest.database) == rest.pinned }

// Next returns the places among Request.Keys that the next run visits at most.
func (rest *Rest) Next() (from, to int) {
	from = rest.Done % len(rest.keys)
	return from, min(from+keysAtOnce, len(rest.keys))
}

// ArgSize is the memory of an argument beside its bytes, a slice, and KeySize that of a key's places.
const ArgSize, KeySize = 24, 10

// charge takes memory that is in use already: what has begun is executed to its end.
func (rest *Rest) charge(n int64) {
	if rest.heap.Charge(n) {
		rest.charged += n
	}
}

// runner is a State with something to do between two runs of its command, in a goroutine.
type runner interface{ RunBetween(ctx context.Context) }

// Gatherer is a State of a command that changes nothing before its last run. Such a command ends between two
// runs if nobody waits for its reply any more.
type Gatherer interface{ OnlyGathers() }

// changesNothing reports whether the command has changed nothing so far.
func (rest *Rest) changesNothing() bool {
	_, gathers := rest.state.(Gatherer)
	return gathers || rest.cmd.Flags&command.Write == 0
}

// Waits reports whether Run takes long: it waits for the end of somebody else's hold, or has
// something to do.
func (rest *Rest) Waits() bool {
	_, runs := rest.state.(runner)
	return runs || rest.holder != nil
}

// Run waits for the end of the hold, or does what the command has to do in between.
func (rest *Rest) Run(ctx context.Context) {
	if state, ok := rest.state.(runner); ok {
		state.RunBetween(ctx)
	}
	if rest.holder != nil {
		rest.held = !rest.host.AwaitHold(ctx, rest.holder, &rest.waited)
	}
}

// Reply executes the command from where it has stopped. It is given up if it waited for too long, one that
// only reads if there is no memory for its reply, and one that has changed nothing if nobody waits for it.
func (rest *Rest) Reply(r *Request) {
	text, reads := "", rest.cmd.Flags&command.ReadOnly != 0
	switch {
	case rest.held && (reads || rest.Done == 0):
		text = ErrHeld
	case rest.held:
		text = errHeldPartly
	case rest.reply.lost && reads:
		text = ErrOOM
	case rest.changesNothing() && r.Host.IsAbandoned():
		text = ErrAbandoned
	}
	if text != "" {
		r.Cmd = rest.cmd
		r.Fail(text)
		return
	}
	keys, partitions := r.Keys, r.Partitions // the next commands use their memory
	r.Args, r.Upload, r.Rest, r.Keys, r.Partitions = rest.args, rest.upload, rest, rest.keys, rest.partitions
	r.Waited, r.Database = rest.waited, rest.database
	r.Host.Again()
	r.Upload, r.Rest, r.Keys, r.Partitions, r.Waited = nil, nil, keys, partitions, 0
}

// End frees what the command has not used.
func (rest *Rest) End() {
	if state, ok := rest.state.(interface{ End() }); ok {
		state.End()
	}
	rest.reply.End()
	if rest.upload != nil {
		rest.upload.Drop()
	}
	rest.input.Release()
	if rest.charged > 0 {
		rest.heap.Refund(rest.charged)
	}
}
