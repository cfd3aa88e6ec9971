package netloop

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// purse is a Budget with a given number of bytes.
type purse struct{ left atomic.Int64 }

func newPurse(n int64) *purse {
	p := &purse{}
	p.left.Store(n)
	return p
}

func (p *purse) Charge(n int64) bool {
	if p.left.Add(-n) < 0 {
		p.left.Add(n)
		return false
	}
	return true
}

func (p *purse) Refund(n int64) { p.left.Add(n) }

// starver answers "N\n" with N bytes, and writes last words when it is closed.
type starver struct {
	account *Account
	closed  chan error
}

func (s starver) OnData(c *Conn, in []byte) int {
	used := 0
	for {
		length := bytes.IndexByte(in[used:], '\n')
		if length < 0 {
			return used
		}
		line := string(in[used:][:length])
		used += length + 1
		n := 0
		for _, digit := range line {
			n = 10*n + int(digit-'0')
		}
		out, ok := c.Grow(c.Out(), n)
		if !ok {
			return used
		}
		c.SetOut(append(out, strings.Repeat("x", n)...))
	}
}

func (s starver) OnStarve(*Conn) []byte         { return []byte("starved") }
func (s starver) OnClose(_ *Conn, err error)    { s.closed <- err }
func (s starver) listen(t *testing.T) *Listener { return s.listenOn(t, newGroup(t, Config{Loops: 1})) }
func newStarver(b Budget, floor int64) starver {
	return starver{NewAccount(b, floor), make(chan error, 100)}
}
func (s starver) listenOn(t *testing.T, g *Group) *Listener {
	return listen(t, g, func(c *Conn) Handler {
		c.SetAccount(s.account)
		return s
	})
}

const testFloor = 64 << 10

// A reply for which the budget has no memory closes its own connection, and no other.
func TestOutputIsCharged(t *testing.T) {
	p := newPurse(4 << 20)
	s := newStarver(p, testFloor)
	ln := s.listen(t)
	small, large := dialTo(t, ln), dialTo(t, ln)
	write(t, small, "10\n")
	expect(t, small, "xxxxxxxxxx")
	write(t, large, "3000000\n")
	expect(t, large, strings.Repeat("x", 3_000_000))
	write(t, large, "5000000\n")
	if err := receive(t, s.closed); !errors.Is(err, ErrNoMemory) {
		t.Errorf("closed with %v", err)
	}
	if n, err := large.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes of a reply that there is no memory for", n)
	}
	write(t, small, "100\n")
	expect(t, small, strings.Repeat("x", 100))
	g := ln.group
	eventually(t, g, "all is given back", func(l *Loop) bool {
		return s.account.used == 0 && l.stats.Starved == 1 && p.left.Load() >= 4<<20-2*accountChunk
	})
}

// Conns that have their turn in one iteration share memory for the buffers of a few: what the first of
// them are answered is written before the last are read.
func TestIterationFitsMemory(t *testing.T) {
	for _, floor := range []int64{turnRoom - 1<<minClass, testFloor} {
		conns := 3 * int(floor) >> minClass
		s := newStarver(newPurse(0), floor)
		ln := s.listen(t)
		all := make([]net.Conn, conns)
		for i := range all {
			all[i] = dialTo(t, ln)
		}
		eventually(t, ln.group, "all are accepted", func(l *Loop) bool { return l.stats.Accepted == uint64(conns) })
		begun, sent := make(chan struct{}), make(chan struct{})
		ln.group.Loops()[0].Post(func() {
			close(begun)
			<-sent
		})
		<-begun
		for _, nc := range all {
			write(t, nc, "10\n")
		}
		close(sent)
		for _, nc := range all {
			expect(t, nc, "xxxxxxxxxx")
		}
	}
}

