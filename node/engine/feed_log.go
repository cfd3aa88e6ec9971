package engine

import "encoding/binary"

// feedLog is the log of a shard for one receiver, protected by the shard's lock. It is a list of
// blocks, of which only the last has room. An effect may lie across two.
type feedLog struct {
	to     *receiver
	blocks *feeds
	free   []byte // what is free of the last block
	first  uint32
	last   uint32
	bytes  int // up to maxBytes
}

// maxLog is the most that one log may have; less where the limit is low.
const maxLog = 2 << 20

// put logs an effect: its word, the second word, if it has one, and body, whose length the word
// says.
func (l *feedLog) put(s *shard, h header, second int64, body []byte) {
	words := wordSize
	if h.hasExpiry() || h.effect() == EffectMark {
		words = 2 * wordSize
	}
	n := words + len(body)
	if n > len(l.free) {
		l.putAcross(s, h, second, body, words)
		return
	}
	b := l.free[:n:n]
	binary.LittleEndian.PutUint64(b, uint64(h))
	if words > wordSize {
		binary.LittleEndian.PutUint64(b[wordSize:], uint64(second))
	}
	copy(b[words:], body)
	l.free = l.free[n:]
	l.bytes += n
}

// putAcross is put where more blocks are needed. They are taken first, so that an effect is in the
// log wholly or not at all.
func (l *feedLog) putAcross(s *shard, h header, second int64, body []byte, words int) {
	if !l.lengthen(s, words+len(body)) {
		return
	}
	var buf [2 * wordSize]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(h))
	binary.LittleEndian.PutUint64(buf[wordSize:], uint64(second))
	l.write(buf[:words])
	l.write(body)
	l.bytes += words + len(body)
}

// putParts is put for an effect on a value with parts.
func (l *feedLog) putParts(s *shard, h header, second partsWord, key, rest []byte) {
	n := 2*wordSize + len(key) + len(rest)
	if n > len(l.free) && !l.lengthen(s, n) {
		return
	}
	var buf [2 * wordSize]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(h))
	binary.LittleEndian.PutUint64(buf[wordSize:], uint64(second))
	l.write(buf[:])
	l.write(key)
	l.write(rest)
	l.bytes += n
}

// lengthen takes the blocks for n bytes, of which the last one has less free. Without memory for
// them the log overflows. The receiver is woken for the first bytes: it finds them when the shard
// is unlocked.
func (l *feedLog) lengthen(s *shard, n int) bool {
	blocks := (n - len(l.free) + blockSize - 1) / blockSize
	if l.bytes+n > l.blocks.longest() || !l.extend(s, blocks) {
		s.feeds.overflow(l)
		return false
	}
	s.feeds.thirsty = s.feeds.thirsty || l.blocks.low()
	if l.bytes == 0 {
		l.to.readers[s.number].waiting.Store(true)
		l.to.wake()
	}
	return true
}

// extend adds blocks to the log. Without memory for them the longest log of the shard gives its
// own.
func (l *feedLog) extend(s *shard, n int) bool {
	for range n {
		b := l.blocks.take()
		if b == 0 && s.feeds.shedLog(l) {
			b = l.blocks.take()
		}
		if b == 0 {
			return false
		}
		l.link(b)
	}
	return true
}

// link adds a block to the log.
func (l *feedLog) link(b uint32) {
	if l.last == 0 {
		l.first, l.last = b, b
		l.free = l.blocks.block(b)
		return
	}
	l.blocks.next[l.tail()] = b
}

// tail is the last block that is linked. Blocks that were just added are behind the block that is
// being filled.
func (l *feedLog) tail() uint32 {
	b := l.last
	for l.blocks.next[b] != 0 {
		b = l.blocks.next[b]
	}
	return b
}

// shedLog has another log than l overflow that is longer, and reports whether there was one.
func (f *shardFeeds) shedLog(l *feedLog) bool {
	longest := l
	for _, o := range f.logs {
		if o != nil && o.bytes > longest.bytes {
			longest = o
		}
	}
	if longest == l {
		return false
	}
	f.overflow(longest)
	return true
}

// write appends to the log, whose blocks are there.
func (l *feedLog) write(b []byte) {
	for {
		n := copy(l.free, b)
		l.free = l.free[n:]
		if b = b[n:]; len(b) == 0 {
			return
		}
		l.last = l.blocks.next[l.last]
		l.free = l.blocks.block(l.last)
	}
}

// splice takes over the blocks of another log, behind a head of a few bytes. What is free of the
// last block stays unused.
func (l *feedLog) splice(s *shard, head []byte, from *feedLog) {
	if l.bytes+len(head)+from.bytes > l.blocks.longest() {
		s.feeds.overflow(l)
		return
	}
	if len(head) > len(l.free) && !l.lengthen(s, len(head)) {
		return
	}
	l.write(head)
	if free := len(l.free); free > 0 {
		l.blocks.ends[l.last] = uint16(blockSize - free)
	}
	l.blocks.next[l.last] = from.first
	l.last, l.free = from.last, from.free
	l.bytes += len(head) + from.bytes
	from.forget()
}

// drop empties the log.
func (l *feedLog) drop() {
	l.blocks.give(l.first)
	l.forget()
}

// forget leaves the log with nothing, after its blocks went elsewhere.
func (l *feedLog) forget() {
	l.free, l.first, l.last, l.bytes = nil, 0, 0, 0
}
