package sim

// inbound is what a node knows of a source's stream.
type inbound struct {
	generation uint64
	last       uint64
	conn       *conn
}

type receiverEnd struct {
	at     *proc
	c      *conn
	source string
}

func (e *receiverEnd) closed() {}

func (e *receiverEnd) received(m any) {
	n := e.at.node
	if n == nil {
		e.c.close(1)
		return
	}
	n.iterate(false)
	switch m := m.(type) {
	case opening:
		if m.to != e.at.name { // another life of that id
			e.c.close(1)
			return
		}
		e.source = m.from
		in := n.inbound[m.from]
		if in == nil || in.generation != m.generation {
			n.voidCopies(m.from)
			in = &inbound{generation: m.generation}
			n.inbound[m.from] = in
		} else {
			n.copies.refused[m.from] |= n.copies.told[m.from] // it may not have heard that
		}
		in.conn = e.c
		n.copies.lastWord[m.from] = n.w.now
		e.c.send(1, openedAt{m.generation, in.last})
	case batch:
		in := n.inbound[e.source]
		if in.conn != e.c {
			e.c.close(1)
			return
		}
		n.copies.lastWord[e.source] = n.w.now
		if m.seq == in.last+1 {
			in.last = m.seq
			n.apply(e.source, m.effects)
		}
		refused := n.copies.refused[e.source]
		delete(n.copies.refused, e.source)
		n.copies.told[e.source] |= refused
		e.c.send(1, applied{m.seq, refused})
	}
}

// apply takes effects in their order.
func (n *node) apply(source string, effects []effect) {
	for i := range effects {
		e := &effects[i]
		switch {
		case e.mark != noMark:
			n.marked(source, e.place, e.mark, e.arg, e.change)
		case n.admits(source, e.place):
			d := &n.data[e.place]
			if e.clear {
				d.values = [keysPer]int{}
			} else {
				d.values[e.key] = e.value
			}
			if e.live {
				d.last = e.change
			}
			n.w.checkCopy(n, e.place)
		}
	}
}
