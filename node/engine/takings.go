package engine

import "math/rand/v2"

// Who pops elements of a value for somebody else may have to put them back, because that one has gone. By then the
// key may have been deleted, and the elements with it, or it was only emptied by other pops. The key itself does not
// say so, hence Take: it remembers the key, and gives a token by which Returns knows what has happened since.
//
//	Take ─> token ··· Empty: the key keeps its expiry for those who return something ··· Returns: Kept
//	              └── Delete, Overwrite, Rename, an expiry, an eviction, a FLUSHALL ──── Returns: Lost
//
// A shard remembers few keys, each from its last Take on for takenMillis. What it has forgotten, or never knew because
// another node had the partition, is Unknown. A shard that remembers none knows it by takings.first, which is all that
// a delete looks at. Pushes and pops look at nothing.

const (
	// maxTakings is how many keys a shard remembers, and maxTakenKey how long they are at most: 90 KB in all.
	maxTakings, maxTakenKey = 256, 256
	// takenMillis is longer than a proxy keeps a command that no node can take.
	takenMillis = 10_000
)

// taking is a key of which something was taken.
type taking struct {
	name       string // its section, and the key
	prev, next *taking
	until      int64  // in unix milliseconds
	begun      uint64 // lower tokens are older than this taking
	lost       uint64 // the key was lost after lower tokens were given
	expireAt   int64  // of the value, when it was emptied last
}

// takings are those of a shard.
type takings struct {
	keys        map[string]*taking
	first, last *taking // in the order of their last Take; nil if there is none
	token       uint64  // the last one: it grows with each taking, and when a key is lost
	name        []byte  // scratch
}

// Fate is what has become of a key since something was taken.
type Fate uint8

// The fates.
const (
	Unknown Fate = iota
	Kept         // it is there, or was emptied
	Lost         // it was deleted, replaced, or removed in another way
)

// Take notes that elements of a key are about to be taken which may be returned, and returns a token for Returns. It
// is 0, which is always Unknown, if the key is too long.
func (t Txn) Take(key []byte) (token uint64) {
	if len(key) > maxTakenKey {
		return 0
	}
	k := &t.s.takings
	k.forgetOld(t.s.now)
	if k.keys == nil {
		// The tokens of another node, or of this one before it began anew, are not among those of this one.
		k.keys, k.token = make(map[string]*taking), rand.Uint64()>>2
	}
	at := k.find(t.section, key)
	if at == nil {
		if len(k.keys) == maxTakings {
			k.forget(k.first)
		}
		k.token++
		at = &taking{name: string(k.nameOf(t.section, key)), begun: k.token}
		k.keys[at.name] = at
	} else {
		k.unlink(at)
	}
	at.until = t.s.now + takenMillis
	k.pushBack(at)
	return k.token
}

// Returns returns what has become of a key since Take gave the token, and, if the key was emptied, when its value
// would have expired, 0 for never.
func (t Txn) Returns(key []byte, token uint64) (fate Fate, expireAt int64) {
	_, found := t.Peek(key) // which loses it if it is expired
	k := &t.s.takings
	at := k.find(t.section, key)
	switch {
	case at == nil || token < at.begun || token > k.token:
		return Unknown, 0
	case token < at.lost:
		return Lost, 0
	case found:
		return Kept, 0
	}
	return Kept, at.expireAt
}

// Empty is Delete of a key whose last elements are taken or removed one by one: what was taken before may return.
func (t Txn) Empty(key []byte) bool {
	at := t.s.takings.find(t.section, key)
	if at == nil {
		return t.Delete(key)
	}
	if item, found := t.Peek(key); found {
		at.expireAt = item.ExpireAt()
	}
	lost := at.lost
	there := t.Delete(key)
	at.lost = lost
	return there
}

// Overwrite notes that a value is about to be stored under a key which is not made from the one that is there.
// Whoever stores one of another type need not say so.
func (t Txn) Overwrite(key []byte) { t.s.loseKey(t.section, key) }

// loseRecord notes that the record in the cell is removed.
func (s *shard) loseRecord(ref handle) {
	if s.takings.first != nil {
		s.loseKey(s.cells.section(ref, s.cells.header(ref)), s.cells.key(ref))
	}
}

// loseKey notes that a key is lost, whether or not it is there: its elements may have been taken.
func (s *shard) loseKey(section uint16, key []byte) {
	if s.takings.first != nil {
		s.takings.forgetOld(s.now) // so that a shard that remembers nothing any more knows it
		s.takings.lose(section, key)
	}
}

func (k *takings) lose(section uint16, key []byte) {
	if at := k.find(section, key); at != nil {
		k.token++
		at.lost = k.token
	}
}

// loseAll notes that all keys of some sections are lost.
func (k *takings) loseAll(of sections) {
	for at := k.first; at != nil; at = at.next {
		if at.isOf(of) {
			k.token++
			at.lost = k.token
		}
	}
}

// forgetAll forgets the keys of some sections.
func (k *takings) forgetAll(of sections) {
	for at, next := k.first, (*taking)(nil); at != nil; at = next {
		if next = at.next; at.isOf(of) {
			k.forget(at)
		}
	}
}

// forgetOld forgets those whose time is up.
func (k *takings) forgetOld(now int64) {
	for k.first != nil && k.first.until <= now {
		k.forget(k.first)
	}
}

func (k *takings) forget(at *taking) {
	k.unlink(at)
	delete(k.keys, at.name)
}

func (at *taking) isOf(of sections) bool {
	section := uint16(at.name[0]) | uint16(at.name[1])<<8
	database := DatabaseOf(section)
	return PartitionOf(section) == of.partition && of.from <= database && database < of.to
}

// find returns the taking of a key, nil if there is none.
func (k *takings) find(section uint16, key []byte) *taking {
	if k.first == nil || len(key) > maxTakenKey {
		return nil
	}
	return k.keys[string(k.nameOf(section, key))]
}

func (k *takings) nameOf(section uint16, key []byte) []byte {
	k.name = append(append(k.name[:0], byte(section), byte(section>>8)), key...)
	return k.name
}

func (k *takings) pushBack(at *taking) {
	if at.prev, at.next = k.last, nil; at.prev == nil {
		k.first = at
	} else {
		at.prev.next = at
	}
	k.last = at
}

func (k *takings) unlink(at *taking) {
	if at.prev == nil {
		k.first = at.next
	} else {
		at.prev.next = at.next
	}
	if at.next == nil {
		k.last = at.prev
	} else {
		at.next.prev = at.prev
	}
}
