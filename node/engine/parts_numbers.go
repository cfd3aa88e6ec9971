package engine

import "math/bits"

// The parts of a plane are found by number in a directory of handles, a tree of up to three levels
// whose nodes have 512 handles. A node is a cell as a part is, and is moved like one: it says in
// its first word which it is. The only node of a directory of one level grows by doubling; a node
// becomes free when the numbers that it is for are.
//
//	up to 512 parts          up to 512²               up to 512³, which is 2²⁷
//	directory ─> ● ● ● ●     directory ─> ● ●         directory ─> ● ●
//	             │                        │ └> ● ●                 │ └> ● ● ...
//	             └> part                  └> ● ● ● ... level 1     └> ● ● ● ...

const (
	fanShift    = 9
	fan         = 1 << fanShift
	minNode     = 4
	maxNumbers  = 1 << (3 * fanShift)
	nodeOffset  = partHeadSize / handleSize // handles in the place of the node's first word
	numberLooks = 64                        // steps in which a free number is looked for, or the end of the numbers
)

// levels is how many levels the directory of so many numbers has.
func levels(span uint32) uint8 {
	switch {
	case span == 0:
		return 0
	case span <= fan:
		return 1
	case span <= fan*fan:
		return 2
	}
	return 3
}

func nodeSize(handles int) int { return partHeadSize + handles*handleSize }

// entryOf is the i-th handle in a node.
func (c *cells) entryOf(node handle, i uint32) *handle { return c.handle(node, nodeOffset+i) }

// cellOf is the cell of a part, 0 if the plane has no such part.
func (c *cells) cellOf(p *plane, number uint32) handle {
	switch {
	case number >= p.span:
		return 0
	case p.span <= fan:
		return *c.entryOf(p.directory, number)
	}
	return *c.partAt(p, number)
}

// partAt is where the directory has part number, which is below the span.
func (c *cells) partAt(p *plane, number uint32) *handle { return c.nodeAt(p, 0, number) }

// nodeAt is where the directory has the handle of a node of a level, or of a part, by its number
// there.
func (c *cells) nodeAt(p *plane, level uint8, number uint32) *handle {
	at := &p.directory
	for l := levels(p.span); l > level; l-- {
		at = c.entryOf(*at, number>>(fanShift*(l-level-1))&(fan-1))
	}
	return at
}

// nodeLen is how many handles a node has room for that is the directory's only one.
func (c *cells) nodeLen(node handle) int {
	n := (c.partSize(node) - partHeadSize) / handleSize
	return min(fan, 1<<(bits.Len(uint(n))-1))
}

// takeNumber returns a free number of a plane and where its handle belongs; nil without memory for
// the directory.
func (v Parts) takeNumber(plane int) (number uint32, at *handle) {
	s, p := v.t.s, &v.head().planes[plane]
	for range min(numberLooks, p.span-p.parts) {
		if p.next >= p.span {
			p.next = 0
		}
		p.next++
		if at := s.cells.partAt(p, p.next-1); *at == 0 {
			return p.next - 1, at
		}
	}
	if p.span == maxNumbers || !v.extend(plane, p) {
		return 0, nil
	}
	p.span++
	at = s.cells.partAt(p, p.span-1)
	*at = 0
	return p.span - 1, at
}

// extend makes sure that the directory has room for one number more. All nodes that it takes are
// taken first.
func (v Parts) extend(plane int, p *plane) bool {
	s, n := v.t.s, p.span
	switch {
	case n == 0:
		p.directory = v.newNode(plane, 1, 0, minNode)
		return p.directory != 0
	case n < fan:
		return int(n) < s.cells.nodeLen(p.directory) || v.doubleNode(plane, p)
	case n%fan != 0:
		return true
	}
	return v.addNode(plane, p)
}