// What is flushed early is not what has inserts: their turns are counted by iterations.
func TestInsertsAreNotFlushedEarly(t *testing.T) {
	conn := func(inserts int) *Conn {
		return &Conn{closed: true, dirty: true, inserts: make([]insert, inserts)} // flush only takes the mark
	}
	first, kept, last := conn(0), conn(1), conn(0)
	l := Loop{dirtyConns: []*Conn{first, kept, last}}
	if n := l.flushEarly(); n != 2 || first.dirty || !kept.dirty || last.dirty {
		t.Errorf("%d conns are flushed early, left %t, %t, %t", n, first.dirty, kept.dirty, last.dirty)
	}
	if len(l.dirtyConns) != 1 || l.dirtyConns[0] != kept {
		t.Errorf("%d conns are left for the end of the iteration", len(l.dirtyConns))
	}
}

// Input for which the budget has no memory closes its own connection, after the replies to earlier
// input and its handler's last words.
func TestInputIsCharged(t *testing.T) {
	p := newPurse(1 << 20)
	s := newStarver(p, testFloor)
	ln := s.listen(t)
	small, large := dialTo(t, ln), dialTo(t, ln)
	write(t, large, "3\n5\n")
	go io.WriteString(large, strings.Repeat("0", 5<<20))
	expect(t, large, "xxxxxxxxstarved")
	if n, err := large.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v behind the last words", n, err)
	}
	large.Close()
	if err := receive(t, s.closed); !errors.Is(err, ErrNoMemory) {
		t.Errorf("closed with %v", err)
	}
	write(t, small, "100\n")
	expect(t, small, strings.Repeat("x", 100))
	eventually(t, ln.group, "all is given back", func(l *Loop) bool {
		return s.account.used == 0 && l.stats.Starved == 1 && p.left.Load() >= 1<<20-2*accountChunk
	})
}

// While large buffers have all the memory that there is for them, there are small ones for the conns that are there, and
// after these again.
func TestSmallBuffersHaveAReserve(t *testing.T) {
	const floor, small, large = testFloor, 1 << minClass, 20_000
	p := newPurse(1 << 20)
	a := NewAccount(p, floor)
	larges := 0
	for range 3 {
		for ; a.take(large); larges++ {
		}
		if left := p.left.Load() + a.granted - a.used; left < floor/8 || left >= floor/8+large {
			t.Errorf("large buffers leave %d bytes, want %d and less than another", left, floor/8)
		}
		for a.leavesReserve() { // what others take
			a.used++
		}
		a.used--
		n := 0
		for ; a.take(small); n++ {
			if a.take(large) || a.leavesReserve() {
				t.Fatalf("beside %d small buffers there is one for others", n)
			}
		}
		if n != floor/8/small {
			t.Errorf("there are %d small buffers, want %d", n, floor/8/small)
		}
		for range n {
			a.give(small)
		}
		a.give(large)
		larges--
	}
	a.give(int(a.used))
	if left := p.left.Load() + a.granted; larges < 10 || left != 1<<20+floor || a.granted > floor+accountChunk {
		t.Errorf("after %d large buffers, %d bytes are left and %d of them granted", larges, left, a.granted)
	}
}

// A growing buffer takes at most one step more than its final size.
func TestGrowthIsCharged(t *testing.T) {
	const size = 20 << 20
	p := newPurse(size + 2<<20)
	s := newStarver(p, 0)
	nc := dialTo(t, s.listen(t))
	request := strings.Repeat("0", size) + "7\n"
	go io.WriteString(nc, request)
	expect(t, nc, "xxxxxxx")
	reply := strings.Repeat("x", 1000)
	write(t, nc, strings.Repeat("1000\n", size/1000))
	for range size / 1000 {
		expect(t, nc, reply)
	}
	if len(s.closed) > 0 {
		t.Errorf("closed: %v", <-s.closed)
	}
}

