package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// What another node asks about keys that a command names which it executes, and which lie here: see internal/member. It
// is refused as a client is: the asker looks into its newest table then.

// lend: DUNLIN LEND database key versioned. As for a client, a partition that somebody holds is waited for.
func lend(r *request) {
	database, key, versioned, ok := member.ParseLend(r.Args[2:])
	if !ok || r.conn.pipe != nil {
		r.Fail(errBadLend)
		return
	}
	t, ok := r.lockSpread(database, key)
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, key)
	l := member.Lent{Found: found, TTL: -1}
	if at := item.ExpireAt(); found && at != 0 {
		l.TTL = max(0, at-r.Now)
	}
	if versioned {
		l.Version = r.appendVersion(nil, t, key)
	}
	if r.Out = member.AppendLent(r.Out, &l); found {
		forValkey := r.DumpForValkey
		r.DumpForValkey = false // this build reads it
		keys.ReplyDump(&r.Request, t, item, keys.MaxDump)
		r.DumpForValkey = forValkey
	}
}

// cede: DUNLIN CEDE database key version. The key has another name at another node now.
func cede(r *request) {
	database, key, version, ok := member.ParseCede(r.Args[2:])
	if !ok || r.conn.pipe != nil {
		r.Fail(errBadLend)
		return
	}
	t, ok := r.lockSpread(database, key)
	if !ok {
		return
	}
	defer t.Unlock()
	var scratch [64]byte
	unchanged := bytes.Equal(version, r.appendVersion(scratch[:0], t, key))
	if ceded := unchanged && t.Delete(key); ceded {
		r.Notify(keyevent.Generic, "rename_from", key)
		r.ReplyInt(1)
		return
	}
	r.ReplyInt(0)
}

// lockSpread locks the partition of a key that another node asks about. If it is not to be used
// now, or somebody holds it, the request is answered, or waits.
func (r *request) lockSpread(database uint8, key []byte) (t engine.Txn, ok bool) {
	if r.Database = database; !r.admitSpread(database) || !r.admitSlot(ring.Slot(key)) {
		return t, false
	}
	return r.Lock()
}
