package engine

import "fmt"

// poison stands in freed cells of a checked engine: who still reads there finds nothing that makes
// sense.
const poison = 0xDB

// check panics if h is not the beginning of a cell that some shard has.
func (c *cells) check(h handle) {
	e, pg := c.e, c.pageOf(h)
	if pg == c.firstPage || int(pg) >= len(e.pool.pages) || e.pool.pages[pg].mark() == 0 {
		panic(fmt.Sprintf("BUG: handle %#x is on page %d, which nobody has", h, pg))
	}
	p := &e.pool.pages[pg]
	at := uint32(h - c.firstCell(pg))
	if p.kind == smallLog {
		if at >= uint32(p.bump) {
			panic(fmt.Sprintf("BUG: handle %#x is behind the end of a log of %d grains", h, p.bump))
		}
		return
	}
	if units := e.classes.units[p.class]; at%units != 0 || at/units >= uint32(p.bump) {
		panic(fmt.Sprintf("BUG: handle %#x is %d grains into a page of %d cells of %d", h, at, p.bump, units))
	}
}

// spoil overwrites a cell of n bytes behind its first word.
func (c *cells) spoil(h handle, n int) {
	body := c.view(h, wordSize, n-wordSize)
	for i := range body {
		body[i] = poison
	}
}
