package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// oracleLCS fills the whole table, and walks back through it: diagonally where the bytes are equal, else up where that is
// longer, else to the left.
func oracleLCS(a, b []byte) (length int, all []match) {
	d := make([][]int, len(a)+1)
	d[0] = make([]int, len(b)+1)
	for i := range a {
		d[i+1] = make([]int, len(b)+1)
		for j := range b {
			if a[i] == b[j] {
				d[i+1][j+1] = d[i][j] + 1
			} else {
				d[i+1][j+1] = max(d[i][j+1], d[i+1][j])
			}
		}
	}
	running := false
	for i, j := len(a), len(b); i > 0 && j > 0; {
		if a[i-1] == b[j-1] {
			i, j = i-1, j-1
			if !running {
				all = append(all, match{})
			}
			m := &all[len(all)-1]
			*m = match{i, j, m.length + 1}
			running = true
			continue
		}
		running = false
		if d[i-1][j] > d[i][j-1] {
			i--
		} else {
			j--
		}
	}
	return d[len(a)][len(b)], all
}

func TestLCS(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(letters int) []byte {
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = byte(r.IntN(letters))
		}
		return b
	}
	inputs := 3_000
	if testing.Short() {
		inputs = 300
	}
	for i := range inputs {
		letters := 1 + i%20
		a, b := text(letters), text(letters)
		if i%3 == 0 { // one is the other, changed here and there
			b = bytes.Clone(a)
			for range r.IntN(10) {
				if at := r.IntN(len(b) + 1); r.IntN(2) == 0 {
					b = slices.Insert(b, at, byte(r.IntN(letters)))
				} else {
					b = slices.Delete(b, max(at-3, 0), at)
				}
			}
		}
		length, all := oracleLCS(a, b)
		s := subsequence{a: a, b: b}
		if got := s.solve(false); got != length {
			t.Fatalf("seed %d: the LCS of %x and %x is %d long, want %d", seed, a, b, got, length)
		}
		if got := s.solve(true); got != length {
			t.Fatalf("seed %d: with all rows, the LCS of %x and %x is %d long, want %d", seed, a, b, got, length)
		}
		if got := s.matches(length); !slices.Equal(got, all) {
			t.Fatalf("seed %d: the matches of %x and %x are %v, want %v", seed, a, b, got, all)
		}
	}
}

// TestLargeLCS: strings for which a goroutine works.
func TestLargeLCS(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.StallLimit = 256<<20, time.Minute })
	c := dial(t, n.Addr())
	outside := n.engine.Outside()
	a, b := bigValue(3_000, 1), bigValue(3_500, 2)
	length, all := oracleLCS(a, b)
	c.wantBig("SET {t}a BIG", a, "OK")
	c.wantBig("SET {t}b BIG", b, "OK")
	c.want("LCS {t}a {t}b LEN", fmt.Sprintf("(integer) %d", length))
	var both []byte
	for _, m := range slices.Backward(all) {
		both = append(both, a[m.a:m.a+m.length]...)
	}
	c.wantBig("LCS {t}a {t}b", both, "BIG")
	// A long one with a short one, both ways.
	long := bigValue(3<<20, 1)
	c.wantBig("SET {t}long BIG", long, "OK")
	c.want(`SET {t}short "\x02\x01\x02"`, "OK")
	c.want("LCS {t}long {t}short", `"\x02\x01\x02"`)
	c.want("LCS {t}short {t}long LEN", "(integer) 3")
	// In a transaction nothing waits.
	c.want("MULTI", "OK")
	c.want("LCS {t}a {t}b LEN", "QUEUED")
	c.want("LCS {t}long {t}short LEN", "QUEUED")
	c.want("BITCOUNT {t}long", "QUEUED")
	c.want("BITOP OR {t}copy {t}long {t}a", "QUEUED")
	c.want("STRLEN {t}copy", "QUEUED")
	c.want("EXEC", fmt.Sprintf("1) (integer) %d\n2) (integer) 3\n3) (integer) %d\n4) (integer) %d\n5) (integer) %d",
		length, countBits(long), len(long), len(long)))
	// Many at a time.
	var all8 sync.WaitGroup
	for range 8 {
		other := dial(t, n.Addr())
		all8.Go(func() {
			other.send("LCS {t}a {t}b")
			other.send("PING")
			if got, _ := resp.DecodeBulk(other.read()); !bytes.Equal(got, both) {
				t.Errorf("a reply of %d bytes, want %d", len(got), len(both))
			}
			other.next()
		})
	}
	all8.Wait()
	eventually(t, "memory is given back", func() bool { return n.engine.Outside() <= outside+(1<<20) && pinnedBytes(n) == 0 })
	c.wantBig("SET {t}b BIG", bigValue(15_000, 1), "OK")
	c.want("LCS {t}b {t}b", "(error) "+errLCSTooLong)
}

// BenchmarkLCS is the largest that Redis does, in half a gigabyte.
func BenchmarkLCS(b *testing.B) {
	s := subsequence{a: bigValue(11_584, 1), b: bigValue(11_584, 2)}
	b.Run("length", func(b *testing.B) {
		for b.Loop() {
			s.solve(false)
		}
	})
	b.Run("matches", func(b *testing.B) {
		for b.Loop() {
			s.matches(s.solve(true))
		}
	})
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			oracleLCS(s.a[:1158], s.b[:1158]) // a hundredth
		}
	})
}
