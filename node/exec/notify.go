package exec

import (
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Notices announce what commands do to keys of a database to those who listen to keyspace notifications. Any
// goroutine may call them.
type Notices struct {
	// Events are the keyevent.Class of what Announce is to be called for.
	Events *atomic.Uint32
	// Announce publishes an event of a key of a database. It copies key.
	Announce func(class keyevent.Class, event string, database uint8, key []byte)

	Database uint8
}

// Notify announces what the command has done to a key, whose partition is locked. A command of several runs
// calls it once for each key, when it has done all.
func (n *Notices) Notify(class keyevent.Class, event string, key []byte) {
	if n.Events.Load()&uint32(class) != 0 {
		n.Announce(class, event, n.Database, key)
	}
}

// NotifyLeft is Notify of a command that has removed elements. If those were the last ones, the key was
// deleted: that is another event.
func (r *Request) NotifyLeft(t engine.Txn, class keyevent.Class, event string, key []byte) {
	if r.Events.Load()&uint32(class|keyevent.Generic) == 0 {
		return
	}
	r.Notify(class, event, key)
	if !Exists(t, key) {
		r.Notify(keyevent.Generic, "del", key)
	}
}

// NotifyStored is Notify of a command that has stored its result under a key, or deleted the key if the
// result has no elements. found: it was there before.
func (n *Notices) NotifyStored(found bool, length int64, class keyevent.Class, event string, key []byte) {
	switch {
	case length > 0:
		n.Notify(class, event, key)
	case found:
		n.Notify(keyevent.Generic, "del", key)
	}
}

// NotifyMiss announces that a command has not found a key that it reads.
func (n *Notices) NotifyMiss(key []byte) { n.Notify(keyevent.KeyMiss, "keymiss", key) }

// NotifyExpiry announces the outcome of ExpireKey.
func (r *Request) NotifyExpiry(at int64, key []byte) {
	if at <= r.Now {
		r.Notify(keyevent.Generic, "del", key)
	} else {
		r.Notify(keyevent.Generic, "expire", key)
	}
}

// Lookup counts that a command that reads has found a key, or has not.
func (r *Request) Lookup(found bool, key []byte) {
	if r.Worker.Count.Lookup(found); !found {
		r.NotifyMiss(key)
	}
}