// Memory that a handler has beside the buffers counts too, and is given back with the conn.
func TestOtherMemoryIsCharged(t *testing.T) {
	p := newPurse(1 << 20)
	account := NewAccount(p, 0)
	closed := make(chan error, 2)
	ln := listen(t, newGroup(t, Config{Loops: 1}), func(c *Conn) Handler {
		c.SetAccount(account)
		return funcs{
			data: func(c *Conn, in []byte) int {
				for _, step := range []int{100_000, 600_000, 500_000, 500_000, 0, 900_000} {
					if !c.SetOther(step) || account.used != int64(step) {
						t.Errorf("%d bytes: %d are used", step, account.used)
					}
				}
				if len(in) > 1 && (c.SetOther(2_000_000) || c.SetOther(1)) {
					t.Error("more was charged than there is")
				}
				return len(in)
			},
			closed: func(_ *Conn, err error) { closed <- err },
		}
	})
	one, other := dialTo(t, ln), dialTo(t, ln)
	write(t, one, "xx")
	if err := receive(t, closed); !errors.Is(err, ErrNoMemory) {
		t.Errorf("closed with %v", err)
	}
	write(t, other, "x")
	other.CloseWrite()
	if err := receive(t, closed); !errors.Is(err, io.EOF) {
		t.Errorf("closed with %v", err)
	}
	eventually(t, ln.group, "all is given back", func(*Loop) bool {
		return account.used == 0 && p.left.Load()+account.granted == 1<<20
	})
}

// When many connections run out of memory, some are closed, no other is harmed, and no memory is
// counted twice or lost.
func TestStarvingTogether(t *testing.T) {
	p := newPurse(8 << 20)
	g := newGroup(t, Config{Loops: 2})
	var accounts [2]*Account
	closed := make(chan error, 100)
	for i := range accounts {
		accounts[i] = NewAccount(p, 0)
	}
	ln := listen(t, g, func(c *Conn) Handler {
		a := accounts[c.Loop().Index()]
		c.SetAccount(a)
		return starver{a, closed}
	})
	const clients = 20
	want := strings.Repeat("x", 900_000)
	done := make(chan int, clients)
	for range clients {
		nc := dialTo(t, ln)
		go func() {
			rounds := 0
			defer func() { nc.Close(); done <- rounds }()
			for ; rounds < 30; rounds++ {
				// A piece of a request, the rest of it, and the reply read late.
				if _, err := io.WriteString(nc, strings.Repeat("0", 300_000)+"900000\n"); err != nil {
					return
				}
				reply := make([]byte, len(want))
				if _, err := io.ReadFull(nc, reply); err != nil {
					return
				}
				if string(reply) != want {
					t.Errorf("a reply has other bytes")
				}
			}
		}()
	}
	whole := 0
	for range clients {
		if receive(t, done) == 30 {
			whole++
		}
	}
	for range clients {
		receive(t, closed)
	}
	if whole == 0 {
		t.Error("no connection came through")
	}
	each(t, g, func(l *Loop) {
		a := accounts[l.index]
		if a.used != 0 || l.pool.lent != 0 || a.granted > 2*accountChunk || l.stats.Panics > 0 {
			t.Errorf("at the end: %+v, %d lent, %d panics", *a, l.pool.lent, l.stats.Panics)
		}
	})
	if left := p.left.Load() + accounts[0].granted + accounts[1].granted; left != 8<<20 {
		t.Errorf("%d bytes are left", left)
	}
}

// heapPurse counts the bytes in the Go heap.
type heapPurse struct {
	*purse
	heap int64
}

func (p *heapPurse) ChargeHeap(n, missing int64) bool {
	if !p.Charge(missing) {
		return false
	}
	p.heap += n
	return true
}

func (p *heapPurse) RefundHeap(n, free int64) {
	p.Refund(free)
	p.heap -= n
}

// A HeapBudget knows at each time what is in the Go heap, and what was charged before is not charged
// again. No chunk is kept of what was there.
func TestHeapIsCharged(t *testing.T) {
	const all, floor, buffer = 1 << 20, 1000, 5000
	p := &heapPurse{purse: newPurse(all)}
	a := NewAccount(p, floor)
	for _, other := range []int{500, 200, 2000, accountChunk, 3 * accountChunk, all - buffer, 10_000, 0, 1} {
		if !a.take(buffer) || !a.takeOther(other) || p.heap != int64(other) {
			t.Fatalf("%d bytes are in the heap, want %d", p.heap, other)
		}
		if a.takeOther(all) || p.heap != int64(other) || a.used != int64(buffer+other) {
			t.Errorf("%d bytes are in the heap and %d used, after too many were refused", p.heap, a.used)
		}
		if a.granted < a.used || p.left.Load()+a.granted != all+floor {
			t.Errorf("%d bytes are left of %d: %+v", p.left.Load(), all, a)
		}
		a.giveOther(other)
		if p.heap != 0 || a.other != 0 || p.left.Load()+a.granted != all+floor || a.granted > 2*accountChunk+buffer {
			t.Errorf("%d bytes are in the heap after all, and %d left: %+v", p.heap, p.left.Load(), a)
		}
		a.give(buffer)
	}
}

