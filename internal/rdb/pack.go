package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// A pack is a small collection as Redis has it in memory, in one string. There are four forms:
//
//	listpack  bytes, 4 │ entries, 2 │ entry … │ ff
//	          entry: encoding │ bytes │ length of the two, backwards
//	ziplist   bytes, 4 │ where the last entry begins, 4 │ entries, 2 │ entry … │ ff
//	          entry: length of the entry before │ encoding │ bytes
//	zipmap    pairs, 1 │ pair … │ ff
//	          pair: length │ field │ length │ free, 1 │ value │ free bytes
//	intset    bytes of an integer, 4 │ integers, 4 │ integer …
//
// All of what a pack declares is checked while it is read.
type pack struct {
	form  form
	in    reader // what is left, without the last byte if that is ff
	all   int    // bytes of the pack
	count int    // strings that were read
	want  int    // strings that the head declares; -1: it declares none
	tail  int    // where the head of a ziplist says that the last entry begins
	last  int    // where the entry that was read last begins
	size  int    // its bytes
	width int    // bytes of an integer of an intset
	least int64  // the integer before of an intset
}

type form uint8

const (
	formListpack form = iota
	formZiplist
	formZipmap
	formIntset
)

const (
	packEnd      = 0xff
	listpackHead = 6
	ziplistHead  = 10
	intsetHead   = 8
	countUnknown = 1<<16 - 1 // in the heads of listpacks and ziplists
	manyPairs    = 254       // in the head of a zipmap: its pairs are not counted
)

// open begins with a pack, and reports whether its head is valid.
func (p *pack) open(f form, b []byte) bool {
	*p = pack{form: f, all: len(b), want: -1}
	head, count := listpackHead, 0
	switch f {
	case formIntset:
		return p.openIntset(b)
	case formZipmap:
		if len(b) < 2 || b[len(b)-1] != packEnd {
			return false
		}
		if b[0] < manyPairs {
			p.want = 2 * int(b[0])
		}
		p.in = b[1 : len(b)-1]
		return true
	case formZiplist:
		head = ziplistHead
	}
	if len(b) < head+1 || b[len(b)-1] != packEnd || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) {
		return false
	}
	if f == formZiplist {
		p.tail = int(binary.LittleEndian.Uint32(b[4:]))
		p.last = ziplistHead
	}
	count = int(binary.LittleEndian.Uint16(b[head-2:]))
	if count != countUnknown {
		p.want = count
	}
	p.in = b[head : len(b)-1]
	return true
}

func (p *pack) openIntset(b []byte) bool {
	if len(b) < intsetHead {
		return false
	}
	p.width = int(binary.LittleEndian.Uint32(b))
	p.want = int(binary.LittleEndian.Uint32(b[4:]))
	p.in, p.least = b[intsetHead:], math.MinInt64
	return (p.width == 2 || p.width == 4 || p.width == 8) && len(p.in)%p.width == 0 && len(p.in)/p.width == p.want
}

// next reads a string: a view of the pack, or written to memory. more is false behind the last one.
func (p *pack) next(memory *[]byte) (s []byte, more, ok bool) {
	if len(p.in) == 0 {
		return nil, false, p.isComplete()
	}
	switch p.form {
	case formListpack:
		s, ok = p.listpackEntry(memory)
	case formZiplist:
		s, ok = p.ziplistEntry(memory)
	case formZipmap:
		s, ok = p.zipmapString()
	case formIntset:
		s, ok = p.integer(memory)
	}
	p.count++
	return s, true, ok
}

// isComplete reports whether all was there that the head declares.
func (p *pack) isComplete() bool {
	if p.want >= 0 && p.want != p.count || p.form == formZipmap && p.count%2 != 0 {
		return false
	}
	return p.form != formZiplist || p.tail == p.last
}

// decimal writes an integer to memory.
func decimal(memory *[]byte, n int64) []byte {
	*memory = strconv.AppendInt((*memory)[:0], n, 10)
	return *memory
}

func (p *pack) integer(memory *[]byte) (s []byte, ok bool) {
	b, _ := p.in.next(p.width)
	n := littleInt(b)
	if p.count > 0 && n <= p.least {
		return nil, false
	}
	p.least = n
	return decimal(memory, n), true
}

// listpackEntry reads an entry of a listpack as a string.
func (p *pack) listpackEntry(memory *[]byte) (s []byte, ok bool) {
	s, n, isInt, ok := p.listpackItem()
	if ok && isInt {
		s = decimal(memory, n)
	}
	return s, ok
}

