package tracking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sink is a client that notes what it is told.
type sink struct {
	*Client
	told []string // keys; "*" for all
}

func (s *sink) Invalidate(key string) { s.told = append(s.told, key) }
func (s *sink) Flush()                { s.told = append(s.told, "*") }

func join(t *Table, id uint64, noLoop bool, prefixes ...string) *sink {
	s := &sink{}
	s.Client = t.Join(s, id)
	t.Set(s.Client, noLoop, prefixes)
	return s
}

// want goes on until nothing is left, and compares what the client was told since the last call.
func (s *sink) want(t *testing.T, table *Table, want ...string) {
	t.Helper()
	for table.Busy() {
		table.Go(1)
	}
	if !slices.Equal(s.told, want) {
		t.Errorf("told %q, want %q", s.told, want)
	}
	s.told = nil
}

func add(t *testing.T, table *Table, s *sink, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if !table.Add(s.Client, []byte(key)) {
			t.Errorf("no memory for a copy of %s", key)
		}
	}
}

func hash(key string) uint64 { return Hash([]byte(key)) }

func TestGone(t *testing.T) {
	var table Table
	a, b, c := join(&table, 1, false), join(&table, 2, true), join(&table, 3, false)
	add(t, &table, a, "k", "k", "l")
	add(t, &table, b, "k")
	table.Gone(hash("k"), 2)
	a.want(t, &table, "k")
	b.want(t, &table) // it has done so itself
	table.Gone(hash("k"), 0)
	a.want(t, &table)
	b.want(t, &table, "k") // that was somebody else
	add(t, &table, b, "k")
	table.Gone(hash("k"), 1)
	b.want(t, &table, "k")
	add(t, &table, a, "m")
	table.Leave(a.Client)
	table.Leave(a.Client)
	table.Gone(hash("m"), 0)
	a.want(t, &table)
	c.want(t, &table)
	if n := table.Copies(); n != 0 {
		t.Errorf("%d copies are left", n)
	}
}

// TestNoLoopReadsAgain: a client that wants no word of what it does itself reads a key, changes it, and reads it
// again before its own change is told here. It is told of the next change.
func TestNoLoopReadsAgain(t *testing.T) {
	var table Table
	a, b, c := join(&table, 1, false), join(&table, 2, true), join(&table, 3, false)
	for _, s := range []*sink{a, b, c} { // b is neither the first nor the last with this hash
		add(t, &table, s, "k")
	}
	add(t, &table, b, "k")
	table.Gone(hash("k"), 2)
	a.want(t, &table, "k")
	c.want(t, &table, "k")
	b.want(t, &table)
	table.Gone(hash("k"), 2)
	b.want(t, &table)
	table.Gone(hash("k"), 1)
	b.want(t, &table, "k")
	add(t, &table, b, "k")
	table.Leave(b.Client)
	table.Gone(hash("k"), 2)
	if b.want(t, &table); table.Copies() != 0 {
		t.Errorf("%d copies are left of a client that has gone", table.Copies())
	}
}

// TestBCastForgets: a client that follows prefixes is told to forget all, each time, though it reads nothing itself:
// others may read for it.
func TestBCastForgets(t *testing.T) {
	var table Table
	p := join(&table, 1, false, "x")
	for range 2 {
		table.Flush()
		p.want(t, &table, "*")
	}
}

// TestFewerPrefixes: a client can go back to fewer prefixes.
func TestFewerPrefixes(t *testing.T) {
	var table Table
	a := join(&table, 1, false, "a", "bb")
	b := join(&table, 2, false, "bb")
	table.Changed("bbb", 0) // is queued for both
	table.Set(a.Client, false, []string{"a"})
	table.Changed("bb", 0)
	table.Changed("a", 0)
	a.want(t, &table, "bbb", "a")
	b.want(t, &table, "bbb", "bb")
	table.Set(b.Client, false, []string{"a"})
	if len(table.Prefixes()) != 1 || len(table.lengths) != 1 {
		t.Errorf("the prefixes are %v, their lengths %d", table.Prefixes(), table.lengths)
	}
}

// TestQueueIsBounded: when more is queued than fits, everybody forgets all.
func TestQueueIsBounded(t *testing.T) {
	for name, key := range map[string]func(int) string{
		"many keys":  func(i int) string { return fmt.Sprint("x", i) },
		"long names": func(i int) string { return fmt.Sprintf("x%0*d", 32<<10, i) },
	} {
		t.Run(name, func(t *testing.T) {
			var table Table
			x, y := join(&table, 1, false, "x"), join(&table, 2, false, "x", "y")
			most, bytes := 0, 0
			for i := range maxQueued {
				table.Changed(key(i), 0)
				if most = max(most, len(table.jobs)); i > 1000 && len(key(i)) > 1000 {
					break
				}
			}
			for _, j := range table.jobs {
				bytes += len(j.key)
			}
			if most > maxQueued || bytes > 64*maxQueued {
				t.Errorf("%d were queued, %d bytes at last", most, bytes)
			}
			for table.Busy() {
				table.Go(1)
			}
			for _, s := range []*sink{x, y} {
				if len(s.told) == 0 || s.told[0] != "*" {
					t.Errorf("told %d, %.20q first", len(s.told), s.told)
				}
				s.told = nil
			}
			table.Changed("y1", 0)
			y.want(t, &table, "y1")
			if table.queued != 0 {
				t.Errorf("%d are queued of nothing", table.queued)
			}
		})
	}
	var table Table
	a := join(&table, 1, false)
	add(t, &table, a, "k")
	for range maxQueued + 1 {
		table.Gone(hash("k"), 0)
	}
	if len(table.jobs) > maxQueued {
		t.Errorf("%d are queued", len(table.jobs))
	}
	a.want(t, &table, "*")
}

