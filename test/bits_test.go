package test

import (
	"fmt"
	"sync"
	"testing"
)

// TestLargeBits: bits of large values are looked through and combined through a proxy, beside small commands on the same nodes.
func TestLargeBits(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	addr := startClusterWith(t, startOptions{nodes: 3, proxies: 1, nodeFlags: []string{"--memory", "512mb"}}).proxy(0).addr
	stop := make(chan struct{})
	var others sync.WaitGroup
	for i := range 4 {
		w := dialWire(t, addr)
		others.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					w.want(fmt.Sprintf("INCR beside%d", i), fmt.Sprintf("(integer) %d", n))
				}
			}
		})
	}
	const last = 8*(64<<20) - 1
	w := dialWire(t, addr)
	w.want(fmt.Sprintf("SETBIT {t}a %d 1", last), "(integer) 0")
	w.want(fmt.Sprintf("BITFIELD {t}b SET u8 #%d 255", last/8), "1) (integer) 0")
	for range 3 {
		w.want("BITOP XOR {t}c {t}a {t}b", fmt.Sprintf("(integer) %d", (last+1)/8))
		w.want("BITCOUNT {t}c", "(integer) 7")
		w.want("BITPOS {t}c 1", fmt.Sprintf("(integer) %d", last-7))
		w.want("BITPOS {t}c 1 -1", fmt.Sprintf("(integer) %d", last-7))
		w.want("SETBIT {t}c 0 1", "(integer) 0")
		w.want("BITCOUNT {t}c 0 7 BIT", "(integer) 1")
	}
	close(stop)
	others.Wait()
}