// A Wrapper's memory for a conn counts from the conn's beginning to its end.
func TestWrappedMemoryIsCharged(t *testing.T) {
	p := newPurse(1 << 20)
	account := NewAccount(p, 0)
	g := newGroup(t, Config{Loops: 1})
	held := make(chan int64, 3)
	ln, err := g.ListenWrapped("127.0.0.1:0", heavy{}, func(c *Conn) Handler {
		c.SetAccount(account)
		held <- account.used
		return funcs{data: func(c *Conn, in []byte) int {
			c.SetOther(1000)
			held <- account.used
			c.SetOther(0)
			held <- account.used
			return len(in)
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	nc := dialTo(t, ln)
	write(t, nc, "x")
	for _, want := range []int64{300_000, 301_000, 300_000} {
		if got := receive(t, held); got != want {
			t.Errorf("%d bytes are held, want %d", got, want)
		}
	}
	nc.Close()
	eventually(t, g, "all is given back", func(*Loop) bool { return account.used == 0 })
}

// heavy wraps nothing and claims to need much memory for it.
type heavy struct{}

func (heavy) Ready() bool { return true }
func (heavy) Memory() int { return 300_000 }

func (heavy) Wrap(fd int, _ netip.AddrPort, give func(fd int, taken func())) { give(fd, func() {}) }

// What a conn has moves with it to another account, or stays where it is if that has no memory for it.
func TestAccountChanges(t *testing.T) {
	const all, input = 1 << 20, 20_000
	first, second := &heapPurse{purse: newPurse(all)}, &heapPurse{purse: newPurse(all)}
	from, to := NewAccount(first, 0), NewAccount(second, 0)
	moved := make(chan int64, 1)
	ln, err := newGroup(t, Config{Loops: 1}).ListenWrapped("127.0.0.1:0", heavy{}, func(c *Conn) Handler {
		c.SetAccount(from)
		return funcs{data: func(c *Conn, in []byte) int {
			if len(in) < input {
				return 0
			}
			out, _ := c.Grow(c.Out(), 5000)
			c.SetOther(1000)
			had := from.used
			for _, size := range []int64{0, 301_000} { // too little for the buffers, or for what is wrapped
				little := NewAccount(newPurse(size), 0)
				if c.TrySetAccount(little) || c.account != from || from.used != had || little.used != 0 {
					t.Errorf("an account with little memory has %d bytes, the one before %d of %d", little.used, from.used, had)
				}
			}
			if !c.SetAccount(to) || from.used != 0 || to.used != had || first.heap != 0 || second.heap != 301_000 {
				t.Errorf("%d bytes of %d are moved, %d of them in the heap", to.used, had, second.heap)
			}
			c.SetOut(append(out, 'x'))
			moved <- had
			return len(in)
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	nc := dialTo(t, ln)
	write(t, nc, strings.Repeat("i", input/2))
	eventually(t, ln.group, "half of the input is kept", func(*Loop) bool { return from.used > 300_000 })
	write(t, nc, strings.Repeat("i", input/2))
	expect(t, nc, "x")
	if had := receive(t, moved); had < 301_000+5000 {
		t.Errorf("%d bytes are moved", had)
	}
	nc.Close()
	eventually(t, ln.group, "all is given back", func(*Loop) bool {
		return from.used == 0 && to.used == 0 && second.heap == 0 && first.left.Load()+from.granted == all && second.left.Load()+to.granted == all
	})
}
