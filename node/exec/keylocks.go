package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// KeyLocks walks over the keys of a command and holds the lock of one partition
// at a time: neighbours in one partition, as all keys with one {hash tag} are,
// share it.
type KeyLocks struct {
	r      *Request
	txn    engine.Txn
	held   uint16
	locked bool
	// touched is how many keys the engine was told of.
	touched int
}

// LockKeys begins a walk over the command's keys. It must end with release.
func (r *Request) LockKeys() KeyLocks { return KeyLocks{r: r} }

// At locks the partition of the i-th key, if that is not the one held.
func (k *KeyLocks) At(i int) (t engine.Txn, key []byte) {
	if i == k.touched {
		k.touch()
	}
	if k.r.Holding {
		return k.r.Held, k.r.Args[k.r.Keys[i]]
	}
	p := k.r.Partitions[i]
	if !k.locked || k.held != p {
		k.Release()
		k.txn = k.r.Engine.Lock(p, k.r.Now)
		k.held, k.locked = p, true
	}
	return k.txn, k.r.Args[k.r.Keys[i]]
}

// touch tells the engine of the next keys, see lookahead.
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

// Release unlocks what At has locked.
func (k *KeyLocks) Release() {
	if k.locked {
		k.locked = false
		k.txn.Unlock()
	}
}
