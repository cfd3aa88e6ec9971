package gossip

import (
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// While a callback takes its time, only the newest of each kind is kept for it.
func TestNotifierKeepsTheLast(t *testing.T) {
	var tables []uint64
	var lists []int
	n := notifier{
		wake:      make(chan struct{}, 1),
		onTable:   func(t *ring.Table) { tables = append(tables, t.Epoch) },
		onMembers: func(m []ring.Member) { lists = append(lists, len(m)) },
	}
	for i := range 100 {
		n.push(event{table: &ring.Table{Epoch: uint64(i)}})
		n.push(event{members: make([]ring.Member, i)})
		n.push(event{minority: true})
	}
	for _, e := range n.takeAll() {
		n.deliver(e)
	}
	if !slices.Equal(tables, []uint64{99}) || !slices.Equal(lists, []int{99}) {
		t.Errorf("told of tables %v and lists of %v members, want the last", tables, lists)
	}
}
