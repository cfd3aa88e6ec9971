package engine

import (
	"math"
	"slices"
	"sync"
)

// A unit is applied in slices, with the shard's lock released in between, since it may have
// thousands of effects. Nobody sees its middle all the same:
//
//   - Whether it is applied is decided once, at its beginning. A sender that is shut out meanwhile
//     gets the rest of its unit in, too.
//   - Commands, and whoever counts or walks, see nothing of a copy. A take-over shuts the sender out
//     by DropUnfinished before it serves the partition, and that waits for the end of the unit. So
//     does Feed, and with it a snapshot.
//   - If the partition is fed on to others already, the unit is applied under one lock, and is one
//     unit in their logs. No partition of a node is a copy and fed at a time, so this is rare.

// units are the units that are being applied in a shard.
type units struct {
	of    []uint16  // their partitions
	ended sync.Cond // on the shard's lock: one has ended
}

func (u *units) end(p uint16) {
	i := slices.Index(u.of, p)
	u.of = slices.Delete(u.of, i, i+1)
	u.ended.Broadcast()
}

// await returns when no unit of the partition is being applied. The shard is locked, and may have
// been unlocked in between.
func (u *units) await(p uint16) {
	for slices.Contains(u.of, p) {
		u.ended.Wait()
	}
}

// applyUnit applies the effects of a unit of partition p, all of those on p or none.
func (e *Engine) applyUnit(p uint16, effects []byte, shift, nowMilli int64, taker Taker) error {
	if err := e.checkUnit(effects); err != nil {
		return err
	}
	if err := e.applyBeside(p, effects, shift, nowMilli, taker); err != nil {
		return err
	}
	s := e.shardOf(p)
	t := e.Lock(p, nowMilli)
	s.units.await(p)
	if !taker.Admits(p) {
		t.Unlock()
		return nil
	}
	atOnce, most := applyAtOnce, applyBytes
	if s.feeds.targetsOf(p) != 0 {
		t.BeginUnit()
		atOnce, most = math.MaxInt, math.MaxInt
	}
	s.units.of = append(s.units.of, p)
	var err error
	for n, bytes := 0, 0; len(effects) > 0 && err == nil; n++ {
		if n == atOnce || bytes >= most {
			t.Unlock()
			t, n, bytes = e.Lock(p, nowMilli), 0, 0
		}
		kind, q, key, size := NextEffect(effects)
		bytes += size
		switch {
		case PartitionOf(q) != p:
		case kind == EffectClear:
			s.dropped.doomAll(clears(effects))
		default:
			t.section, t.p = q, s.partition(q)
			err = t.applyOne(kind, effects[:size], key, shift, taker)
		}
		effects = effects[size:]
	}
	s.units.end(p)
	t.Unlock()
	return err
}

// applyBeside applies the effects of a unit of partition p that are on other partitions: the sender
// evicted those keys to make room for the unit. Their order with the other effects does not matter.
func (e *Engine) applyBeside(p uint16, effects []byte, shift, nowMilli int64, taker Taker) error {
	for len(effects) > 0 {
		_, q, _, size := NextEffect(effects)
		if PartitionOf(q) != p {
			if _, err := e.applySome(effects[:size], shift, nowMilli, taker); err != nil {
				return err
			}
		}
		effects = effects[size:]
	}
	return nil
}

// checkUnit reports whether all effects of a unit can be applied here, before the first of them is.
func (e *Engine) checkUnit(effects []byte) error {
	if err := checkEffects(effects, nil, true); err != nil {
		return err
	}
	for len(effects) > 0 {
		kind, _, _, size := NextEffect(effects)
		if kind == EffectBegin {
			if typ := partsWordOf(effects).typ(); e.forms[typ].Apply == nil {
				return UnknownEffect{EffectSet, typ}
			}
		}
		effects = effects[size:]
	}
	return nil
}
