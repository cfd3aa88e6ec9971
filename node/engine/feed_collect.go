package engine

import (
	"encoding/binary"
	"sync/atomic"
)

// reader has the effects that were taken from the log of a shard and are not collected yet. All but
// waiting is protected by receiver.mu.
type reader struct {
	waiting atomic.Bool // there is something in the log
	first   uint32      // blocks
	at      int         // in the first
	left    int         // bytes
}

// Collect appends whole effects from the front of the log of r in a shard: about atMost bytes, but
// at least one effect. It reports whether there are more. A large effect comes alone: dst then gets
// nothing else. The work is done without the shard's lock.
func (e *Engine) Collect(r Receiver, shard int, dst []byte, atMost int) (out []byte, more bool) {
	to := e.feeds.receivers[r].Load()
	if to == nil {
		return dst, false
	}
	e.refillFeeds()
	to.mu.Lock()
	defer to.mu.Unlock()
	rd := &to.readers[shard]
	if rd.left == 0 && rd.waiting.Load() {
		rd.takeLog(&e.shards[shard], to)
	}
	if rd.left == 0 {
		return dst, false
	}
	out = dst
	for rd.left > 0 {
		h := rd.word(&e.feeds)
		n := h.effectLen()
		large := h.effect() == EffectLarge
		if len(out) > len(dst) && (large || len(out)-len(dst)+n > atMost) {
			break
		}
		out = rd.appendTo(out, n, &e.feeds)
		if large {
			break
		}
	}
	e.feeds.trim(2 * e.feeds.wanted())
	return out, rd.left > 0 || rd.waiting.Load()
}

// Shards is how many shards there are, and logs of a receiver.
func (e *Engine) Shards() int { return len(e.shards) }

// takeLog takes all that the log has.
func (rd *reader) takeLog(s *shard, to *receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rd.waiting.Store(false)
	if l := s.feeds.log(to.number); l != nil && l.to == to {
		rd.first, rd.at, rd.left = l.first, 0, l.bytes
		l.forget()
	}
}

// word is the word that the next effect begins with.
func (rd *reader) word(f *feeds) header {
	b := f.content(rd.first)[rd.at:]
	if len(b) >= wordSize {
		return header(binary.LittleEndian.Uint64(b))
	}
	var buf [wordSize]byte
	n := copy(buf[:], b)
	copy(buf[n:], f.block(f.next[rd.first]))
	return header(binary.LittleEndian.Uint64(buf[:]))
}

// appendTo appends the next n bytes, and gives back the blocks that they were the last of.
func (rd *reader) appendTo(dst []byte, n int, f *feeds) []byte {
	rd.left -= n
	for n > 0 {
		all := f.content(rd.first)
		part := all[rd.at:min(rd.at+n, len(all))]
		dst = append(dst, part...)
		n -= len(part)
		if rd.at += len(part); rd.at == len(all) || rd.left == 0 && n == 0 {
			rd.next(f)
		}
	}
	return dst
}

// next gives back the first block.
func (rd *reader) next(f *feeds) {
	b := rd.first
	rd.first, rd.at = f.next[b], 0
	f.next[b] = 0
	f.give(b)
}

func (rd *reader) drop(f *feeds) {
	f.give(rd.first)
	rd.first, rd.at, rd.left = 0, 0, 0
}
