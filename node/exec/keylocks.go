package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// KeyLocks walks over the keys of a command and locks one partition at a time. Neighbouring keys in
// one partition share the lock, as all keys with one {hash tag} do.
type KeyLocks struct {
	r         *Request
	txn       engine.Txn
	partition uint16
	locked    bool
	// touched is how many keys were passed to Engine.Touch.
	touched int
}

// LockKeys begins a walk over the command's keys. The caller must call Release at its end.
func (r *Request) LockKeys() KeyLocks { return KeyLocks{r: r} }

// At locks the partition of the i-th key, if it is not locked yet, and unlocks the one before. t is
// valid until the next call. i must not skip keys.
func (k *KeyLocks) At(i int) (t engine.Txn, key []byte) {
	if i == k.touched {
		k.touch()
	}
	if k.r.InTransaction {
		return k.r.Transaction, k.r.Args[k.r.Keys[i]]
	}
	p := k.r.Partitions[i]
	if !k.locked || k.partition != p {
		k.Release()
		k.txn = k.r.Engine.Lock(p, k.r.Now)
		k.partition, k.locked = p, true
	}
	return k.txn, k.r.Args[k.r.Keys[i]]
}

// touch has the engine read the next keys' memory ahead, up to MaxAhead keys at a time, so that
// their cache misses overlap.
func (k *KeyLocks) touch() {
	r, probes := k.r, &k.r.Worker.Probes
	n := min(len(r.Keys)-k.touched, len(probes))
	for i := range n {
		at := k.touched + i
		probes[i] = engine.Probe{Partition: r.Partitions[at], Key: r.Args[r.Keys[at]]}
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
