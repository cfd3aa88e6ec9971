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
	t, ok := r.lockAsked(database, key, ok, (*request).admitSpread)
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

// cede: DUNLIN CEDE database key version. The key has another name at another node now. It is
// deleted in a database that is closed, too, because that may be opened again, and the key would
// keep both names: a key that has the version was there before the database was closed, and so the
// database cannot be pinned meanwhile.
func cede(r *request) {
	database, key, version, ok := member.ParseCede(r.Args[2:])
	t, ok := r.lockAsked(database, key, ok, (*request).admitUnpinned)
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

// lockAsked is lockSpread for a request that was parsed, if it is one of another node's.
func (r *request) lockAsked(
	database uint8, key []byte, parsed bool, admit func(r *request, database uint8) bool,
) (t engine.Txn, ok bool) {
	if !parsed || r.conn.pipe != nil {
		r.Fail(errBadLend)
		return t, false
	}
	return r.lockSpread(database, key, admit)
}

// lockSpread locks the partition of a key that another node asks about. If its database is not
// admitted, the partition is not to be used now, or somebody holds it, the request is answered, or
// waits.
func (r *request) lockSpread(
	database uint8, key []byte, admit func(r *request, database uint8) bool,
) (t engine.Txn, ok bool) {
	if r.Database = database; !admit(r, database) || !r.admitAsked(ring.Slot(key)) {
		return t, false
	}
	return r.Lock()
}
