package node

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/lcs"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/strings"
)

// TestLargeLCS: strings for which a goroutine works.
func TestLargeLCS(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	outside := n.engine.Outside()
	a, b := bigValue(3_000, 1), bigValue(3_500, 2)
	p := lcs.Pair{A: a, B: b}
	length := p.Solve(true)
	all := p.Matches(length)
	c.wantBig("SET {t}a BIG", a, "OK")
	c.wantBig("SET {t}b BIG", b, "OK")
	c.want("LCS {t}a {t}b LEN", fmt.Sprintf("(integer) %d", length))
	var both []byte
	for _, m := range slices.Backward(all) {
		both = append(both, a[m.A:m.A+m.Length]...)
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
		length, onesIn(long), len(long), len(long)))
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
	c.want("LCS {t}b {t}b", "(error) "+strings.ErrLCSTooLong)
}

// onesIn returns how many bits of b are set.
func onesIn(b []byte) (n int) {
	for _, c := range b {
		n += bits.OnesCount8(c)
	}
	return n
}
