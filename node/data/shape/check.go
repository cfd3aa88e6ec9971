package shape

import (
	"encoding/binary"
	"fmt"
)

// Check walks through the whole table and reports what does not fit together. It is for tests.
func (t *Table) Check() error {
	count, bytes, expiring, away := 0, 0, 0, 0
	n := t.V.Len(t.Blocks)
	if n != t.V.Count(t.Blocks) {
		return fmt.Errorf("a table has %d blocks with numbers below %d", t.V.Count(t.Blocks), n)
	}
	for number := range n {
		b := block(t.V.Part(t.Blocks, number))
		if err := b.check(); err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if b.front() != tagFront || b.items() < t.Items || b.items() > t.Items+1 || len(b) > maxBlock+8 {
			return fmt.Errorf("block %d has %d bytes in front and %d items", number, b.front(), b.items())
		}
		count += b.count()
		bytes += b.need() - blockHead
		if b.count() > t.state().most() {
			return fmt.Errorf("block %d has %d entries, the most were %d", number, b.count(), t.state().most())
		}
		for e, off := 0, blockHead; e < b.count(); e++ {
			at := place{e, off}
			h := t.wholeHashOf(b, at)
			if bucket(h, n) != number || b.slot(e)[0] != tagOf(h) || t.hashOf(b, at) != uint32(h) {
				return fmt.Errorf("block %d of %d has an element with hash %x", number, n, h)
			}
			for i, code := range b.slot(e)[tagFront:] {
				if code == codeAway {
					away++
				}
				if i == t.Items && code != codeNone {
					expiring++
				}
			}
			off += b.size(e)
		}
	}
	if got, want := [...]int{count, bytes, expiring}, [...]int{t.Len(), t.Bytes(), t.Expiring()}; got != want {
		return fmt.Errorf("a table has count, bytes, expiring %d, counted %d", got, want)
	}
	if away > t.V.Count(t.Away) {
		return fmt.Errorf("%d strings are in parts, of which there are %d", away, t.V.Count(t.Away))
	}
	return nil
}

// Check walks through the whole tree and reports what does not fit together. It is for tests.
func (t *Tree) Check() error {
	s, c := t.state(), treeCheck{t: t, indexed: map[indexEntry]int{}}
	if s.count() == 0 {
		if n := t.V.Count(t.Leaves) - c.tombstones(); n > 1 || t.V.Count(t.Nodes) > 0 || s.bytes() != 0 {
			return fmt.Errorf("an empty tree has %d leaves, %d nodes, %d bytes", n, t.V.Count(t.Nodes), s.bytes())
		}
		return c.index()
	}
	if err := c.below(s.root(), s.height()); err != nil {
		return err
	}
	got := [...]int{c.count, c.bytes, c.leaves, c.nodes}
	if want := [...]int{s.count(), s.bytes(), t.V.Count(t.Leaves) - c.tombstones(), t.V.Count(t.Nodes)}; got != want {
		return fmt.Errorf("a tree has count, bytes, leaves, nodes %d, counted %d", got, want)
	}
	if c.away > t.V.Count(t.Away) {
		return fmt.Errorf("%d strings are in parts, of which there are %d", c.away, t.V.Count(t.Away))
	}
	return c.index()
}

// treeCheck is what Check has seen of a tree.
type treeCheck struct {
	t                                 *Tree
	count, bytes, leaves, nodes, away int
	lastRank                          uint64
	last                              []byte
	indexed                           map[indexEntry]int // of a ranked tree: what its index should have
}

// indexEntry is what an index has of an entry.
type indexEntry struct {
	hash uint32
	leaf int
}

// index checks that the index has what the leaves have, and nothing else.
func (c *treeCheck) index() error {
	t := c.t
	n := t.V.Len(t.Index)
	if !t.Ranked || n == 0 && c.count == 0 {
		return nil
	}
	if n != t.V.Count(t.Index) || !t.index().numbersFit(n) {
		return fmt.Errorf("an index has %d buckets with numbers below %d, for %d leaves", t.V.Count(t.Index), n, t.V.Len(t.Leaves))
	}
	stale := map[int]int{} // by leaf
	for number := range n {
		b, depth := indexBlock(t.V.Part(t.Index, number)), depthOf(number, n)
		if size := indexSize(b.count()); size > len(b) {
			return fmt.Errorf("bucket %d of %d bytes needs %d", number, len(b), size)
		}
		for e := range b.count() {
			x := indexEntry{b.hashOf(e, depth, number), leafOf(b.word(e), depth)}
			if leaf := block(t.V.Part(t.Leaves, x.leaf)); leaf != nil && leaf.isTombstone() {
				stale[x.leaf]++
				continue
			}
			if c.indexed[x]--; bucket(uint64(x.hash), n) != number || c.indexed[x] < 0 {
				return fmt.Errorf("bucket %d of %d has %x in leaf %d", number, n, x.hash, x.leaf)
			}
			c.count--
		}
	}
	if c.count != 0 {
		return fmt.Errorf("%d entries are not in the index", c.count)
	}
	return c.stale(stale)
}

// tombstones is how many of the leaves are tombstones.
func (c *treeCheck) tombstones() (n int) {
	for number := range c.t.V.Len(c.t.Leaves) {
		if b := block(c.t.V.Part(c.t.Leaves, number)); b != nil && b.isTombstone() {
			n++
		}
	}
	return n
}

