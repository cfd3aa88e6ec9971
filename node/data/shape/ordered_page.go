package shape

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// page is a sequence of entries, a key and a value each, in the order of their keys: a leaf of an
// Ordered, or a node above the leaves. What all keys begin with stands once, in front. The slots say
// where entries end; they grow from the end of the page towards the entries.
//
//	count │ used │ prefix │ hint │ prefix │ entry 0 │ entry 1 │ ... free ... │ slot 1 │ slot 0
//	  2      2       2       2                                                   2        2
//	entry: length of the rest of the key │ rest of the key │ value
//	         1, or 2 from maxShortRest on
//
// The hint is where the entry behind the last inserted one stands: a page in which keys ascend is split
// there. The value of a node's entry is the number of a child, and its key at most the first one below
// that child, and above all keys in front of it. The key of a node's entry 0 means nothing.
type page []byte

const (
	pageHead     = 8
	pageSlot     = 2
	maxShortRest = 0x80
	childLen     = 4

	fourSlots = 4 * pageSlot
	eachSlot  = 1<<48 | 1<<32 | 1<<16 | 1 // 1 in each of four slots
)

// initPage makes b an empty page whose keys begin with prefix.
func initPage(b []byte, prefix []byte) page {
	p := page(b)
	clear(p[:pageHead])
	binary.LittleEndian.PutUint16(p[4:], uint16(len(prefix)))
	p.setUsed(pageHead + copy(p[pageHead:], prefix))
	return p
}

func (p page) count() int     { return int(binary.LittleEndian.Uint16(p)) }
func (p page) setCount(n int) { binary.LittleEndian.PutUint16(p, uint16(n)) }
func (p page) used() int      { return int(binary.LittleEndian.Uint16(p[2:])) }
func (p page) setUsed(n int)  { binary.LittleEndian.PutUint16(p[2:], uint16(n)) }
func (p page) hint() int      { return int(binary.LittleEndian.Uint16(p[6:])) }
func (p page) setHint(e int)  { binary.LittleEndian.PutUint16(p[6:], uint16(e)) }
func (p page) front() int     { return pageHead + int(binary.LittleEndian.Uint16(p[4:])) } // where entries begin
func (p page) prefix() []byte { return p[pageHead:p.front():p.front()] }

// need is how many bytes the page takes.
func (p page) need() int { return p.used() + pageSlot*p.count() }

// end is where an entry ends.
func (p page) end(e int) int { return int(binary.LittleEndian.Uint16(p[len(p)-pageSlot*(e+1):])) }

func (p page) setEnd(e, at int) {
	binary.LittleEndian.PutUint16(p[len(p)-pageSlot*(e+1):], uint16(at))
}

// begin is where an entry begins.
func (p page) begin(e int) int {
	if e == 0 {
		return p.front()
	}
	return p.end(e - 1)
}

// entry is the rest of an entry's key, behind the prefix, and its value.
func (p page) entry(e int) (rest, value []byte) {
	at, end := p.begin(e), p.end(e)
	n := int(p[at])
	if at++; n >= maxShortRest {
		n = n&^maxShortRest<<8 | int(p[at])
		at++
	}
	return p[at : at+n : at+n], p[at+n : end : end]
}

func (p page) rest(e int) []byte {
	rest, _ := p.entry(e)
	return rest
}

func (p page) value(e int) []byte {
	_, value := p.entry(e)
	return value
}

// appendKey appends the key of an entry.
func (p page) appendKey(dst []byte, e int) []byte {
	return append(append(dst, p.prefix()...), p.rest(e)...)
}

// child is the number of a node's child.
func (p page) child(e int) int { return int(binary.LittleEndian.Uint32(p[p.end(e)-childLen:])) }

func (p page) setChild(e, number int) {
	binary.LittleEndian.PutUint32(p[p.end(e)-childLen:], uint32(number))
}

func putChild(dst *[childLen]byte, number int) { binary.LittleEndian.PutUint32(dst[:], uint32(number)) }

// restLen is how many bytes the length of a rest takes.
func restLen(n int) int {
	if n < maxShortRest {
		return 1
	}
	return 2
}