// TestDropOfFullTableFlushes: a copy whose place needs another one dropped goes with its client, also if that drop was
// one too many.
func TestDropOfFullTableFlushes(t *testing.T) {
	table := Table{Limit: 2}
	a := join(&table, 1, false)
	for i := 0; table.era == 0; i++ {
		if i > 2*maxQueued {
			t.Fatal("nothing was too much")
		}
		add(t, &table, a, fmt.Sprint("k", i))
	}
	a.want(t, &table, "*")
	table.Leave(a.Client)
	if a.want(t, &table); table.Copies() != 0 {
		t.Errorf("%d copies are left of a client that has gone", table.Copies())
	}
}

// TestEverybodyForgets: however often all is dropped, everybody is told in the end.
func TestEverybodyForgets(t *testing.T) {
	var table Table
	var sinks []*sink
	for i := range 10 {
		sinks = append(sinks, join(&table, uint64(i+1), false, "x"))
	}
	for i := range 10 {
		table.Flush()
		table.Flush()
		if i == 5 {
			table.Leave(sinks[3].Client)
			sinks[3] = join(&table, 4, false, "x")
		}
		table.Go(1)
	}
	table.Flush()
	table.Go(6)
	for i, s := range sinks {
		if len(s.told) == 0 {
			t.Errorf("client %d was not told", i)
		}
	}
}

func TestFlush(t *testing.T) {
	var table Table
	a, b := join(&table, 1, false), join(&table, 2, false)
	p := join(&table, 3, false, "x")
	add(t, &table, a, "k")
	table.Gone(hash("k"), 0)
	table.Flush() // what was queued before is in it
	add(t, &table, a, "k")
	p.Reads()
	a.want(t, &table, "*")
	b.want(t, &table) // it has read nothing
	p.want(t, &table, "*")
	table.Flush()
	p.want(t, &table, "*")
	a.want(t, &table) // it was told behind its newest read
	add(t, &table, a, "k")
	table.Gone(hash("k"), 0)
	a.want(t, &table, "k")
}

// TestFlushOfSome: marks and prefixes go for different reasons. However both meet, each client is told once.
func TestFlushOfSome(t *testing.T) {
	var table Table
	a, p := join(&table, 1, false), join(&table, 2, false, "x")
	add(t, &table, a, "k")
	table.FlushFollowers()
	a.want(t, &table)
	p.want(t, &table, "*")
	table.FlushCopies()
	a.want(t, &table, "*")
	p.want(t, &table)
	if n := table.Copies(); n != 0 {
		t.Errorf("%d copies are left", n)
	}
	for _, flush := range []func(){
		func() {}, table.FlushCopies, table.FlushFollowers, table.Flush,
		func() { table.Flush(); table.FlushCopies() }, func() { table.FlushFollowers(); table.Flush(); table.Flush() },
	} {
		add(t, &table, a, "k")
		table.Changed("x1", 0)
		table.FlushCopies()
		table.FlushFollowers()
		table.Gone(hash("k"), 0)
		flush()
		a.want(t, &table, "*")
		if last := len(p.told) - 1; last < 0 || p.told[last] != "*" || slices.Index(p.told, "*") != last {
			t.Errorf("told %q, want one flush, and that at last", p.told)
		}
		p.told = nil
		if table.queued != 0 || len(table.jobs) > 0 {
			t.Errorf("%d jobs, of cost %d, are left", len(table.jobs), table.queued)
		}
	}
}

func TestChanged(t *testing.T) {
	var table Table
	a := join(&table, 1, false, "")
	b := join(&table, 2, true, "user:", "x")
	table.Changed("user:1", 0)
	table.Changed("x", 2)
	table.Changed("use", 0)
	a.want(t, &table, "user:1", "x", "use")
	b.want(t, &table, "user:1")
	table.Leave(b.Client)
	if n := len(table.Prefixes()); n != 1 {
		t.Errorf("%d prefixes are left", n)
	}
	table.Changed("user:2", 0)
	a.want(t, &table, "user:2")
	b.want(t, &table)
}

// heap counts what is charged, up to a limit.
type heap struct{ used, limit int64 }

