package streams

// createGroup makes a group, of which there is none with this name. read may be readUnknown. The error may be
// errLongName.
func (s *stream) createGroup(name []byte, last ID, read int64) (g group, err error) {
	if len(name) > maxName {
		return g, errLongName
	}
	s.change()
	if err := s.grow(); err != nil {
		return g, err
	}
	if g, err = s.big.createGroup(0, name, last, read); err != nil {
		s.shrinks = true
		return g, err
	}
	s.noteGroup(&g)
	return g, nil
}

func (s *stream) noteGroup(g *group) {
	if s.changed = true; s.big.v.Fed() {
		now, _ := s.numbered(g.number) // g may have a view from before other changes
		s.note(appendGroup(s.spare.delta, &now))
	}
}

// setGroup stores last and read.
func (s *stream) setGroup(g *group) error {
	s.change()
	s.big.setGroup(g.number, g.last, g.read)
	s.noteGroup(g)
	return nil
}

// destroyGroup removes a group at once. The memory of its consumers and pending entries becomes free later,
// in slices.
func (s *stream) destroyGroup(g *group) {
	s.change()
	s.txn.Signal(s.key) // those that wait for it are told
	s.big.destroyGroup(g)
	if s.changed, s.shrinks = true, true; s.big.v.Fed() {
		s.note(appendDestroy(s.spare.delta, g.number))
	}
}

// createConsumer makes a consumer, of which there is none with this name; seen is now, active never. The
// error may be errLongName.
func (s *stream) createConsumer(g *group, name []byte, now int64) (c consumer, err error) {
	s.change()
	c = consumer{name: name, seen: now, active: never}
	if c.number, err = s.big.createConsumer(g, 0, name, now-s.base(), neverActive); err != nil {
		return c, err
	}
	s.noteConsumer(g, &c)
	return c, nil
}

func (s *stream) noteConsumer(g *group, c *consumer) {
	if s.changed = true; s.big.v.Fed() {
		now, _ := s.consumerOf(g, c.number)
		s.note(appendConsumer(s.spare.delta, g.number, &now, c.seen-s.base(), s.relative(c.active)))
	}
}

// setConsumer stores seen and active.
func (s *stream) setConsumer(g *group, c *consumer) error {
	s.change()
	if r := s.consumerRecord(g.number, c.number); r != nil {
		r.setTimes(c.seen-s.base(), s.relative(c.active))
	}
	s.noteConsumer(g, c)
	return nil
}

// deleteConsumer removes what is pending for a consumer, at most atMost entries under this lock, and then
// the consumer. done: it is gone. removed is how many entries were removed now.
func (s *stream) deleteConsumer(g *group, c *consumer, atMost int) (removed int, done bool) {
	s.change()
	s.changed = true
	for ; removed < atMost; removed++ {
		id, found := ID{}, false
		s.eachPending(g, c, minID, func(p pending) bool {
			id, found = p.id, true
			return false
		})
		if !found {
			s.big.deleteConsumer(g, c)
			if s.big.v.Fed() {
				s.note(appendUnconsumer(s.spare.delta, g.number, c.number))
			}
			return removed, true
		}
		s.ack(g, id)
		c.pending--
	}
	return removed, false
}

// setPending stores that an entry is pending for a consumer, c, whose number p.consumer becomes. If it was
// pending before, for this consumer or another one, that is replaced. After an error nothing has changed.
func (s *stream) setPending(g *group, c *consumer, p pending) error {
	s.change()
	p.consumer = c.number
	gained, err := s.big.deliver(g, &p)
	if err != nil {
		return err
	}
	if gained {
		c.pending++
	}
	if s.changed = true; s.big.v.Fed() {
		s.note(appendSetPending(s.spare.delta, g.number, &p, p.delivered-s.base()))
	}
	return nil
}

// ack removes what is pending under an ID and reports whether there was anything.
func (s *stream) ack(g *group, id ID) (was bool) {
	if !s.isBig {
		return false
	}
	if s.change(); !s.big.ack(g, id) {
		return false
	}
	if s.changed = true; s.big.v.Fed() {
		s.note(appendAck(s.spare.delta, g.number, id))
	}
	return true
}
