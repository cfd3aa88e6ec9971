package lua

import "unsafe"

// A census adds up the bytes that are reachable from a State: its globals, its threads' stacks, and what
// these refer to. It costs steps like everything else, so a script that lives close to its limit pays for
// being counted again and again. It needs memory, up to a third of what it counts, and adds that.
type census struct {
	mark    uint32
	bytes   int
	work    []Value
	counted map[unsafe.Pointer]bool // long strings and compiled functions
}

// sharedString is the length from which a string counts once, however often it is referred to.
const sharedString = 64

// countedSize and workSize are what an entry of these takes, also while they grow.
const countedSize, workSize = 24, 2 * valueSize

func (s *State) census() int {
	c := s.count()
	return c.bytes + c.own()
}

// own is how many bytes the census takes itself.
func (c *census) own() int { return len(c.counted)*countedSize + cap(c.work)*workSize }

func (s *State) count() *census {
	s.lastCensus++
	c := &census{mark: s.lastCensus, counted: map[unsafe.Pointer]bool{}}
	c.table(s.Globals)
	c.table(s.registry)
	c.table(s.stringMeta)
	for _, v := range s.pinned {
		c.value(v)
	}
	for t := s.running; t != nil; t = t.resumer {
		c.thread(t)
	}
	steps := 0
	for len(c.work) > 0 {
		v := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		steps += c.expand(v)
		if steps > stepsBetweenLooks {
			s.spend(steps)
			steps = 0
		}
	}
	s.spend(steps)
	return c
}

// value counts v, if it was not counted, and puts what it refers to on the list of work.
func (c *census) value(v Value) {
	if v.isNumber() || v.ref == nil {
		return
	}
	switch v.bits & 0xff {
	case kindString:
		c.string(v.str())
	case kindTable:
		c.table(v.table())
	case kindClosure:
		if f := v.closure(); f.seen != c.mark {
			f.seen = c.mark
			c.bytes += closureSize + 8*len(f.upvalues)
			c.prototype(f.proto)
			c.work = append(c.work, v)
		}
	case kindBuiltin:
		if f := v.builtin(); f.seen != c.mark {
			f.seen = c.mark
			c.bytes += closureSize
			c.work = append(c.work, v)
		}
	case kindThread:
		if t := v.thread(); t.seen != c.mark {
			t.seen = c.mark
			c.work = append(c.work, v)
		}
	}
}

func (c *census) string(s string) {
	if len(s) >= sharedString {
		name := sameBytes(s)
		if c.counted[name] {
			return
		}
		c.counted[name] = true
	}
	c.bytes += len(s)
}

// prototype counts a compiled function with those in it.
func (c *census) prototype(p *Prototype) {
	if name := unsafe.Pointer(p); !c.counted[name] {
		c.counted[name] = true
		c.bytes += p.size
	}
}

func (c *census) table(t *Table) {
	if t != nil && t.seen != c.mark {
		t.seen = c.mark
		c.bytes += tableSize
		c.work = append(c.work, TableValue(t))
	}
}

// expand counts what v refers to, and returns the steps that it took.
func (c *census) expand(v Value) int {
	switch v.bits {
	case kindTable:
		t := v.table()
		c.table(t.meta)
		c.bytes += len(t.array)*valueSize + len(t.nodes)*nodeSize
		for _, e := range t.array {
			c.value(e)
		}
		for i := range t.nodes {
			if n := &t.nodes[i]; !n.value.isNil() {
				c.value(n.key)
				c.value(n.value)
			}
		}
		return 1 + len(t.array) + len(t.nodes)
	case kindClosure:
		f := v.closure()
		c.table(f.env)
		for _, u := range f.upvalues {
			if u.seen != c.mark {
				u.seen = c.mark
				c.bytes += upvalueSize
				c.value(*u.place)
			}
		}
		return 1 + len(f.upvalues)
	case kindBuiltin:
		for _, e := range v.builtin().captured {
			c.value(e)
		}
		return 1
	case kindThread:
		return c.thread(v.thread())
	}
	return 0
}

// thread counts a stack, and forgets what lies above its top.
func (c *census) thread(t *thread) int {
	t.seen = c.mark
	c.bytes += len(t.stack)*valueSize + t.frameCount*frameSize
	top := t.liveTop()
	for _, v := range t.stack[:top] {
		c.value(v)
	}
	clear(t.stack[top:])
	for f := t.frame; f != nil; f = f.outer {
		if f.closure != nil {
			c.value(closureValue(f.closure))
		}
	}
	return 1 + len(t.stack)
}
