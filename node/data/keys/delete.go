package keys

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// del: DEL key..., UNLINK key...
func del(r *exec.Request) {
	countWhere(r, func(t engine.Txn, key []byte) bool {
		there := t.Delete(key)
		if there {
			r.Notify(keyevent.Generic, "del", key)
		}
		return there
	})
}

// existing: EXISTS key... A key named twice counts twice.
func existing(r *exec.Request) {
	countWhere(r, func(t engine.Txn, key []byte) bool {
		found := exec.Exists(t, key)
		r.Lookup(found, key)
		return found
	})
}

// touch: TOUCH key...
func touch(r *exec.Request) {
	countWhere(r, func(t engine.Txn, key []byte) bool {
		_, found := t.Find(key)
		r.Lookup(found, key)
		return found
	})
}

// countWhere answers for how many keys f holds.
func countWhere(r *exec.Request, f func(t engine.Txn, key []byte) bool) {
	locks := r.LockKeys()
	defer locks.Release()
	n := locks.Sum
	for i := locks.First; i < len(r.Keys); i++ {
		t, key, ok := locks.At(i)
		if !ok {
			locks.Stop(i, n)
			return
		}
		if f(t, key) {
			n++
		}
	}
	r.ReplyInt(n)
}
