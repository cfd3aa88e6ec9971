package node

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// internal/session queues a client's transaction here. A proxy queues its clients' transactions, and
// sends each as one request (see internal/member). transaction_plan.go looks at all of a transaction
// before transaction_run.go executes it.

// watch: WATCH key...
func watch(r *request) {
	st := r.conn.State
	r.named(command.Watch)
	if text := st.RefuseWatch(r.Args[1:]); text != "" {
		r.Fail(text)
		return
	}
	if watched, ok := r.versions(); ok {
		r.watched(watched)
	}
}

// watched answers WATCH, or DUNLIN WATCH on a pipe.
func (r *request) watched(watched []session.Watched) {
	if r.conn.pipe == nil {
		r.conn.State.WatchOwn(watched)
		r.ReplyOK()
		return
	}
	if !r.Room(len(watched) * (len(watched[0].Version) + 32)) {
		return
	}
	r.Out = resp.AppendArray(r.Out, len(watched))
	for i := range watched {
		r.Out = resp.AppendBulk(r.Out, watched[i].Version)
	}
}

// watchFor: DUNLIN WATCH key... With many keys it goes on as a WATCH.
func watchFor(r *request) {
	r.Args = r.Args[1:]
	r.named(command.Watch)
	if watched, ok := r.versions(); ok {
		r.watched(watched)
	}
}

// versions returns copies of the keys behind the first argument, with their versions. If this node
// does not serve them, it answers that and returns false. So it does if it goes on with more keys
// later.
func (r *request) versions() (watched []session.Watched, ok bool) {
	if r.Database != 0 && !r.admitDatabase(r.Database) || !r.admitKeys(true) {
		return nil, false
	}
	locks := r.LockKeys()
	defer locks.Release()
	locks.AtOnce = watchedAtOnce
	if watched, _ = locks.State.([]session.Watched); watched == nil {
		watched = make([]session.Watched, 0, len(r.Keys))
	}
	for i := locks.First; i < len(r.Keys); i++ {
		t, key, ok := locks.At(i)
		if !ok {
			locks.State = watched
			locks.Stop(i, 0)
			return nil, false
		}
		both := r.appendVersion(append(make([]byte, 0, len(key)+versionRoom), key...), t, key)
		watched = append(watched, session.Watched{
			Key: both[:len(key):len(key)], Version: both[len(key):], Database: r.Database,
		})
	}
	return watched, true
}

// versionRoom is about how long a version is, in bytes.
const versionRoom = 32

// appendVersion appends the version of a key: the engine's, and with it the life of this node and
// the ownership of the partition in which it counts.
func (r *request) appendVersion(dst []byte, t engine.Txn, key []byte) []byte {
	return r.node.appendVersion(dst, r.view.Began[r.Partition], r.Placement.Pins(r.Database), t, key)
}

// appendVersion appends the version of a key in a partition that the node has gained in an epoch.
func (n *Node) appendVersion(dst []byte, began uint64, pinned bool, t engine.Txn, key []byte) []byte {
	v := t.VersionOf(key)
	for _, n := range []uint64{uint64(n.cfg.Boot), began, uint64(v.Era), uint64(v.Count)} {
		dst = append(strconv.AppendUint(dst, n, 36), '.')
	}
	if pinned { // its counts are those of another partition
		dst = append(dst, "p."...)
	}
	return strconv.AppendBool(dst, v.Found)
}

// named sets and counts a command that has no handler.
func (r *request) named(id command.ID) {
	r.Cmd = command.ByID(id)
	r.worker.Count.Commands[id]++
	r.conn.State.LastCmd = id
}

// enqueue queues the command at hand. If it is long it stays where it was read.
func (r *request) enqueue(c *command.Command) {
	var in session.Input
	if isLong(r.Args) && !r.conn.parser.Inline() { // words of a line may lie elsewhere
		if b := r.keepInput(); b != nil {
			in = b
		}
	}
	r.Out = r.conn.State.Enqueue(c, r.Args, in, r.Out)
}

// execute: EXEC of a client of this node.
func execute(r *request) {
	r.named(command.Exec)
	st := r.conn.State
	tx, out, ok := st.Exec(r.Out)
	if r.Out = out; !ok {
		r.worker.Count.Errors++
		return
	}
	p := newPlanning(r, &transaction{Transaction: tx, owned: true})
	p.watched, p.commands = len(tx.Watched), len(tx.Queue)
	p.publishesHere = r.Level() < ring.PinnedLevel
	p.goOn(r)
}

// newPlanning plans a transaction, which begins in the database of the request.
func newPlanning(r *request, x *transaction) planning {
	x.database = r.Database
	return planning{x: x, heap: r.Heap, placement: r.Placement, databases: r.Databases, database: r.Database}
}

// execFor: DUNLIN EXEC slot watched {key version}... request...
func execFor(r *request) {
	p := newPlanning(r, &transaction{Transaction: &session.Transaction{}})
	p.encoded, p.keyed = true, true
	if !p.read(r.Args) {
		r.Fail(errBadExec)
		return
	}
	if !r.admitSlot(p.slot) {
		return
	}
	r.named(command.Exec)
	if p.isLong() {
		p.keep(r)
		p.later(r)
		return
	}
	p.goOn(r)
}
