package shape

import (
	"encoding/binary"
	"fmt"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A string that is too long for its block is a part of its own: its length in four bytes, four bytes
// of the hash if it is the key of a table's element or of a ranked tree's entry, and then the string. So
// nothing that moves entries reads long strings. The block has the part's number.
//
// A very long one is not copied under the shard's lock. It is written beforehand, to a staged part
// (AwayHead), and Add takes that over if it was offered (engine.Txn.Offer).
const awayHead = 8

// AwayHead returns what stands in front of a string of n bytes in a part that is staged: of a value of
// a table, or of an entry of a tree without ranks.
func AwayHead(n int) (head [awayHead]byte) {
	binary.LittleEndian.PutUint32(head[:], uint32(n))
	return head
}

func awayString(part []byte) []byte {
	return part[awayHead : awayHead+int(binary.LittleEndian.Uint32(part))]
}

// awayHash is the hash of a key that is a part, as far as blocks and indexes need it.
func awayHash(part []byte) uint32 { return binary.LittleEndian.Uint32(part[4:]) }

func awaySize(n int) int { return awayHead + n }

// awayRoom is what is reserved for a string.
func awayRoom(v engine.Parts, s []byte, n int) int {
	if n >= longString && v.Offered(s, awayHead) != nil {
		return engine.StagedRoom
	}
	return awaySize(n)
}

// addAway stores a string in a part, which was reserved.
func addAway(v engine.Parts, plane int, p *probe) (number int, err error) {
	if p.length() >= longString {
		if st := v.Offered(p.s, awayHead); st != nil {
			return v.AddStaged(plane, st)
		}
	}
	number, part, err := v.Add(plane, awaySize(p.length()))
	if err == nil {
		binary.LittleEndian.PutUint32(part, uint32(p.length()))
		binary.LittleEndian.PutUint32(part[4:], p.hash)
		copy(part[awayHead:], p.s)
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

// AwayRoom is what is reserved for a string of n bytes that AddAway will store.
func AwayRoom(v engine.Parts, s []byte, n int) int { return awayRoom(v, s, n) }

// AddAway stores a string in a part of its own, which was reserved. It takes a staged string over that was
// offered. The string may have n bytes, more than are there: they are undefined until they are filled.
func AddAway(v engine.Parts, plane int, s []byte, n int) (number int, err error) {
	return addAway(v, plane, &probe{code: codeAway, s: s, long: n})
}

// AwayString is a view of the string in such a part.
func AwayString(part []byte) []byte { return awayString(part) }

// FillAway writes bytes of a string in a part of its own. The error is ErrMalformed if it has not so many.
func FillAway(v engine.Parts, plane, number, offset int, s []byte) error {
	part := v.Edit(plane, number)
	if part == nil { // somebody reads it
		n := len(v.Part(plane, number))
		if err := v.Reserve(n); err != nil {
			return err
		}
		var err error
		if part, err = v.Resize(plane, number, n); err != nil {
			return err
		}
	}
	dst := awayString(part)
	if offset < 0 || offset > len(dst)-len(s) {
		return fmt.Errorf("%w: a fill beyond the end of a string", ErrMalformed)
	}
	copy(dst[offset:], s)
	return nil
}