func (h *heap) Charge(n int64) bool {
	if h.used+n > h.limit {
		return false
	}
	h.used += n
	return true
}

func (h *heap) Refund(n int64) { h.used -= n }

// TestMemory: copies are charged, and there are no more than fit.
func TestMemory(t *testing.T) {
	h := &heap{limit: 3 * chargeAtOnce}
	table := Table{Heap: h}
	a := join(&table, 1, false)
	n := 0
	for table.Add(a.Client, fmt.Append(nil, "key", n)) {
		n++
	}
	if n < 3*chargeAtOnce/(copySize+20) || table.Copies() != n {
		t.Errorf("%d copies fit, of %d", table.Copies(), n)
	}
	h.limit *= 10
	full := h.used
	for i := range n {
		table.Gone(hash(fmt.Sprint("key", i)), 0)
	}
	if more := h.used - full; more < int64(n)*jobSize-chargeAtOnce {
		t.Errorf("%d bytes are charged for what is to be told of %d keys", more, n)
	}
	for table.Busy() {
		table.Go(100)
	}
	if len(a.told) != n || h.used > 2*chargeAtOnce {
		t.Errorf("told %d, and %d bytes are still charged", len(a.told), h.used)
	}
	add(t, &table, a, "k")
	table.Gone(hash("k"), 0)
	if table.Leave(a.Client); h.used != 0 || table.Busy() {
		t.Errorf("%d bytes are still charged when the last client has gone", h.used)
	}
}

// TestNoMemoryToTell: without memory to queue what is to be told, everybody forgets all, and what was queued is not
// charged any more.
func TestNoMemoryToTell(t *testing.T) {
	h := &heap{limit: chargeAtOnce}
	table := Table{Heap: h}
	a, p := join(&table, 1, false), join(&table, 2, false, "x")
	add(t, &table, a, "k")
	for range 2 {
		for i := 0; table.Overflows == 0; i++ {
			if i > chargeAtOnce/jobSize {
				t.Fatal("it needs no memory")
			}
			table.Changed(fmt.Sprint("x", i), 0)
		}
		a.Reads()
		p.want(t, &table, "*")
		a.want(t, &table, "*")
		table.Overflows = 0
	}
	if table.ofJobs != 0 || table.ofCopies != 0 {
		t.Errorf("%d and %d bytes are left of jobs and copies", table.ofJobs, table.ofCopies)
	}
	table.Leave(a.Client)
	if table.Leave(p.Client); h.used != 0 {
		t.Errorf("%d bytes are still charged when the last client has gone", h.used)
	}
}

// TestModel compares a small table with maps: whoever has a copy of what is gone is told, and a copy that
// is dropped because the table is full is told too.
func TestModel(t *testing.T) {
	table := Table{Limit: 50}
	dice := rand.New(rand.NewPCG(3, 4))
	var sinks []*sink
	copies := make(map[string]bool) // "client key"
	for i := range 5 {
		sinks = append(sinks, join(&table, uint64(i+1), i == 4))
	}
	check := func() {
		for table.Busy() {
			table.Go(3)
		}
		for i, s := range sinks {
			for _, key := range s.told {
				if key == "*" {
					for n := range 30 {
						delete(copies, fmt.Sprint(i, " ", n))
					}
				}
				delete(copies, fmt.Sprint(i, " ", key))
			}
			s.told = nil
		}
	}
	for range 50_000 {
		i, key := dice.IntN(len(sinks)), fmt.Sprint(dice.IntN(30))
		switch dice.IntN(20) {
		case 0:
			table.Leave(sinks[i].Client)
			for n := range 30 {
				delete(copies, fmt.Sprint(i, " ", n))
			}
			sinks[i] = join(&table, uint64(i+1), i == 4)
		case 1:
			table.Flush()
			check()
			if len(copies) > 0 {
				t.Fatalf("%v outlive a flush", copies)
			}
		case 2, 3, 4, 5:
			actor := uint64(dice.IntN(7))
			table.Gone(hash(key), actor)
			check()
			for i := range sinks {
				if i == 4 && actor == 5 {
					continue // it wants no word of its own, and its copy stays
				}
				if copies[fmt.Sprint(i, " ", key)] {
					t.Fatalf("client %d is not told of %s", i, key)
				}
			}
		default:
			add(t, &table, sinks[i], key)
			copies[fmt.Sprint(i, " ", key)] = true
			check()
		}
		if table.Copies() > 50 || table.Copies() < len(copies) {
			t.Fatalf("there are %d copies, and %d by the model", table.Copies(), len(copies))
		}
	}
}

func TestDirectory(t *testing.T) {
	var d Directory
	if d.Add(7, nil); d.Find(7) != nil || d.Find(8) != nil {
		t.Error("found nobody")
	}
	d.Remove(7)
	if Actor(1, 2) == Actor(2, 1) || Actor(0, 0) == 0 {
		t.Error("actors are alike")
	}
}
