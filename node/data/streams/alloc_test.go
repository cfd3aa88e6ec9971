package streams

import (
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// What commands do most allocates nothing on the heap, also where it is noted.
func TestAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates, and the short run uses it")
	}
	e := openTestEngine(t, 256<<20, engine.AllKeys)
	e.OpenFeed(testReceiver, func() {})
	e.Feed(testPartition, testReceiver, engine.Mark{})
	x := e.Lock(testPartition, 1)
	defer x.Unlock()
	id, sum := ID{1, 0}, 0
	fields := [][]byte{[]byte("a"), []byte("1"), []byte("name"), []byte("some value")}
	group, name := []byte("group"), []byte("consumer")
	open := func() stream {
		item, found := x.Peek(testKey)
		return streamOf(nil, x, testKey, item, found)
	}
	add := func() {
		s := open()
		id.Seq++
		if err := s.add(id, fields); err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	commands := map[string]func(){
		"add": add,
		"read": func() {
			s := open()
			s.each(minID, func(_ ID, e entry) bool {
				e.each(func(_ int, s shape.Item) bool {
					sum += s.Len()
					return true
				})
				return sum%1000 != 0
			})
		},
		"read back": func() {
			s := open()
			s.eachBack(maxID, func(_ ID, e entry) bool {
				sum += e.strings()
				return sum%1000 != 0
			})
		},
	}
	measure := func(form string) {
		for what, command := range commands {
			if got := testing.AllocsPerRun(60, command); got != 0 {
				t.Errorf("%s, %s: %.1f allocations", form, what, got)
			}
		}
	}
	for range 15 { // so many that it stays small
		add()
	}
	delete(commands, "add")
	measure("small")
	commands["add"] = add
	for range 500 {
		add()
	}
	s := open()
	g, err := s.createGroup(group, minID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.createConsumer(&g, name, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	commands["deliver and acknowledge"] = func() {
		s := open()
		g, _ := s.group(group)
		c, _ := s.consumer(&g, name)
		for seq := range uint64(100) {
			if err := s.setPending(&g, &c, pending{id: ID{1, seq}, delivered: 1, count: 1}); err != nil {
				t.Fatal(err)
			}
		}
		g.last = ID{1, 100}
		if err := s.setGroup(&g); err != nil {
			t.Fatal(err)
		}
		s.eachPending(&g, &c, minID, func(p pending) bool {
			sum += int(p.count)
			return true
		})
		for seq := range uint64(100) {
			s.ack(&g, ID{1, seq})
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	commands["delete and trim"] = func() {
		add()
		s := open()
		s.delete(id)
		s.trim(trimming{maxLen: s.len() - 1}, trimSteps)
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		add()
	}
	measure("big")
}