// search returns the first entry from one on whose key is not below a key.
func (p page) search(key []byte, from int) (e int, found bool) {
	prefix := p.prefix()
	if len(key) < len(prefix) || string(key[:len(prefix)]) != string(prefix) {
		if bytes.Compare(key, prefix) < 0 {
			return from, false
		}
		return p.count(), false
	}
	key = key[len(prefix):]
	word := firstWord(key)
	low, high := from, p.count()
	if hint := p.hint(); hint > low && p.compare(hint-1, key, word) < 0 { // keys ascend, or what came first goes first
		if low = hint; low < high && p.compare(low, key, word) > 0 {
			return low, false
		}
	}
	for low < high {
		middle := int(uint(low+high) / 2)
		switch c := p.compare(middle, key, word); {
		case c == 0:
			return middle, true
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// is reports whether a key is that of an entry.
func (p page) is(e int, key []byte) bool {
	prefix, rest := p.prefix(), p.rest(e)
	n := len(prefix)
	return len(key) == n+len(rest) && string(key[n:]) == string(rest) && string(key[:n]) == string(prefix)
}

// firstWord is the first bytes of a string as a number in the order of strings. If those of two strings are
// equal, so are the strings up to there, but for zeros at the end of the shorter one.
func firstWord(s []byte) (word uint64) {
	if len(s) >= wordLen {
		return binary.BigEndian.Uint64(s)
	}
	for i, c := range s {
		word |= uint64(c) << (56 - 8*i)
	}
	return word
}

const wordLen = 8

// compare compares the rest of an entry's key with a string, whose firstWord is word. Mostly eight bytes decide.
func (p page) compare(e int, key []byte, word uint64) int {
	at := p.begin(e)
	n := int(p[at])
	if n < maxShortRest && at+1+wordLen <= len(p) {
		mine := binary.BigEndian.Uint64(p[at+1:])
		if n < wordLen {
			mine &^= 1<<(64-8*n) - 1
		}
		switch {
		case mine < word:
			return -1
		case mine > word:
			return 1
		}
	}
	return bytes.Compare(p.rest(e), key)
}

// childFor is the entry of a node below which a key is.
func (p page) childFor(key []byte) int {
	e, found := p.search(key, 1)
	if found {
		return e
	}
	return e - 1
}

// shared is how many bytes of the prefix a key begins with too.
func (p page) shared(key []byte) int { return common(p.prefix(), key) }

// common is how many bytes two strings have in common at their beginning.
func common(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most && a[n] == b[n]; n++ {
	}
	return n
}

// needWith is at most how many bytes the page takes with an entry more, whose prefix may be shorter.
func (p page) needWith(key []byte, value int) int {
	shared := p.shared(key)
	lost := len(p.prefix()) - shared
	need := p.need() + pageSlot + 2 + len(key) - shared + value
	if lost > 0 {
		need += p.count()*(lost+1) - lost
	}
	return need
}

// insert inserts an entry in front of the e-th one. There is room, and the key begins with the prefix.
func (p page) insert(e int, key, value []byte) {
	rest := key[len(p.prefix()):]
	size := restLen(len(rest)) + len(rest) + len(value)
	at, used, n := p.begin(e), p.used(), p.count()
	copy(p[at+size:], p[at:used])
	low, end := len(p)-pageSlot*n, len(p)-pageSlot*e
	for ; low+fourSlots <= end; low += fourSlots { // none of the four gets so great that it changes another one
		binary.LittleEndian.PutUint64(p[low-pageSlot:], binary.LittleEndian.Uint64(p[low:])+uint64(size)*eachSlot)
	}
	for ; low < end; low += pageSlot {
		binary.LittleEndian.PutUint16(p[low-pageSlot:], binary.LittleEndian.Uint16(p[low:])+uint16(size))
	}
	p.put(at, rest, value)
	p.setEnd(e, at+size)
	p.setCount(n + 1)
	p.setUsed(used + size)
	p.setHint(e + 1)
}

// put writes an entry.
func (p page) put(at int, rest, value []byte) {
	if n := len(rest); n < maxShortRest {
		p[at] = byte(n)
		at++
	} else {
		p[at], p[at+1] = byte(n>>8)|maxShortRest, byte(n)
		at += 2
	}
	at += copy(p[at:], rest)
	copy(p[at:], value)
}

// cut removes the entries from one to another.
func (p page) cut(from, to int) {
	begin, end, used, n := p.begin(from), p.begin(to), p.used(), p.count()
	copy(p[begin:], p[end:used])
	size, gone := end-begin, pageSlot*(to-from)
	high, low := len(p)-pageSlot*to, len(p)-pageSlot*n
	for ; high-fourSlots >= low; high -= fourSlots { // none of the four gets less than 0
		binary.LittleEndian.PutUint64(p[high-fourSlots+gone:], binary.LittleEndian.Uint64(p[high-fourSlots:])-uint64(size)*eachSlot)
	}
	for ; high > low; high -= pageSlot {
		binary.LittleEndian.PutUint16(p[high-pageSlot+gone:], binary.LittleEndian.Uint16(p[high-pageSlot:])-uint16(size))
	}
	p.setCount(n - to + from)
	p.setUsed(used - size)
	switch hint := p.hint(); {
	case hint > to:
		p.setHint(hint - to + from)
	case hint > from:
		p.setHint(from)
	}
}

// spread moves the slots, which end at an offset, to the end of the page.
func (p page) spread(end int) {
	n := pageSlot * p.count()
	copy(p[len(p)-n:], p[end-n:end])
}

// take appends the entries of another page from one to another, which come behind those of this one
// and begin with its prefix. There is room.
func (p page) take(from page, first, last int) {
	if first == last {
		return
	}
	n, used := p.count(), p.used()
	mine, other := len(p.prefix()), len(from.prefix())
	if mine == other {
		begin, end := from.begin(first), from.begin(last)
		copy(p[used:], from[begin:end])
		for e := first; e < last; e++ {
			p.setEnd(n+e-first, from.end(e)-begin+used)
		}
		p.setCount(n + last - first)
		p.setUsed(used + end - begin)
		return
	}
	var key [MaxOrderedKey]byte
	for e := first; e < last; e++ {
		whole := from.appendKey(key[:0], e)
		if !bytes.HasPrefix(whole, p.prefix()) {
			whole = p.prefix() // of a node's entry 0, whose key means nothing
		}
		p.insert(p.count(), whole, from.value(e))
	}
}

// sharedBy is how many bytes the keys of the entries from one to another have in common. That of a
// node's first one does not count.
func (p page) sharedBy(first, last int, isNode bool) (prefix int) {
	if isNode {
		first++
	}
	prefix = len(p.prefix())
	switch {
	case first >= last:
		return prefix
	case first == last-1:
		return prefix + len(p.rest(first))
	}
	return prefix + common(p.rest(first), p.rest(last-1))
}

// sizeOf is how many bytes a page takes of some entries, with a prefix of n bytes, at most.
func (p page) sizeOf(first, last, n int) int {
	size := pageHead + n + p.begin(last) - p.begin(first) + pageSlot*(last-first)
	switch lost := len(p.prefix()) - n; {
	case lost > 0:
		size += (last - first) * (lost + 1)
	case lost < 0:
		size += (last-first)*lost - lost // a node's first key may not get shorter
	}
	return size
}

// copyTo makes an empty page of dst with a prefix of n bytes and some of the entries.
func (p page) copyTo(dst []byte, n, first, last int) page {
	var key [MaxOrderedKey]byte
	prefix := p.prefix()
	if n > len(prefix) {
		prefix = p.appendKey(key[:0], last-1)
	}
	to := initPage(dst, prefix[:n])
	to.take(p, first, last)
	to.setHint(min(max(p.hint()-first, 0), last-first))
	return to
}

// check reports what is wrong with the form of a page: a text, or none.
func (p page) check(isNode bool) string {
	switch {
	case len(p) < pageHead || p.front() > p.used() || p.need() > len(p):
		return "lengths"
	case p.hint() > p.count():
		return "hint"
	case p.begin(p.count()) != p.used():
		return "used bytes"
	}
	for e := range p.count() {
		at, end := p.begin(e), p.end(e)
		if end <= at || p[at] >= maxShortRest && end < at+2 {
			return "an entry's length"
		}
		rest, value := p.entry(e)
		if len(rest)+len(value) > end-at || isNode && len(value) != childLen {
			return "an entry's lengths"
		}
		if (e > 1 || e > 0 && !isNode) && slices.Compare(p.rest(e-1), rest) >= 0 {
			return "the order of keys"
		}
	}
	return ""
}
