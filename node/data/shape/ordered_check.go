package shape

import (
	"bytes"
	"fmt"
)

// Check walks through the whole map and reports what does not fit together. It is for tests.
func (o *Ordered) Check() error {
	s, c := o.state(), orderedCheck{o: o}
	leaves, nodes := o.V.Count(o.Leaves), o.V.Count(o.Nodes)
	if s.count() == 0 {
		if leaves+nodes > 0 {
			return fmt.Errorf("an empty map has %d leaves, %d nodes", leaves, nodes)
		}
		return nil
	}
	if err := c.below(s.root(), s.height()); err != nil {
		return err
	}
	for m := range OrderedMarks {
		if leaf, _, ok := s.mark(m); ok && o.leaf(leaf) == nil {
			return fmt.Errorf("mark %d names leaf %d, which is not there", m, leaf)
		}
	}
	if got, want := [...]int{c.count, c.leaves, c.nodes}, [...]int{s.count(), leaves, nodes}; got != want {
		return fmt.Errorf("a map has entries, leaves, nodes %d, counted %d", want, got)
	}
	return nil
}

// orderedCheck is what Check has seen of a map.
type orderedCheck struct {
	o                    *Ordered
	count, leaves, nodes int
	last                 []byte // the last key
	bound                []byte // no key of what comes is below it
}

// below checks what is below a node or leaf, itself included.
func (c *orderedCheck) below(number, height int) error {
	if height == 0 {
		return c.leaf(number)
	}
	c.nodes++
	p := page(c.o.V.Part(c.o.Nodes, number))
	if what := p.check(true); what != "" || p.count() == 0 || p.need() > maxOrderedNode {
		return fmt.Errorf("node %d has %d children in %d bytes: %s", number, p.count(), p.need(), what)
	}
	for e := range p.count() {
		if e > 0 {
			bound := p.appendKey(nil, e)
			if bytes.Compare(c.last, bound) >= 0 {
				return fmt.Errorf("in front of child %d of node %d is %q, its key is %q", e, number, c.last, bound)
			}
			c.bound = bound
		}
		if err := c.below(p.child(e), height-1); err != nil {
			return err
		}
	}
	return nil
}

func (c *orderedCheck) leaf(number int) error {
	c.leaves++
	p := page(c.o.V.Part(c.o.Leaves, number))
	if what := p.check(false); what != "" || p.count() == 0 || p.need() > maxOrderedLeaf {
		return fmt.Errorf("leaf %d has %d entries in %d bytes: %s", number, p.count(), p.need(), what)
	}
	for e := range p.count() {
		key := p.appendKey(nil, e)
		if c.count > 0 && bytes.Compare(c.last, key) >= 0 || bytes.Compare(key, c.bound) < 0 {
			return fmt.Errorf("entry %d of leaf %d is %q, behind %q, and at least %q", e, number, key, c.last, c.bound)
		}
		c.last = key
		c.count++
	}
	return nil
}
