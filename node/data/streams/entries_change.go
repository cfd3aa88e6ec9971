package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// long is a payload that does not stand in a block, and the strings that it has in parts of their own. Of
// those that come in pieces only the lengths are known.
type long struct {
	payload []byte
	length  int // of the payload
	own     [][]byte
	lengths []int
}

func longOf(payload []byte, own [][]byte) (l long) {
	l.payload, l.own, l.length = payload, own, len(payload)
	for _, s := range own {
		l.lengths = append(l.lengths, len(s))
	}
	return l
}

// piece is up to so many bytes of the payload and the strings behind one another, from an offset on; those of
// one of them.
func (l *long) piece(offset, most int) []byte {
	s := l.payload
	for i := 0; offset >= len(s); i++ {
		offset -= len(s)
		s = l.own[i]
	}
	return s[offset:min(offset+most, len(s))]
}

// all is how many bytes a long payload has, with its strings.
func (l *long) all() (n int) {
	n = l.length
	for _, length := range l.lengths {
		n += length
	}
	return n
}

// string is one of the strings; nil if it comes in pieces.
func (l *long) string(i int) []byte {
	if i < len(l.own) {
		return l.own[i]
	}
	return nil
}

// append appends an entry with a payload that stands in a block; its ID is above all others. After an
// error nothing has changed.
func (b *big) append(id ID, payload []byte) error {
	if err := b.v.MayGrow(len(payload)); err != nil {
		return err
	}
	return b.push(id, payload, nil)
}

// appendLong is append of a payload that does not stand in a block.
func (b *big) appendLong(id ID, l *long) error {
	if err := b.v.MayGrow(l.all()); err != nil {
		return err
	}
	sizes := make([]int, 0, 1+maxOwn)
	sizes = append(sizes, shape.AwayRoom(b.v, l.payload, l.length))
	for i, n := range l.lengths {
		sizes = append(sizes, shape.AwayRoom(b.v, l.string(i), n))
	}
	if err := b.v.Reserve(sizes...); err != nil {
		return err
	}
	number, err := shape.AddAway(b.v, planeAway, l.payload, l.length)
	if err != nil {
		return err
	}
	body := append(binary.LittleEndian.AppendUint32(nil, uint32(number)), byte(len(l.lengths)))
	for i, n := range l.lengths {
		if number, err = shape.AddAway(b.v, planeAway, l.string(i), n); err != nil {
			break
		}
		body = binary.LittleEndian.AppendUint32(body, uint32(number))
	}
	if err == nil {
		err = b.push(id, nil, body)
	}
	if err != nil {
		b.freeAway(body)
	}
	return err
}

// freeAway frees the parts that the body of an entry names.
func (b *big) freeAway(body []byte) {
	b.v.Free(planeAway, int(binary.LittleEndian.Uint32(body)))
	for own := body[awayBody:]; len(own) > 0; own = own[partNumber:] {
		b.v.Free(planeAway, int(binary.LittleEndian.Uint32(own)))
	}
}

// push appends an entry to the tail block, or to a new one. body is that of a payload in parts.
func (b *big) push(id ID, payload, body []byte) error {
	scratch := b.spare.block[:]
	size := maxEntryHead + max(len(payload), len(body))
	number, ok := b.tail()
	if ok {
		blk := block(b.v.Edit(planeBlocks, number))
		if blk.dead() > 0 && !blk.last().id.less(id) { // XSETID has taken the last ID back
			b.compactBlock(blk)
		}
		if blk.count() < mostInBlock && blk.used()+size <= maxBlock {
			blk, err := b.growBlock(number, blk.used()+size)
			if err != nil {
				return err
			}
			blk.add(id, payload, body, scratch)
			b.addLen(1)
			return nil
		}
		if blk.count() < mostInBlock && len(blk) >= maxBlock && blk.add(id, payload, body, scratch) {
			b.addLen(1)
			return nil
		}
	}
	return b.newBlock(id, payload, body, number, ok)
}

// firstRoom is how many bytes a new block has at least, until the next one begins.
const firstRoom = 256

// newBlock appends an entry to a new block.
func (b *big) newBlock(id ID, payload, body []byte, before int, ok bool) error {
	need := blockHead + maxEntryHead + max(len(payload), len(body)) // with the names, which are in the payload
	size := max(need, firstRoom)
	if ok {
		size = max(size, maxBlock/2)
	}
	number, err := b.addBlock(id, size)
	if err != nil {
		return err
	}
	block(b.v.Edit(planeBlocks, number)).add(id, payload, body, b.spare.block[:])
	if ok {
		b.fitBlock(before)
	}
	b.addLen(1)
	b.setTail(number)
	return nil
}

