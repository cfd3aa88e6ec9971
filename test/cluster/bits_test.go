package cluster

import (
	"fmt"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestLargeBits counts and combines the bits of large values through a proxy, beside small commands
// on the same nodes.
func TestLargeBits(t *testing.T) {
	t.Parallel()
	harness.SkipUnderRace(t)
	addr := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 1, NodeFlags: []string{"--memory", "512mb"}}).Proxy(0).Addr
	stop := make(chan struct{})
	var others sync.WaitGroup
	for i := range 4 {
		w := harness.DialWire(t, addr)
		others.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					w.Want(fmt.Sprintf("INCR beside%d", i), fmt.Sprintf("(integer) %d", n))
				}
			}
		})
	}
	const last = 8*(64<<20) - 1
	w := harness.DialWire(t, addr)
	w.Want(fmt.Sprintf("SETBIT {t}a %d 1", last), "(integer) 0")
	w.Want(fmt.Sprintf("BITFIELD {t}b SET u8 #%d 255", last/8), "1) (integer) 0")
	for range 3 {
		w.Want("BITOP XOR {t}c {t}a {t}b", fmt.Sprintf("(integer) %d", (last+1)/8))
		w.Want("BITCOUNT {t}c", "(integer) 7")
		w.Want("BITPOS {t}c 1", fmt.Sprintf("(integer) %d", last-7))
		w.Want("BITPOS {t}c 1 -1", fmt.Sprintf("(integer) %d", last-7))
		w.Want("SETBIT {t}c 0 1", "(integer) 0")
		w.Want("BITCOUNT {t}c 0 7 BIT", "(integer) 1")
	}
	close(stop)
	others.Wait()
}