// listpackItem reads an entry of a listpack: a string or an integer. There must be one.
//
//	0nnnnnnn           an integer from 0 to 127
//	10nnnnnn           n bytes
//	110nnnnn nnnnnnnn  an integer from -4096 to 4095
//	1110nnnn nnnnnnnn  n bytes
//	11110000, 4        so many bytes
//	11110001 … 100     an integer of 2, 3, 4 or 8 bytes
func (p *pack) listpackItem() (s []byte, n int64, isInt, ok bool) {
	before := len(p.in)
	b, _ := p.in.next(1)
	switch c := b[0]; {
	case c < 0x80:
		n, isInt, ok = int64(c), true, true
	case c < 0xc0:
		s, ok = p.in.next(int(c & 0x3f))
	case c < 0xe0:
		if b, ok = p.in.next(1); ok {
			n, isInt = int64(c&0x1f)<<8|int64(b[0]), true
			n = n << 51 >> 51
		}
	case c < 0xf0:
		if b, ok = p.in.next(1); ok {
			s, ok = p.in.next(int(c&0x0f)<<8 | int(b[0]))
		}
	case c == 0xf0:
		if b, ok = p.in.next(4); ok {
			s, ok = p.in.next(int(binary.LittleEndian.Uint32(b)))
		}
	case c <= 0xf4:
		if b, ok = p.in.next([...]int{2, 3, 4, 8}[c-0xf1]); ok {
			n, isInt = littleInt(b), true
		}
	}
	return s, n, isInt, ok && p.backlen(before-len(p.in))
}

// backlen reads the length of an entry, which stands behind it, and reports whether it is right.
func (p *pack) backlen(size int) bool {
	if size <= 127 && len(p.in) > 0 {
		last := p.in[0]
		p.in = p.in[1:]
		return int(last) == size
	}
	b, ok := p.in.next(backlenSize(size))
	if !ok {
		return false
	}
	value := 0
	for i, c := range b {
		if i > 0 && c&0x80 == 0 || i == 0 && c&0x80 != 0 {
			return false
		}
		value = value<<7 | int(c&0x7f)
	}
	return value == size
}

// farBack begins the length of the entry before that takes four bytes more.
const farBack = 254

// ziplistEntry reads an entry of a ziplist.
//
//	00nnnnnn              n bytes
//	01nnnnnn nnnnnnnn     n bytes
//	10000000, 4           so many bytes, big-endian
//	11000000, 1101, 1110  an integer of 2, 4 or 8 bytes
//	11110000, 11111110    an integer of 3 bytes, of 1
//	1111nnnn              the integer n-1, from 0 to 12
func (p *pack) ziplistEntry(memory *[]byte) (s []byte, ok bool) {
	begin := p.all - 1 - len(p.in)
	b, _ := p.in.next(1)
	before := int(b[0])
	if b[0] == farBack {
		if b, ok = p.in.next(4); !ok {
			return nil, false
		}
		before = int(binary.LittleEndian.Uint32(b))
	}
	if before != p.size || b[0] == packEnd && len(b) == 1 {
		return nil, false
	}
	if b, ok = p.in.next(1); !ok {
		return nil, false
	}
	switch c := b[0]; {
	case c < 0x40:
		s, ok = p.in.next(int(c))
	case c < 0x80:
		if b, ok = p.in.next(1); ok {
			s, ok = p.in.next(int(c&0x3f)<<8 | int(b[0]))
		}
	case c == 0x80:
		if b, ok = p.in.next(4); ok {
			s, ok = p.in.next(int(binary.BigEndian.Uint32(b)))
		}
	case c > 0xf0 && c < 0xfe:
		s = decimal(memory, int64(c&0x0f)-1)
	default:
		n := map[byte]int{0xc0: 2, 0xd0: 4, 0xe0: 8, 0xf0: 3, 0xfe: 1}[c]
		if b, ok = p.in.next(n); ok && n > 0 {
			s = decimal(memory, littleInt(b))
		}
		ok = ok && n > 0
	}
	p.last, p.size = begin, p.all-1-len(p.in)-begin
	return s, ok
}

// zipmapString reads a field of a zipmap, or a value.
func (p *pack) zipmapString() (s []byte, ok bool) {
	b, _ := p.in.next(1)
	n := int(b[0])
	switch n {
	case packEnd:
		return nil, false
	case farBack:
		if b, ok = p.in.next(4); !ok {
			return nil, false
		}
		if n = int(binary.LittleEndian.Uint32(b)); n < farBack {
			return nil, false
		}
	}
	if p.count%2 == 0 {
		return p.in.next(n)
	}
	free, ok := p.in.next(1)
	if !ok {
		return nil, false
	}
	if s, ok = p.in.next(n); ok {
		_, ok = p.in.next(int(free[0]))
	}
	return s, ok
}
