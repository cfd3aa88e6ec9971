package shape

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Commands on a table allocate nothing on the heap.
func TestTableAllocatesNothing(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	table, w := makeTable(t, x, "hash", 2), Work{}
	var element [2][]byte
	set := func(key, value []byte, at int64) {
		element[0], element[1] = key, value
		if err := table.Reserve(&w, element[:], at != 0); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Set(key, value, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5000 {
		set(fmt.Append(nil, "field:", i), []byte("value"), 0)
	}
	key, value, long, sum := []byte("field:17"), []byte("another value"), modelBytes(1, 300), 0
	for name, command := range map[string]func(){
		"Get":           func() { e, _ := table.Get(key); sum += e.Value.Len() },
		"Set":           func() { set(key, value, 0); set(key, value[:3], 100) },
		"Set of a part": func() { set(key, long, 0) },
		"Random": func() {
			e, _ := table.Random(func(n uint32) uint32 { return uint32(len(value)) % n })
			sum += e.Key.Len()
		},
		"Scan": func() {
			table.Scan(0, func(int) bool { return sum%64 == 0 }, keyWeight, func(e Element) { sum += e.Value.Len() })
		},
		"Delete": func() { table.Delete(key); set(key, value, 0) },
	} {
		if got := testing.AllocsPerRun(100, command); got != 0 {
			t.Errorf("%s allocates %.1f times", name, got)
		}
	}
}

// Commands on a packed value allocate nothing on the heap.
func TestPackedAllocatesNothing(t *testing.T) {
	x := Pack{}
	x.Open(&PackedHash, nil, 1)
	for i := range 20 {
		if !x.Insert(i, 0, fmt.Append(nil, "field:", i), []byte("value")) {
			t.Fatal("the limit was reached")
		}
	}
	value := append([]byte(nil), x.Bytes()...)
	keys, at := [][]byte{[]byte("field:17"), []byte("field:3"), []byte("no")}, make([]int, 3)
	new, sum := []byte("12345678"), 0
	if got := testing.AllocsPerRun(100, func() {
		p := ReadPacked(&PackedHash, value)
		p.Find(keys, at)
		sum += p.Item(at[0], 1).Len()
		x.Open(&PackedHash, value, 1)
		x.Replace(at[1], 1, new)
		x.SetExpireAt(at[1], 100)
		x.Insert(x.Len(), 0, new, new)
		x.Delete(0)
		if err := CheckPacked(&PackedHash, x.Bytes()); err != nil {
			t.Error(err)
		}
	}); got != 0 {
		t.Errorf("commands on a packed value allocate %.1f times", got)
	}
}

// Commands on a tree allocate nothing on the heap.
func TestTreeAllocatesNothing(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	list, ranked := makeTree(t, x, "list", 1, false), makeTree(t, x, "ranked", 1, true)
	for i := range 20_000 {
		if err := list.InsertAt(i, fmt.Append(nil, "element:", i), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ranked.Insert(uint64(i*7919%20_000), fmt.Append(nil, "member:", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	short, long, sum, w := []byte("element"), modelBytes(1, 2000), 0, Work{}
	many := [][]byte{short, long, short, short}
	for name, command := range map[string]func() error{
		"push, pop": func() error { list.Delete(0); return list.InsertAt(list.Len(), short, nil) },
		"push of several": func() error {
			if err := list.ReserveAt(&w, list.Len(), many); err != nil {
				return err
			}
			for _, s := range many {
				if err := list.InsertAt(list.Len(), s, nil); err != nil {
					return err
				}
			}
			list.Settle()
			list.DeleteSome(list.Len()-len(many), len(many))
			return nil
		},
		"push of a part": func() error { list.Delete(list.Len() - 1); return list.InsertAt(list.Len(), long, nil) },
		"Replace":        func() error { return list.Replace(10_000, 0, short) },
		"At":             func() error { x := list.At(7000); sum += x.First.Len(); return nil },
		"Walk": func() error {
			list.Walk(7000, func(x Entry) bool { sum += x.First.Len(); return sum%100 != 0 })
			return nil
		},
		"Find": func() error { at, _ := ranked.Find(55, short); sum += at; return nil },
		"Insert of a rank": func() error {
			_, err := ranked.Insert(55, short, nil)
			at, _ := ranked.Find(55, short)
			ranked.Delete(at)
			return err
		},
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := command(); err != nil {
				t.Error(err)
			}
		}); got != 0 {
			t.Errorf("%s allocates %.1f times", name, got)
		}
	}
}

// Commands on a list allocate nothing on the heap.
func TestListAllocatesNothing(t *testing.T) {
	f := newListFeed(t, 1)
	f.owner.Feed(listPartition, listReceiver, engine.Mark{})
	f.with(f.owner, func(x engine.Txn) {
		l, sum := f.listOf(x), 0
		one, many := [][]byte{[]byte("an element")}, make([][]byte, 20)
		for i := range many {
			many[i] = fmt.Append(nil, "element:", i)
		}
		insert := func(position int, elements [][]byte) {
			if err := l.Insert(position, elements, true); err != nil {
				t.Fatal(err)
			}
		}
		for range 300 {
			insert(0, many)
		}
		for name, command := range map[string]func(){
			"push and pop in front":   func() { insert(0, one); l.Remove(0, 1) },
			"push and pop at the end": func() { insert(l.Len(), one); l.Remove(l.Len()-1, 1) },
			"push of many":            func() { insert(l.Len(), many); l.Remove(0, len(many)) },
			"set":                     func() { _ = l.Set(l.Len()/2, one[0]) },
			"at":                      func() { x := l.At(l.Len() / 2); sum += x.First.Len() },
		} {
			if got := testing.AllocsPerRun(100, command); got != 0 {
				t.Errorf("%s allocates %.1f times", name, got)
			}
		}
	})
}
