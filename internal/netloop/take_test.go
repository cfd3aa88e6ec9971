package netloop

import (
	"bytes"
	"io"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// taker takes the input of requests of at least a megabyte, which end with a line end, and echoes
// other input.
type taker struct {
	echo
	taken chan taken
}

type taken struct {
	buffer *Buffer
	bytes  []byte
}

func (k taker) OnData(c *Conn, in []byte) int {
	end := bytes.IndexByte(in, '\n')
	if end < 0 {
		return 0
	}
	c.Wake() // for the input behind it
	if b := c.TakeInput(in[:end]); b != nil {
		k.taken <- taken{b, in[:end:end]}
	} else {
		c.SetOut(append(c.Out(), in[:end]...))
	}
	return end + 1
}

// A long request is taken where it lies, and the input behind it is handled. The taken bytes do not
// change when the conn reads on or closes, and count until they are released.
func TestInputIsTaken(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	account := NewAccount(nil, 0)
	k := taker{taken: make(chan taken, 1)}
	ln := listen(t, g, func(c *Conn) Handler {
		c.SetAccount(account)
		return k
	})
	nc := dialTo(t, ln)
	long := bytes.Repeat([]byte("0123456789"), 450_000)
	go nc.Write(append(append(bytes.Clone(long), "\nshort\n"...), long[:30_000]...))
	expect(t, nc, "short")
	write(t, nc, "\n")
	expect(t, nc, string(long[:30_000]))
	got := receive(t, k.taken)
	nc.Close()
	eventually(t, g, "the conn closes", func(l *Loop) bool { return l.Stats().Conns == 0 })
	if !bytes.Equal(got.bytes, long) {
		t.Error("what was taken has changed")
	}
	each(t, g, func(l *Loop) {
		if account.used < int64(len(long)) {
			t.Errorf("%d bytes are held", account.used)
		}
		l.pool.poison = false // otherwise the release would touch all pages again
		got.buffer.Release()
		got.buffer.Release() // has no effect
	})
	eventually(t, g, "all is given back", func(l *Loop) bool {
		return account.used == 0 && l.pool.lent == 0 && len(l.leaving) == 0
	})
}

// Input that does not lie in a large buffer of the conn's own cannot be taken.
func TestInputIsNotTaken(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	refused := make(chan bool, 8)
	ln := listen(t, g, func(*Conn) Handler {
		return funcs{data: func(c *Conn, in []byte) int {
			refused <- c.TakeInput(in) == nil && c.TakeInput(nil) == nil && c.TakeInput(make([]byte, 8)) == nil
			return len(in)
		}}
	})
	nc := dialTo(t, ln)
	write(t, nc, "short")
	if !receive(t, refused) {
		t.Error("the loop's own buffer was taken")
	}
}

// A large buffer is freed step by step, so that the loop can do other work meanwhile, but at once
// if its memory is needed.
func TestLargeBuffersLeaveInSteps(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	p := newPurse(64 << 20)
	each(t, g, func(l *Loop) {
		c := &Conn{loop: l, account: NewAccount(p, 0), fd: -1}
		b := c.lend(48<<20, 0)
		overwrite(b[:cap(b)])
		before := inMemory(b)
		c.giveBack(b)
		l.leaveSome()
		if left := before - inMemory(b); left == 0 || left > 2*leaveStep {
			t.Errorf("%d bytes left at once", left)
		}
		if l.timeout(l.now) != 0 {
			t.Error("the loop sleeps with a buffer on its way")
		}
		if next := c.lend(40<<20, 0); next == nil || len(l.leaving) == 0 {
			t.Errorf("%d bytes lent, %d buffers are leaving", cap(next), len(l.leaving))
		}
		for l.leaveSome() {
		}
		if left := before - inMemory(b); left < 40<<20 {
			t.Errorf("%d bytes left", left)
		}
	})
}

// inMemory returns how many bytes of a buffer the kernel holds pages for. What else the process
// holds does not count.
func inMemory(b []byte) (bytes int) {
	pages := make([]byte, cap(b)/os.Getpagesize())
	_, _, err := unix.Syscall(unix.SYS_MINCORE, addressOf(b[:1]), uintptr(cap(b)), uintptr(unsafe.Pointer(&pages[0])))
	if err != 0 {
		return 0 // it is not mapped any more
	}
	for _, p := range pages {
		bytes += int(p&1) * os.Getpagesize()
	}
	return bytes
}

// Input that becomes long is not copied again and again.
func TestLongInputStaysInPlace(t *testing.T) {
	const size = 24 << 20
	g := newGroup(t, Config{Loops: 1})
	places := make(map[uintptr]bool)
	done := make(chan int, 1)
	ln := listen(t, g, func(*Conn) Handler {
		return funcs{data: func(c *Conn, in []byte) int {
			if len(in) > 2<<20 {
				places[addressOf(in)] = true
			}
			if len(in) < size {
				c.Want(min(size, len(in)+1))
				if len(in) > minRead {
					c.want = size
					c.maxIn = len(in) + 1 // to be called with every read
				}
				return 0
			}
			done <- len(places)
			return len(in)
		}}
	})
	nc := dialTo(t, ln)
	go io.Copy(nc, bytes.NewReader(make([]byte, size)))
	if n := receive(t, done); n != 1 {
		t.Errorf("the input had %d places", n)
	}
}

// A handler that releases what it has taken before OnData returns may still use its input, and what
// it leaves of that stays.
func TestTakenInputStaysUntilOnDataReturns(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		end := bytes.IndexByte(in, '\n')
		if end < 0 {
			return 0
		}
		c.Wake()
		if b := c.TakeInput(in[:end]); b != nil {
			b.Release()
			b.Release()
			in = in[:bytes.IndexByte(in, '\n')] // it is there still
			return len(in) + 1
		}
		c.SetOut(append(c.Out(), in[:end]...))
		return end + 1
	}}))
	long := bytes.Repeat([]byte("0123456789"), 200_000)
	for range 3 {
		go nc.Write(append(append(bytes.Clone(long), "\nshort\n"...), long[:30_000]...))
		expect(t, nc, "short")
		write(t, nc, "\n")
		expect(t, nc, string(long[:30_000]))
	}
	eventually(t, g, "all is given back", func(l *Loop) bool { return l.pool.lent == 0 && len(l.leaving) == 0 })
}
