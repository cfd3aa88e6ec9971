package session

import (
	"cmp"
	"iter"
	"slices"
)

// Roster has the clients of one loop, in the order of their ids. Who visits them in turns remembers the
// id of the last one: clients come and go between two turns. It belongs to the loop. The zero Roster is
// empty.
type Roster struct {
	all  []rostered
	gone int // how many of these have left
}

// rostered is a client's place, which stays until some more have left.
type rostered struct {
	id    uint64
	state *State // nil: the client has left
}

// fewGone is how many places of clients that have left a Roster keeps, however few others there are.
const fewGone = 64

// Add adds a client, whose id is higher than those of all others. Its Client must be set.
func (r *Roster) Add(st *State) {
	if n := len(r.all); n > 0 && r.all[n-1].id >= st.ID {
		panic("BUG: the ids of a loop's clients do not ascend")
	}
	r.all = append(r.all, rostered{st.ID, st})
}

// Remove removes a client, if it is there. Do not call it while the clients are visited.
func (r *Roster) Remove(st *State) {
	i, there := r.place(st.ID)
	if !there || r.all[i].state == nil {
		return
	}
	r.all[i].state = nil
	if r.gone++; r.gone > fewGone && r.gone > len(r.all)/2 {
		r.all = slices.DeleteFunc(r.all, func(c rostered) bool { return c.state == nil })
		if r.gone = 0; len(r.all) < cap(r.all)/4 {
			r.all = slices.Clone(r.all)
		}
	}
}

// find returns the client with the id, nil if there is none.
func (r *Roster) find(id uint64) *State {
	if i, there := r.place(id); there {
		return r.all[i].state
	}
	return nil
}

// newest returns the highest id, 0 if there is none.
func (r *Roster) newest() uint64 {
	if len(r.all) == 0 {
		return 0
	}
	return r.all[len(r.all)-1].id
}

// behind returns the clients whose ids are higher, valid until the next Add or Remove.
func (r *Roster) behind(id uint64) []rostered {
	i, there := r.place(id)
	if there {
		i++
	}
	return r.all[i:]
}

// among returns the places behind that of a client, with their ids, or if ids is not nil those of the
// clients that it names, in ascending order. The State is nil if the client is not here. Do not call Add
// or Remove meanwhile.
func (r *Roster) among(ids []int64, behind uint64) iter.Seq2[uint64, *State] {
	return func(yield func(uint64, *State) bool) {
		if ids == nil {
			for _, c := range r.behind(behind) {
				if !yield(c.id, c.state) {
					return
				}
			}
			return
		}
		first, _ := slices.BinarySearch(ids, int64(behind)+1)
		for _, id := range ids[first:] {
			if !yield(uint64(id), r.find(uint64(id))) {
				return
			}
		}
	}
}

func (r *Roster) place(id uint64) (i int, there bool) {
	return slices.BinarySearchFunc(r.all, id, func(c rostered, id uint64) int { return cmp.Compare(c.id, id) })
}