// addBlock adds an empty block of so many bytes.
func (b *big) addBlock(first ID, size int) (number int, err error) {
	if err := b.v.Reserve(size); err != nil {
		return 0, err
	}
	number, part, err := b.v.Add(planeBlocks, size)
	if err != nil {
		return 0, err
	}
	initBlock(part, first)
	var key mapKey
	var value [4]byte
	binary.LittleEndian.PutUint32(value[:], uint32(number))
	m := b.keys()
	if _, err := m.Set(key.block(first), value[:]); err != nil {
		b.v.Free(planeBlocks, number)
		return 0, err
	}
	return number, nil
}

// growBlock moves a block to a cell of at least so many bytes.
func (b *big) growBlock(number, need int) (block, error) {
	blk := block(b.v.Edit(planeBlocks, number))
	if len(blk) >= need {
		return blk, nil
	}
	size := min(need+max(need/2, firstRoom), maxBlock)
	moved, err := b.v.Resize(planeBlocks, number, size)
	if err != nil {
		if err := b.v.Reserve(size); err != nil {
			return nil, err
		}
		moved, err = b.v.Resize(planeBlocks, number, size)
	}
	return moved, err
}

// fitBlock moves a block to a cell without unused bytes. Without memory it stays where it is.
func (b *big) fitBlock(number int) {
	if blk := block(b.v.Part(planeBlocks, number)); len(blk) > blk.used() {
		_, _ = b.v.Resize(planeBlocks, number, blk.used())
	}
}

// remove removes an entry and reports whether it was there.
func (b *big) remove(id ID) bool {
	number, x, found := b.find(id)
	if !found {
		return false
	}
	if x.kind == kindAway {
		b.freeAway(x.body)
	}
	blk := block(b.v.Edit(planeBlocks, number))
	blk.kill(&x)
	b.addLen(-1)
	b.tidyBlock(number, blk)
	return true
}

// tidyBlock frees a block without entries, and writes one anew of which half is dead.
func (b *big) tidyBlock(number int, blk block) {
	tail, _ := b.tail()
	switch {
	case blk.live() == 0:
		b.freeBlock(number, blk.first())
	case blk.dead() > blk.used()/2:
		b.compactBlock(blk)
		if number != tail {
			b.fitBlock(number)
			b.mergeBlock(number)
		}
	}
}

// compactBlock takes the dead entries out of a block.
func (b *big) compactBlock(blk block) {
	to := initBlock(b.spare.block[:], blk.first())
	blk.compact(to)
	copy(blk, to[:to.used()])
}

// freeBlock frees a block, whose entries are all gone.
func (b *big) freeBlock(number int, first ID) {
	var key mapKey
	m := b.keys()
	tail, _ := b.tail()
	b.v.Free(planeBlocks, number)
	m.Delete(key.block(first))
	if number != tail || b.len() == 0 {
		return
	}
	if c := m.SeekBack(key.block(maxID)); c.HasPrefix(blockPrefix) {
		b.setTail(int(binary.LittleEndian.Uint32(c.Value())))
	}
}

// mergeBlock merges a block that has little with the one behind it, if both together have not much. Without
// a free cell it does not.
func (b *big) mergeBlock(number int) {
	blk := block(b.v.Part(planeBlocks, number))
	if blk.used() > maxBlock/4 {
		return
	}
	var key mapKey
	m := b.keys()
	c := m.Seek(key.block(blk.first()))
	if c.Next(); !c.HasPrefix(blockPrefix) {
		return
	}
	next := int(binary.LittleEndian.Uint32(c.Value()))
	other := block(b.v.Part(planeBlocks, next))
	to := initBlock(b.spare.block[:maxBlock*3/4], blk.first())
	if blk.live()+other.live() > mostInBlock*3/4 || !blk.compact(to) || !other.compact(to) {
		return
	}
	if len(blk) < to.used() {
		moved, err := b.v.Resize(planeBlocks, number, to.used())
		if err != nil {
			return
		}
		blk = moved
	}
	blk, first := b.v.Edit(planeBlocks, number), other.first()
	copy(blk, to[:to.used()])
	if tail, _ := b.tail(); next == tail {
		b.setTail(number)
	}
	b.v.Free(planeBlocks, next)
	m.Delete(key.block(first))
}
