package node

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// internal/session queues a client's transaction here. A proxy queues its clients' transactions, and
// sends each as one request (see internal/member). transaction_run.go executes them.

// watch: WATCH key...
func watch(r *request) {
	st := r.conn.State
	r.named(command.Watch)
	if text := st.RefuseWatch(r.Args[1:]); text != "" {
		r.Fail(text)
		return
	}
	if versions, ok := r.versions(); ok {
		r.watched(versions)
	}
}

// watched answers WATCH, or DUNLIN WATCH on a pipe.
func (r *request) watched(versions [][]byte) {
	if r.conn.pipe == nil {
		r.conn.State.Watch(r.Args[1:], versions)
		r.ReplyOK()
		return
	}
	if !r.Room(len(versions) * (len(versions[0]) + 32)) {
		return
	}
	r.Out = resp.AppendArray(r.Out, len(versions))
	for _, v := range versions {
		r.Out = resp.AppendBulk(r.Out, v)
	}
}

// watchFor: DUNLIN WATCH key... With many keys it goes on as a WATCH.
func watchFor(r *request) {
	r.Args = r.Args[1:]
	r.named(command.Watch)
	if versions, ok := r.versions(); ok {
		r.watched(versions)
	}
}

// versions appends the versions of the keys behind the first argument. If this node does not serve
// them, it answers that and returns false. So it does if it goes on with more keys later.
func (r *request) versions() (versions [][]byte, ok bool) {
	if !r.admitKeys(true) {
		return nil, false
	}
	locks := r.LockKeys()
	defer locks.Release()
	locks.AtOnce = watchedAtOnce
	if versions, _ = locks.State.([][]byte); versions == nil {
		versions = make([][]byte, 0, len(r.Keys))
	}
	for i := locks.First; i < len(r.Keys); i++ {
		t, key, ok := locks.At(i)
		if !ok {
			locks.State = versions
			locks.Stop(i, 0)
			return nil, false
		}
		versions = append(versions, r.appendVersion(nil, t, key))
	}
	return versions, true
}

// appendVersion appends the version of a key: the engine's, and with it the life of this node and
// the ownership of the partition in which it counts.
func (r *request) appendVersion(dst []byte, t engine.Txn, key []byte) []byte {
	v := t.VersionOf(key)
	for _, n := range []uint64{uint64(r.node.cfg.Boot), r.view.Began[r.Partition], uint64(v.Era), uint64(v.Count)} {
		dst = append(strconv.AppendUint(dst, n, 36), '.')
	}
	return strconv.AppendBool(dst, v.Found)
}

// named sets and counts a command that has no handler.
func (r *request) named(id command.ID) {
	r.Cmd = command.ByID(id)
	r.worker.Count.Commands[id]++
	r.conn.State.LastCmd = id
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
	slot, keyed, same := onlySlot(tx)
	switch {
	case !same:
		st.EndTransaction()
		r.Fail(session.ErrMultiCrossSlot)
	case keyed && !r.admitSlot(slot):
		st.EndTransaction()
	default:
		r.transact(&transaction{Transaction: tx, keyed: keyed, partition: ring.Partition(slot)})
	}
}

// onlySlot returns the slot of the keys of a transaction. any reports whether it has keys, same
// whether they all have that slot.
func onlySlot(tx *session.Transaction) (slot uint16, any, same bool) {
	same = true
	add := func(key []byte) {
		s := ring.Slot(key)
		same = same && (!any || s == slot)
		slot, any = s, true
	}
	for _, w := range tx.Watched {
		add(w.Key)
	}
	for _, q := range tx.Queue {
		keys, _ := q.Cmd.AppendKeys(nil, q.Args)
		for _, k := range keys {
			add(q.Args[k])
		}
	}
	return slot, any, same
}

// execFor: DUNLIN EXEC slot watched {key version}... request...
func execFor(r *request) {
	slot, watched, requests, ok := member.ParseExec(r.Args[2:])
	if !ok {
		r.Fail(errBadExec)
		return
	}
	tx, ok := transactionOf(watched, requests)
	if only, any, same := onlySlot(tx); !ok || any && (!same || only != slot) {
		r.Fail(errBadExec)
		return
	}
	if !r.admitSlot(slot) {
		return
	}
	r.named(command.Exec)
	start, pins := len(r.Out), len(r.Pins)
	r.transact(&transaction{Transaction: tx, keyed: true, partition: ring.Partition(slot)})
	if len(r.Pins) > pins {
		r.ticketed(start, pins)
	}
}

// transactionOf returns the transaction, whose commands are views of the arguments. It returns
// false if a command cannot be queued.
func transactionOf(watched, requests [][]byte) (tx *session.Transaction, ok bool) {
	tx = &session.Transaction{}
	for i := 0; i < len(watched); i += 2 {
		tx.Watched = append(tx.Watched, session.Watched{Key: watched[i], Version: watched[i+1]})
	}
	var parser resp.Parser
	parser.SetLimits(resp.Limits{}) // it passed the client's limits
	for _, raw := range requests {
		if parser.Parse(raw) != resp.Done || parser.Len() != len(raw) || len(parser.Args()) == 0 {
			return tx, false
		}
		c, _ := command.Resolve(nil, parser.Args())
		if c == nil || plans[c.ID].handler == nil || plans[c.ID].keys == allKeys || plans[c.ID].keys == noKeys {
			return tx, false
		}
		tx.Queue = append(tx.Queue, session.Queued{Cmd: c, Args: append([][]byte(nil), parser.Args()...)})
	}
	return tx, true
}
