package streams

import (
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lockRun locks the partition of the command's key for its next run. If ok is false, the request is
// taken care of.
func lockRun(r *exec.Request) (locks exec.KeyLocks, t engine.Txn, ok bool) {
	locks = r.LockElements()
	if t, _, ok = locks.At(locks.First); !ok {
		locks.Stop(locks.First, 0)
	}
	return locks, t, ok
}

// goOn has the command go on in another run, with its state. Until its end it holds the partition.
func goOn(locks *exec.KeyLocks, state any) {
	locks.State = state
	locks.Hold()
	locks.Stop(1, 0)
}

// closeOrFail ends the changes of a run, of which err is the outcome. If there is an error, it takes the
// place of what the run has replied, and ok is false.
func (s *stream) closeOrFail(begun int, err error) (ok bool) {
	if closed := s.close(); err == nil {
		err = closed
	}
	if err != nil {
		s.r.Undo(begun)
		s.r.ReplyValueError(err)
	}
	return err == nil
}

// openFirst opens the stream in each run of a command, and counts the hit or miss in the first one if reads
// is true.
func openFirst(r *exec.Request, t engine.Txn, locks *exec.KeyLocks, reads bool) (s stream, ok bool) {
	if reads && locks.State == nil {
		return read(r, t, r.Args[1])
	}
	return open(r, t, r.Args[1])
}

// idsFrom fills dst with the IDs of the entries from one on.
func (v *view) idsFrom(from ID, dst []ID) []ID {
	n := 0
	v.each(from, func(id ID, _ entry) bool {
		dst[n] = id
		n++
		return n < len(dst)
	})
	return dst[:n]
}

// named is a command that names entries by their IDs, of which some are done.
type named struct {
	checked int   // so many arguments were parsed
	done    int   // so many IDs are dealt with
	sum     int64 // of those, for which something was done

	// Of XDELEX and XACKDEL.
	removal
	headed bool // the header of the reply is there
}

// take returns what earlier runs of the command have left.
func (n *named) take(locks *exec.KeyLocks) {
	if before, begun := locks.State.(*named); begun {
		*n = *before
	}
}

// goOn has the command go on in another run.
func (n *named) goOn(locks *exec.KeyLocks) {
	state := *n
	goOn(locks, &state)
}

// check looks whether all arguments are IDs, before anything is changed. ok is false if one is not,
// which is answered, or if the command goes on in another run.
func (n *named) check(r *exec.Request, locks *exec.KeyLocks, ids [][]byte) (ok bool) {
	if n.checked == len(ids) {
		return true
	}
	end := min(n.checked+checkedAtOnce, len(ids))
	for _, arg := range ids[n.checked:end] {
		if _, ok := idArg(r, arg); !ok {
			return false
		}
	}
	if n.checked = end; end < len(ids) {
		n.goOn(locks)
	}
	return end == len(ids)
}

// each calls f for the next IDs, until it returns false or this run has done enough, and reports whether
// those were the last ones.
func (n *named) each(ids [][]byte, f func(id ID) bool) (done bool) {
	for end := min(n.done+changedAtOnce, len(ids)); n.done < end; n.done++ {
		if id, _ := parseID(ids[n.done], 0); !f(id) {
			break
		}
	}
	return n.done == len(ids)
}

// groupNamed is view.group for a group that changes: its name is the argument, which changes leave as it is.
func (s *stream) groupNamed(name []byte) (g group, found bool) {
	g, found = s.group(name)
	g.name = name
	return g, found
}

// consumerNamed is view.consumer for a consumer that changes.
func (s *stream) consumerNamed(g *group, name []byte) (c consumer, found bool) {
	c, found = s.consumer(g, name)
	c.name = name
	return c, found
}