// addNode gives a directory of whole nodes one more, and a level more if it must.
func (v Parts) addNode(plane int, p *plane) bool {
	s, n := v.t.s, p.span
	before, after := levels(n), levels(n+1)
	var nodes [3]handle // by level - 1: those that are new
	count := uint8(1)
	for before > count && n&(1<<(fanShift*(count+1))-1) == 0 || before < after && count < after {
		count++
	}
	for l := uint8(1); l <= count; l++ {
		if before < after && l == after {
			nodes[l-1] = v.newNode(plane, l, 0, fan)
		} else {
			nodes[l-1] = v.newNode(plane, l, n>>(fanShift*l), fan)
		}
		if nodes[l-1] == 0 {
			for _, node := range nodes[:l-1] {
				v.charge(-s.values.freePart(node))
			}
			return false
		}
	}
	if before < after {
		root := nodes[count-1]
		*s.cells.entryOf(root, 0) = p.directory
		p.directory = root
		for l := count - 1; l > 0; l-- {
			i := uint32(0)
			if l == count-1 {
				i = 1
			}
			*s.cells.entryOf(nodes[l], i) = nodes[l-1]
		}
		return true
	}
	for l := count - 1; l > 0; l-- {
		*s.cells.entryOf(nodes[l], 0) = nodes[l-1]
	}
	at := &p.directory
	for l := before; l > count; l-- {
		at = s.cells.entryOf(*at, n>>(fanShift*(l-1))&(fan-1))
	}
	*at = nodes[count-1]
	return true
}

// newNode makes a node of a directory; 0 without memory.
func (v Parts) newNode(plane int, level uint8, number uint32, handles int) handle {
	s := v.t.s
	node := s.values.takePart(nodeSize(handles))
	if node != 0 {
		*s.cells.word(node) = uint64(makePartWord(v.at, plane, level, number))
		v.charge(int64(s.cells.partSize(node)))
	}
	return node
}

// doubleNode gives the only node of a directory twice the room.
func (v Parts) doubleNode(plane int, p *plane) bool {
	s := v.t.s
	from := p.directory
	to := v.newNode(plane, 1, 0, 2*s.cells.nodeLen(from))
	if to == 0 {
		return false
	}
	n := int(p.span) * handleSize
	copy(s.cells.view(to, partHeadSize, n), s.cells.view(from, partHeadSize, n))
	p.directory = to
	v.charge(-s.values.freePart(from))
	return true
}

// trimNumbers lets the span end with the last part, or a few numbers nearer to it.
func (v Parts) trimNumbers(p *plane) {
	for looks := 0; looks < numberLooks && p.span > 0 && *v.t.s.cells.partAt(p, p.span-1) == 0; looks++ {
		v.charge(-v.t.s.values.retractNumber(p))
	}
}

// retractNumber takes the last number, which has no part, out of the directory, and returns how
// many bytes became free.
func (v *values) retractNumber(p *plane) (bytes int64) {
	n := p.span - 1 // what is left
	before, after := levels(p.span), levels(n)
	for l := uint8(1); l <= before && n&(1<<(fanShift*l)-1) == 0; l++ {
		if l == before && n > 0 {
			break // it has others
		}
		bytes += v.freePart(*v.s.cells.nodeAt(p, l, n>>(fanShift*l)))
	}
	if after > 0 && after < before {
		root := p.directory
		p.directory = *v.s.cells.entryOf(root, 0)
		bytes += v.freePart(root)
	}
	p.span = n
	return bytes
}

// wantNodes notes the cells that the directory of a plane may take for a number of further parts.
func (v *values) wantNodes(p *plane, parts int) {
	last := p.span + uint32(parts)
	n := uint32(0)
	if p.span > 0 && p.span <= fan {
		n = uint32(v.s.cells.nodeLen(p.directory))
	}
	for p.span <= fan && n < min(last, fan) {
		n = max(minNode, 2*n)
		v.want(partCells, nodeSize(int(n)))
	}
	for n := max(fan, (p.span+fan-1)/fan*fan); n < last; n += fan {
		for range levels(n + 1) {
			v.want(partCells, nodeSize(fan))
		}
	}
}
