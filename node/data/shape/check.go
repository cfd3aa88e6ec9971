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
			h := t.hashOf(b, at)
			if bucket(h, n) != number || b.slot(e)[0] != tagOf(h) {
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
	s := t.state()
	if s.count() == 0 {
		if n := t.V.Count(t.Leaves); n > 1 || t.V.Count(t.Nodes) > 0 || s.bytes() != 0 {
			return fmt.Errorf("an empty tree has %d leaves, %d nodes, %d bytes", n, t.V.Count(t.Nodes), s.bytes())
		}
		return nil
	}
	c := treeCheck{t: t}
	if err := c.below(s.root(), s.height()); err != nil {
		return err
	}
	got := [...]int{c.count, c.bytes, c.leaves, c.nodes}
	if want := [...]int{s.count(), s.bytes(), t.V.Count(t.Leaves), t.V.Count(t.Nodes)}; got != want {
		return fmt.Errorf("a tree has count, bytes, leaves, nodes %d, counted %d", got, want)
	}
	if c.away > t.V.Count(t.Away) {
		return fmt.Errorf("%d strings are in parts, of which there are %d", c.away, t.V.Count(t.Away))
	}
	return nil
}

// treeCheck is what Check has seen of a tree.
type treeCheck struct {
	t                                 *Tree
	count, bytes, leaves, nodes, away int
	lastRank                          uint64
	last                              []byte
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
	c.bytes += b.need() - blockHead
	for e, off := 0, blockHead; e < b.count(); e++ {
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
		}
		off += b.size(e)
	}
	return nil
}

// check reports what is wrong with the form of a block.
func (b block) check() error {
	if len(b) < blockHead || b.items() > maxItems || b.items() == 0 || b.front() > 8 || b.need() > len(b) {
		return fmt.Errorf("a block of %d bytes needs %d", len(b), b.need())
	}
	if used := blockHead + b.span(0, b.count()); used != b.used() {
		return fmt.Errorf("a block has %d bytes of entries, counts %d", used, b.used())
	}
	for e, off := 0, blockHead; e < b.count(); e++ {
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
