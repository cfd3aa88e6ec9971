package session

import (
	"container/list"
	"slices"
	"sync"
)

// Visits has the commands that visit all clients of the process take turns: one at a time, so that
// its loops spend no more on many of them than on one, and only one has what its rounds gather. What
// changes clients takes turns with what lists them, so that neither waits for all of the other kind.
// UNBLOCK, which looks at one client of all, does not wait for a turn, and its client may take a
// while to answer. The methods may be called from any goroutine.
type Visits struct {
	mu             sync.Mutex
	busy           bool
	changes, lists list.List // of *Everyone: those that wait
}

// Enter calls begin when it is the command's turn: at once, or in another one's Leave. begin must not
// block. When the command has ended, call Leave. Those that wait are not bounded here: a client has at most one,
// and whoever disconnects withdraws it.
func (v *Visits) Enter(e *Everyone, begin func()) {
	if e.begin = begin; !v.waits(e) {
		begin()
	}
}

func (v *Visits) waits(e *Everyone) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case e.action == ActionClientUnblock:
		return false
	case !v.busy:
		v.busy = true
		return false
	}
	e.place = v.queueOf(e).PushBack(e)
	return true
}

func (v *Visits) queueOf(e *Everyone) *list.List {
	if e.action == ActionClientList {
		return &v.lists
	}
	return &v.changes
}

// Withdraw gives up the turn of a command. It reports false if begin was called: then Leave must be called.
func (v *Visits) Withdraw(e *Everyone) (waited bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.place == nil {
		return false
	}
	v.queueOf(e).Remove(e.place)
	e.place = nil
	return true
}

// Leave ends a turn that has begun.
func (v *Visits) Leave(e *Everyone) {
	if next := v.next(e); next != nil {
		next.begin()
	}
}

func (v *Visits) next(last *Everyone) *Everyone {
	v.mu.Lock()
	defer v.mu.Unlock()
	if last.action == ActionClientUnblock {
		return nil
	}
	queues := []*list.List{&v.changes, &v.lists}
	if last.action != ActionClientList {
		slices.Reverse(queues)
	}
	for _, queue := range queues {
		if first := queue.Front(); first != nil {
			e := queue.Remove(first).(*Everyone)
			e.place = nil
			return e
		}
	}
	v.busy = false
	return nil
}
