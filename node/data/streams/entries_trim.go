package streams

import (
	"encoding/binary"
)

// trimming is what XTRIM and XADD ask for: at most maxLen entries, or none below minID.
type trimming struct {
	byID   bool // minID counts, not maxLen
	maxLen int
	minID  ID
	approx bool // only whole blocks go, as many as may
	limit  int  // of the entries that are removed, if approx; 0: none
}

// keeps reports whether the trimming leaves an entry that is the first one of so many.
func (t *trimming) keeps(id ID, entries int) bool {
	if t.byID {
		return !id.less(t.minID)
	}
	return entries <= t.maxLen
}

// dropSteps is how many steps of a trim a block counts for that goes whole. An entry, and each part that it has, is
// one step.
const dropSteps = 16

// trim removes entries from the front, in so many steps, or a few more, and returns how many it has removed
// and the greatest ID up to which none is left. done: there is nothing more to do.
func (b *big) trim(t *trimming, steps int) (removed int, upTo ID, done bool) {
	for steps > 0 {
		m := b.keys()
		c := m.Seek(blockPrefix)
		if !c.HasPrefix(blockPrefix) {
			return removed, upTo, true
		}
		number := int(binary.LittleEndian.Uint32(c.Value()))
		blk := block(b.v.Part(planeBlocks, number))
		live := blk.live()
		var last ID
		if t.byID { // otherwise it takes longer to find than all else
			if t.keeps(blk.first(), live) {
				return removed, upTo, true
			}
			last = blk.last().id
		}
		whole := !t.keeps(last, b.len()-live+1)
		switch {
		case t.approx && (!whole || t.limit > 0 && removed+live > t.limit):
			return removed, upTo, true
		case whole && !blk.hasAway():
			upTo = blk.last().id
			b.addLen(-live)
			b.freeBlock(number, blk.first())
			removed, steps = removed+live, steps-dropSteps
			continue
		}
		n, reached, taken := b.trimBlock(number, t, steps)
		if n > 0 {
			upTo = reached
		}
		removed, steps = removed+n, steps-taken
		if !whole && steps > 0 {
			return removed, upTo, true
		}
	}
	return removed, upTo, false
}

// trimBlock removes entries from the front of a block.
func (b *big) trimBlock(number int, t *trimming, steps int) (removed int, upTo ID, taken int) {
	blk := block(b.v.Edit(planeBlocks, number))
	for at, end := blk.begin(), blk.used(); at < end && taken < steps; {
		x := blk.entry(at)
		at = x.end
		if x.kind == kindDead {
			continue
		}
		if t.keeps(x.id, b.len()) {
			break
		}
		if x.kind == kindAway {
			taken += 1 + int(x.body[partNumber])
			b.freeAway(x.body)
		}
		blk.kill(&x)
		b.addLen(-1)
		removed, upTo, taken = removed+1, x.id, taken+1
	}
	if removed > 0 {
		b.tidyBlock(number, blk)
	}
	return removed, upTo, taken
}
