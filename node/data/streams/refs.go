package streams

// outcome is what XDELEX and XACKDEL answer for an entry.
type outcome int8

const (
	noEntry         outcome = -1
	entryDeleted    outcome = 1
	entryReferenced outcome = 2
)

// removal deletes entries with regard to the groups that refer to them.
type removal struct {
	refs refs
	from uint32 // the group where it goes on with the present entry
}

// remove deletes an entry. It takes a step for each group that it looks at. whole is false if there were
// too few steps left: the same entry comes again, in another run.
func (d *removal) remove(s *stream, id ID, steps *int) (o outcome, whole bool) {
	for d.refs != keepRef && s.groups() > 0 {
		if *steps <= 0 {
			return 0, false
		}
		atMost := min(*steps, s.groups())
		*steps -= atMost
		referenced := false
		if d.refs == acked {
			referenced, d.from = s.referenced(id, d.from, atMost)
		} else {
			_, d.from = s.dereference(id, d.from, atMost)
		}
		if referenced {
			d.from = 0
			return entryReferenced, true
		}
		if d.from == 0 {
			break
		}
	}
	*steps--
	if !s.delete(id) {
		return noEntry, true
	}
	return entryDeleted, true
}
