package netloop

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func openPool(t *testing.T) *pool {
	t.Helper()
	p := &pool{keep: maxKept}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestBufferSizes(t *testing.T) {
	p := openPool(t)
	f := func(n, want int) {
		t.Helper()
		b := p.get(n, classOf(n))
		if len(b) != 0 || cap(b) != want || p.lent != want {
			t.Errorf("get(%d) has capacity %d, counted %d, want %d", n, cap(b), p.lent, want)
		}
		p.put(b)
	}
	f(0, 4096)
	f(1, 4096)
	f(4096, 4096)
	f(4097, 8192)
	f(1<<20, 1<<20)
	f(1<<20+1, 1<<20+4096)
	f(3_000_000, 3_002_368)
	f(defaultMax+scratchSize, defaultMax+scratchSize)
	if b := p.get(1, maxClass+1); b != nil {
		t.Errorf("%d bytes were lent", cap(b))
	}
	if p.owns(nil) || p.owns(make([]byte, 10)) {
		t.Error("the pool owns what it has not made")
	}
}

// Buffers never overlap, and return with their original capacity.
func TestBuffersAreApart(t *testing.T) {
	p := openPool(t)
	var all [][]byte
	for round := range 3 {
		for i, n := range []int{1, 5000, 70_000, 2 << 20, 100, 5000, 3 << 20} {
			b := p.get(n, classOf(n))
			b = b[:cap(b)]
			for j := range b {
				b[j] = byte(round*7 + i)
			}
			all = append(all, b)
		}
		for i, b := range all {
			if strings.Trim(string(b), string([]byte{b[0]})) != "" {
				t.Fatalf("buffer %d was overwritten", i)
			}
		}
		p.put(all[1])
		all = append(all[:1], all[2:]...)
	}
	for _, b := range all {
		p.put(b)
	}
	if p.lent != 0 || p.kept > maxKept {
		t.Errorf("%d bytes are lent, %d kept", p.lent, p.kept)
	}
}

// A large buffer is extended in its place, up to the size of its cell.
func TestBuffersAreExtended(t *testing.T) {
	p := openPool(t)
	other := p.get(3<<20, classOf(8<<20))
	b := append(p.get(2<<20, classOf(8<<20)), "front"...)
	for _, n := range []int{2<<20 + 1, 5 << 20, 8 << 20} {
		longer := p.extend(b, n)
		if &longer[0] != &b[0] || string(longer) != "front" || cap(longer) < n ||
			cap(longer) >= n+4096 || p.lent != cap(longer)+3<<20 {
			t.Errorf("extended to %d: capacity %d, %d lent", n, cap(longer), p.lent)
		}
		b = longer
	}
	overwrite(b[:cap(b)])
	if p.extend(b, 8<<20+1) != nil {
		t.Error("a buffer was extended beyond its cell")
	}
	if small := p.extend(p.get(1, minClass), 4096); cap(small) != 4096 {
		t.Errorf("a small cell has capacity %d", cap(small))
	}
	if strings.Trim(string(other[:cap(other)]), "\x00") != "" {
		t.Error("another buffer was overwritten")
	}
}

// A large buffer that moves never exists twice.
func TestBuffersMove(t *testing.T) {
	p := openPool(t)
	for _, from := range []int{0, 100, 1 << 20, 5<<20 + 1} {
		b := p.get(48<<20, classOf(64<<20))
		b = b[:cap(b)]
		for i := range b {
			b[i] = byte(i ^ i>>8 ^ i>>16)
		}
		want := string(b[from:])
		to := p.get(50<<20, classOf(128<<20))[:len(want)]
		before := resident(t)
		p.move(to, b, from)
		if grown := resident(t) - before; grown > 8<<20 {
			t.Errorf("from %d: %d bytes more are resident", from, grown)
		}
		p.put(b)
		if string(to) != want {
			t.Errorf("from %d: other bytes have arrived", from)
		}
		p.put(to)
	}
}

// Released buffers return their memory to the system, except the memory that the pool keeps.
func TestBuffersLeaveNothingBehind(t *testing.T) {
	p := openPool(t)
	before := resident(t)
	const n, size = 200, 300_000
	var all [][]byte
	for range n {
		b := p.get(size, classOf(size))
		overwrite(b[:cap(b)])
		all = append(all, b)
	}
	if grown := resident(t) - before; grown < n*size {
		t.Fatalf("%d bytes are resident for %d", grown, n*size)
	}
	for _, b := range all {
		p.put(b)
	}
	if grown := resident(t) - before; grown > maxKept+4<<20 {
		t.Errorf("%d bytes are resident after all was given back", grown)
	}
}

// A pool that is to keep less gives memory back, a few buffers at a time.
func TestPoolTrims(t *testing.T) {
	p := openPool(t)
	var lent [][]byte
	for range 3 * trimAtOnce {
		lent = append(lent, p.get(1, minClass))
	}
	lent = append(lent, p.get(1<<20, maxKeptClass))
	for _, b := range lent {
		p.put(b)
	}
	kept := 3*trimAtOnce<<minClass + 1<<20
	if p.kept != kept {
		t.Fatalf("%d bytes are kept, want %d", p.kept, kept)
	}
	if p.keep = kept; p.trim() || p.kept != kept {
		t.Errorf("%d bytes are kept, which may be", p.kept)
	}
	p.keep = trimAtOnce << minClass
	for turns := 1; p.trim(); turns++ {
		if before := kept; before-p.kept > 1<<20+trimAtOnce<<minClass {
			t.Errorf("a turn gives %d bytes back", before-p.kept)
		}
		kept = p.kept
	}
	if p.kept != p.keep {
		t.Errorf("%d bytes are kept, want %d", p.kept, p.keep)
	}
	for _, b := range lent { // all can be lent again
		if cap(p.get(cap(b), classOf(cap(b)))) != cap(b) {
			t.Fatalf("a buffer of %d bytes is not lent", cap(b))
		}
	}
}
