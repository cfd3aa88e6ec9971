package shape

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A string that is too long for its block is a part of its own: its length in four bytes, and then
// the string. The block has the part's number.
const awayHead = 4

func awayString(part []byte) []byte {
	return part[awayHead : awayHead+int(binary.LittleEndian.Uint32(part))]
}

func awaySize(n int) int { return awayHead + n }

// awayHash is the hash of a string of a ranked tree, which stands behind the string: so nothing that
// moves entries reads long strings.
func awayHash(part []byte) uint32 {
	return binary.LittleEndian.Uint32(part[awayHead+binary.LittleEndian.Uint32(part):])
}

const hashLen = 4

// awaySize is how many bytes the part of a string needs.
func (p *probe) awaySize() int {
	if p.hashed {
		return awaySize(p.length()) + hashLen
	}
	return awaySize(p.length())
}

// addAway stores a string in a part, which was reserved.
func addAway(v engine.Parts, plane int, p *probe) (number int, err error) {
	number, part, err := v.Add(plane, p.awaySize())
	if err == nil {
		binary.LittleEndian.PutUint32(part, uint32(p.length()))
		copy(part[awayHead:], p.s)
		if p.hashed {
			binary.LittleEndian.PutUint32(part[awaySize(p.length()):], p.hash)
		}
	}
	return number, err
}

// moveOut makes parts of the strings that are to be parts, all of them or none. Their probes have
// the numbers then.
func moveOut(v engine.Parts, plane int, probes []probe) error {
	for i := range probes {
		if probes[i].code != codeAway {
			continue
		}
		number, err := addAway(v, plane, &probes[i])
		if err != nil {
			for _, p := range probes[:i] {
				if p.code == codeAway {
					v.Free(plane, int(p.n))
				}
			}
			return err
		}
		probes[i].n = uint64(number)
	}
	return nil
}

// putItems writes items to a block, from off on, and returns where they end.
func putItems(b block, codes []byte, off int, probes []probe) int {
	for i := range probes {
		p := &probes[i]
		codes[i] = p.code
		if p.code == codeAway {
			binary.LittleEndian.PutUint32(b[off:], uint32(p.n))
		} else {
			p.put(b[off : off+p.size()])
		}
		off += p.size()
	}
	return off
}

// slack is how many bytes of a block are unused at least when it is moved to a smaller cell, if they
// are a sixteenth of it.
const slack = 32

// fit moves a block to a smaller cell if much of its own is unused. Without memory for that it stays
// where it is.
func fit(v engine.Parts, plane, number int) {
	b := block(v.Part(plane, number))
	if len(b)-b.need() < max(slack, len(b)/16) {
		return
	}
	b = v.Edit(plane, number)
	end, need := len(b), b.need()
	n := b.count() * b.slotLen()
	copy(b[need-n:], b[end-n:end])
	moved, err := v.Resize(plane, number, need)
	if err != nil {
		moved = b
	}
	block(moved).spread(need)
}

// grow moves a block to a cell of at least n bytes, which was reserved.
func grow(v engine.Parts, plane, number, n int) (block, error) {
	b := block(v.Edit(plane, number))
	if len(b) >= n {
		return b, nil
	}
	end := len(b)
	moved, err := v.Resize(plane, number, n)
	if err != nil {
		return b, err
	}
	block(moved).spread(end)
	return moved, nil
}

// growFree is grow of a block for which nothing was reserved: to a free cell, which may be half as
// long again. So deletions evict nothing.
func growFree(v engine.Parts, plane, number, n int) (b block, ok bool) {
	for _, size := range [4]int{n, n + n/8, n + n/4, n + n/2} {
		b, err := grow(v, plane, number, min(size, maxBlock))
		if err == nil {
			return b, true
		}
	}
	return nil, false
}

// partOf is a view of a part of a value, or of a pin of it.
func partOf(v engine.Parts, pin *engine.ValuePin, plane, number int) []byte {
	if pin != nil {
		return pin.Part(plane, number)
	}
	return v.Part(plane, number)
}

// ownBytes are the own bytes of a value, or of a pin of it.
func ownBytes(v engine.Parts, pin *engine.ValuePin) []byte {
	if pin != nil {
		return pin.Own()
	}
	return v.Own()
}
