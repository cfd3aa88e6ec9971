package engine

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrEffects is Apply's error for what are no effects.
var ErrEffects = errors.New("malformed effects")

// Taker decides which effects of a sender are applied.
type Taker interface {
	// Admits reports whether effects on p are to be applied. It is called under the shard's lock,
	// so its answer holds until the effect is applied. It must neither block nor call the Engine.
	Admits(p uint16) bool
	// Marked is called for a mark, without any lock, after all that was before it.
	Marked(p uint16, m Mark)
}

const (
	// applyAtOnce is how many effects are applied under one lock.
	applyAtOnce = 16
	// applyBytes is how many bytes of effects end a lock: a chunk has hundreds of elements.
	applyBytes = chunkSize / 2
)

// Apply applies effects, in their order, to the partitions that t admits. shift is added to
// expiries: the own clock minus the sender's. effects is not changed, and not used after Apply
// returns. If there is no memory for a value, that is no error: the key is deleted. After an error,
// everything before the malformed effect is applied; nothing of the unit that has it.
func (e *Engine) Apply(effects []byte, shift, nowMilli int64, t Taker) error {
	for len(effects) > 0 {
		kind, p, _, size := NextEffect(effects)
		switch kind {
		case EffectNone, EffectLarge:
			return effectError(effects)
		case EffectMark:
			h := header(binary.LittleEndian.Uint64(effects))
			t.Marked(p, Mark{uint8(h.keyLen()), binary.LittleEndian.Uint64(effects[wordSize:])})
			effects = effects[size:]
		case EffectUnit:
			if err := e.applyUnit(p, effects[2*wordSize:size], shift, nowMilli, t); err != nil {
				return err
			}
			effects = effects[size:]
		default:
			var err error
			if effects, err = e.applySome(effects, shift, nowMilli, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// applySome applies effects on the shard of the first one and returns those behind them.
func (e *Engine) applySome(effects []byte, shift, nowMilli int64, t Taker) (left []byte, err error) {
	_, section, _, _ := NextEffect(effects)
	s := e.shardOf(section)
	txn := e.Lock(section, nowMilli)
	for n, bytes := 0, 0; n < applyAtOnce && bytes < applyBytes; n++ {
		kind, section, key, size := NextEffect(effects)
		bytes += size
		if kind == EffectNone || kind == EffectMark || kind == EffectLarge || kind == EffectUnit || e.shardOf(section) != s {
			break
		}
		if t.Admits(PartitionOf(section)) {
			if kind == EffectClear {
				all, _ := s.dropped.doomAll(clears(effects))
				txn.Unlock()
				s.dropped.drainAll(all)
				return effects[size:], nil
			}
			txn.section, txn.p = section, s.partition(section)
			err = txn.applyOne(kind, effects[:size], key, shift, t)
		}
		if err != nil {
			break
		}
		effects = effects[size:]
	}
	txn.Unlock()
	return effects, err
}

// applyOne applies an effect on one key.
func (t Txn) applyOne(kind EffectKind, effect, key []byte, shift int64, taker Taker) error {
	switch kind {
	case EffectDelete:
		t.Delete(key)
	case EffectSet:
		t.applySet(effect, shift)
	default:
		return t.applyParts(kind, effect, key, shift, taker)
	}
	return nil
}

// applySet stores what a set says.
func (t Txn) applySet(effect []byte, shift int64) {
	h, at := header(binary.LittleEndian.Uint64(effect)), int64(0)
	if h.hasExpiry() {
		at = ShiftExpiry(int64(binary.LittleEndian.Uint64(effect[wordSize:])), shift)
	}
	body := effect[h.bodyOffset():]
	key, value := body[:h.nameLen()], body[h.keyLen():]
	t.s.frugal = t.s.copies.spares(t.section)
	stored := !t.s.isDue(t.section, at) && t.Set(key, value, h.typ(), at) == nil
	t.s.frugal = false
	if !stored {
		t.Delete(key)
		return
	}
	t.SetUses(key, h.uses())
}

// ShiftExpiry returns an expiry, in milliseconds since 1970, for a clock that is shift milliseconds
// ahead. 0 means never and stays 0; a result above MaxInt64 becomes MaxInt64.
func ShiftExpiry(at, shift int64) int64 {
	if at == 0 {
		return 0
	}
	if shift > 0 && at > math.MaxInt64-shift {
		return math.MaxInt64
	}
	return max(1, at+shift)
}

// SetUses sets Item.Uses of key, if it is there. A copy of a key keeps the uses that its owner
// counted.
func (t Txn) SetUses(key []byte, uses int) {
	en, _ := t.lookup(key)
	if !en.found() {
		return
	}
	ref := en.ref()
	h := t.s.cells.header(ref)&^usesMask | header(min(max(uses, 0), maxUses))*oneUse
	t.s.cells.setHeader(ref, h)
}