// stale checks that tombstones have the index's entries that name them, whose numbers stand by leaf.
func (c *treeCheck) stale(byLeaf map[int]int) error {
	sum := 0
	for leaf, n := range byLeaf {
		if got := block(c.t.V.Part(c.t.Leaves, leaf)).stale(); got != n {
			return fmt.Errorf("%d entries of the index name tombstone %d, which has %d", n, leaf, got)
		}
		sum += n
	}
	if tombstones := c.tombstones(); tombstones != len(byLeaf) || sum != c.t.state().stale() {
		return fmt.Errorf("%d stale entries name %d of %d tombstones, counted %d",
			sum, len(byLeaf), tombstones, c.t.state().stale())
	}
	return nil
}

// parent checks that a node, or a leaf, knows its parent.
func (c *treeCheck) parent(child, parent, height int) error {
	got := 0
	switch {
	case !c.t.Ranked:
		return nil
	case height == 0:
		got = block(c.t.V.Part(c.t.Leaves, child)).parent()
	default:
		got = node(c.t.V.Part(c.t.Nodes, child)).parent()
	}
	if got != parent {
		return fmt.Errorf("child %d of node %d has the parent %d", child, parent, got)
	}
	return nil
}

// below checks what is below a node or leaf, itself included.
func (c *treeCheck) below(number, height int) error {
	if height == 0 {
		return c.leaf(number)
	}
	c.nodes++
	n := node(c.t.V.Part(c.t.Nodes, number))
	if len(n) < nodeHead || n.count() == 0 || n.count() > fan || n.width() != c.t.width() || len(n) < c.t.nodeSize(n.count()) {
		return fmt.Errorf("node %d has %d bytes, %d children", number, len(n), n.count())
	}
	for i := range n.count() {
		before := c.count
		if c.t.Ranked && i > 0 && (n.rank(i) < c.lastRank || n.rank(i) > c.firstRank(n.child(i), height-1)) {
			return fmt.Errorf("node %d has a wrong rank for child %d", number, i)
		}
		if err := c.parent(n.child(i), number, height-1); err != nil {
			return err
		}
		if err := c.below(n.child(i), height-1); err != nil {
			return err
		}
		if got := c.count - before; got != n.weight(i) || got == 0 {
			return fmt.Errorf("below child %d of node %d are %d entries, counted %d", i, number, got, n.weight(i))
		}
	}
	return nil
}

func (c *treeCheck) firstRank(number, height int) uint64 {
	for ; height > 0; height-- {
		number = node(c.t.V.Part(c.t.Nodes, number)).child(0)
	}
	return rankOf(c.t.V.Part(c.t.Leaves, number), 0)
}

func (c *treeCheck) leaf(number int) error {
	c.leaves++
	b := block(c.t.V.Part(c.t.Leaves, number))
	if err := b.check(); err != nil {
		return fmt.Errorf("leaf %d: %w", number, err)
	}
	if b.front() != c.t.front() || b.items() != c.t.Items || b.need() > c.t.maxLeaf() || b.count() > mostInLeaf {
		return fmt.Errorf("leaf %d has %d entries, %d bytes, %d items", number, b.count(), b.need(), b.items())
	}
	c.count += b.count()
	c.bytes += b.need() - b.begin()
	for e, off := 0, b.begin(); e < b.count(); e++ {
		for _, code := range b.slot(e)[b.front():] {
			if code == codeAway {
				c.away++
			}
		}
		if c.t.Ranked {
			if c.count > b.count() || e > 0 {
				if c.t.compare(b, e, c.lastRank, c.last) <= 0 {
					return fmt.Errorf("entry %d of leaf %d is out of order", e, number)
				}
			}
			c.lastRank, c.last = rankOf(b, e), c.t.item(b, e, off, 0).Append(c.last[:0])
			h := c.t.hashOf(b, e, off)
			if h != c.t.hash(c.last) || b.slot(e)[rankFront] != tagOf32(h) {
				return fmt.Errorf("entry %d of leaf %d has hash %x", e, number, h)
			}
			c.indexed[indexEntry{h, number}]++
		}
		off += b.size(e)
	}
	return nil
}

// check reports what is wrong with the form of a block.
func (b block) check() error {
	if len(b) < blockHead || b.items() > maxItems || b.items() == 0 || b.front() > leafFront || b.used() < b.begin() || b.need() > len(b) {
		return fmt.Errorf("a block of %d bytes needs %d", len(b), b.need())
	}
	if used := b.begin() + b.span(0, b.count()); used != b.used() {
		return fmt.Errorf("a block has %d bytes of entries, counts %d", used, b.used())
	}
	for e, off := 0, b.begin(); e < b.count(); e++ {
		for i := range b.items() {
			code, bytes := b.item(e, off, i)
			if err := checkItem(code, bytes); err != nil {
				return fmt.Errorf("entry %d, item %d: %w", e, i, err)
			}
		}
		off += b.size(e)
	}
	return nil
}

// checkItem reports what is wrong with an item: it could be stored otherwise, or not at all.
func checkItem(code byte, bytes []byte) error {
	i := Item{code, bytes}
	switch {
	case code > codeNone:
		return fmt.Errorf("code %d", code)
	case code == codeAway, code == codeNone:
		return nil
	case code >= codePadded && code < codeInt:
		if pad := int(bytes[len(bytes)-1]); pad < 1 || pad > padStep {
			return fmt.Errorf("%d bytes of padding", pad)
		}
	case code >= codeInt:
		if n := decodeInt(bytes); intBytes(n) != len(bytes) && len(bytes) != expirySize {
			return fmt.Errorf("%d in %d bytes", n, len(bytes))
		}
		return nil
	}
	p := probeOf(i.raw())
	if p.code != code {
		return fmt.Errorf("a string of %d bytes has code %d", len(i.raw()), code)
	}
	_ = binary.LittleEndian
	return nil
}
