package netloop

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// lines consumes whole lines and passes them on.
func lines(got chan<- string) func(c *Conn, in []byte) int {
	return func(_ *Conn, in []byte) int {
		n := 0
		for {
			i := bytes.IndexByte(in[n:], '\n')
			if i < 0 {
				return n
			}
			got <- string(in[n : n+i])
			n += i + 1
		}
	}
}

// Partial input is kept, in the scratch buffer or in the conn's own, however it is divided.
func TestPartialInput(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	got := make(chan string, 1)
	nc := dialTo(t, serve(t, g, funcs{data: lines(got)}))
	for _, size := range []int{0, 1, 100, smallKept - 1, smallKept, smallKept + 1, 100 << 10, scratchSize, 3 << 20} {
		want := randomLine(size)
		go func() {
			for rest := want + "\n"; rest != ""; {
				n := min(len(rest), 1+rand.IntN(len(want)/3+1))
				io.WriteString(nc, rest[:n])
				rest = rest[n:]
			}
		}()
		if line := receive(t, got); line != want {
			t.Fatalf("size %d: got another line, of size %d", size, len(line))
		}
	}
}

// randomLine returns n letters: no two places look alike.
func randomLine(n int) string {
	var b strings.Builder
	b.Grow(n + 16)
	for b.Len() < n {
		b.WriteString(strconv.FormatUint(rand.Uint64(), 36))
	}
	return b.String()[:n]
}

// Many lines in one write arrive in order although every read cuts one.
func TestPipelinedInput(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	got := make(chan string, 200_000)
	nc := dialTo(t, serve(t, g, funcs{data: lines(got)}))
	var all strings.Builder
	want := make([]string, 100_000)
	for i := range want {
		want[i] = randomLine(i % 37)
		all.WriteString(want[i] + "\n")
	}
	write(t, nc, all.String())
	for i := range want {
		if line := receive(t, got); line != want[i] {
			t.Fatalf("line %d is %q, want %q", i, line, want[i])
		}
	}
}

// A handler that consumes one byte per call gets all bytes by Wake.
func TestWake(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		c.SetOut(append(c.Out(), in[0]))
		c.Wake()
		return 1
	}}))
	want := randomLine(2 * smallKept)
	write(t, nc, want)
	expect(t, nc, want)
}

// With Want, OnData is not called for fewer bytes.
func TestWant(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const size = 1 << 20
	calls := make(chan int, 1000)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		calls <- len(in)
		if len(in) < size {
			c.Want(size)
			return 0
		}
		return len(in)
	}}))
	write(t, nc, randomLine(10))
	if n := receive(t, calls); n != 10 {
		t.Fatalf("first call with %d bytes, want 10", n)
	}
	write(t, nc, randomLine(size-10))
	if n := receive(t, calls); n != size {
		t.Fatalf("second call with %d bytes, want %d", n, size)
	}
	if len(calls) > 0 {
		t.Fatal("a third call")
	}
}

// A buffer that has room for what is wanted does not grow for the end of it, however the input is divided.
func TestWantedInputFillsItsBuffer(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const buffer, size = 512 << 10, 500 << 10
	conns, whole := make(chan *Conn, 1), make(chan int, 1)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		if len(in) < size {
			select {
			case conns <- c:
			default:
			}
			c.Want(size)
			return 0
		}
		whole <- cap(c.in)
		return len(in)
	}}))
	write(t, nc, randomLine(size/2))
	c := receive(t, conns)
	write(t, nc, randomLine(size/2-minRead/8)) // less is missing than a read has room for
	eventually(t, g, "all but the end has come", func(*Loop) bool { return len(c.in)-c.inOff == size-minRead/8 })
	write(t, nc, randomLine(minRead/8))
	if got := receive(t, whole); got != buffer {
		t.Errorf("%d bytes of input have a buffer of %d", size, got)
	}
}

// A declared size alone allocates nothing.
func TestWantReservesNothing(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	conns := make(chan *Conn, 1)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, _ []byte) int {
		c.Want(1 << 30)
		conns <- c
		return 0
	}}))
	write(t, nc, "x")
	c := receive(t, conns)
	sent := 1
	for range 20 {
		write(t, nc, randomLine(10_000))
		sent += 10_000
	}
	eventually(t, g, "all input is kept", func(*Loop) bool { return len(c.in)-c.inOff == sent })
	each(t, g, func(*Loop) {
		if cap(c.in) > 4*sent {
			t.Errorf("buffer of %d bytes for %d bytes of input", cap(c.in), sent)
		}
	})
}

// Reading stops at the input maximum and continues when the handler has consumed input.
func TestMaxInput(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	var took int
	eat := false
	conns := make(chan *Conn, 1)
	nc := dialTo(t, listen(t, g, func(c *Conn) Handler {
		c.SetMaxInput(100_000)
		conns <- c
		return funcs{data: func(c *Conn, in []byte) int {
			if !eat {
				return 0
			}
			took += len(in)
			return len(in)
		}}
	}))
	const size = tooMuch
	go io.WriteString(nc, randomLine(size))
	c := receive(t, conns)
	eventually(t, g, "reading stops", func(*Loop) bool { return c.armed == 0 && c.stops == stopInput })
	each(t, g, func(*Loop) {
		if kept := len(c.in) - c.inOff; kept > 100_000+scratchSize {
			t.Errorf("%d bytes of input kept", kept)
		}
		eat = true
		c.Wake()
	})
	eventually(t, g, "all input is consumed", func(*Loop) bool { return took == size })
}

func TestPauseResume(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	conns := make(chan *Conn, 1)
	got := make(chan string, 10)
	nc := dialTo(t, listen(t, g, func(c *Conn) Handler {
		c.Pause()
		conns <- c
		return funcs{data: lines(got)}
	}))
	c := receive(t, conns)
	write(t, nc, "one\n")
	eventually(t, g, "no interest", func(*Loop) bool { return c.armed == 0 })
	var before uint64
	each(t, g, func(l *Loop) { before = l.Stats().Reads })
	each(t, g, func(l *Loop) {
		if n := l.Stats().Reads - before; n > 0 || len(got) > 0 {
			t.Errorf("%d reads and %d lines while paused", n, len(got))
		}
		c.Resume()
	})
	if line := receive(t, got); line != "one" {
		t.Fatalf("got %q", line)
	}
}

// A handler that pauses in the middle of its input gets the rest after Resume, even if nothing more
// arrives.
func TestResumeOffersRest(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	got := make(chan string, 10)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		got <- string(in[:1])
		c.Pause()
		c.Loop().Post(c.Resume)
		return 1
	}}))
	write(t, nc, "abc")
	for _, want := range []string{"a", "b", "c"} {
		if s := receive(t, got); s != want {
			t.Fatalf("got %q, want %q", s, want)
		}
	}
}

// A long input stays where it is while it grows, although the handler wants little at a time.
func TestLongInputIsNotCopied(t *testing.T) {
	const size = 20 << 20
	g := newGroup(t, Config{Loops: 1})
	places, last := map[uintptr]bool{}, 0
	done := make(chan bool)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		c.Want(len(in) + 10)
		if len(in) > 2<<20 {
			places[addressOf(in)] = true
		}
		if last = len(in); last == size {
			close(done)
		}
		return 0
	}}))
	write(t, nc, randomLine(size))
	receive(t, done)
	each(t, g, func(*Loop) {
		if len(places) != 1 {
			t.Errorf("the input was at %d places", len(places))
		}
	})
}
