package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestRelaxedTransactions checks that with --multi relaxed the keys of a transaction may be in any
// slots.
func TestRelaxedTransactions(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 1, Env: []string{"DUNLIN_MULTI=relaxed"}})
	playAll(t, c.Proxy(0).Addr, false, "testdata/relaxed/*.txt")
}

// TestCompareAndSet lets clients of two proxies watch and increment the same counters. No increment
// may be lost. On a busy machine a node may be silent for so long that its pipes are given up: then the
// outcome of an EXEC is unknown, which may have incremented its counter, once.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	const clients, increments, counters = 6, 40, 3
	c := harness.StartCluster(t, 3, 2)
	var wg sync.WaitGroup
	var unknown atomic.Int64
	for i := range clients {
		w := harness.DialWire(t, c.Proxy(i%2).Addr)
		wg.Go(func() {
			for done := 0; done < increments; {
				key := fmt.Sprintf("counter:%d", done%counters)
				w.Want("WATCH "+key, "OK")
				value := conversation.Text(w.Do("GET " + key))
				if strings.HasPrefix(value, "(error) TRYAGAIN") {
					w.Want("UNWATCH", "OK")
					continue
				}
				n, _ := strconv.Atoi(strings.Trim(value, `"`))
				w.Want("MULTI", "OK")
				w.Want(fmt.Sprintf("SET %s %d", key, n+1), "QUEUED")
				w.Want(fmt.Sprintf("INCR {%s}:times", key), "QUEUED")
				switch got := conversation.Text(w.Do("EXEC")); {
				case strings.HasPrefix(got, "1) OK\n2) (integer) "):
					done++
				case strings.HasSuffix(got, "outcome unknown"):
					unknown.Add(1)
				case got != "(nil)":
					t.Errorf("EXEC answers %s", got)
					return
				}
			}
		})
	}
	wg.Wait()
	w, sum := harness.DialWire(t, c.Proxy(0).Addr), 0
	for i := range counters {
		n, _ := strconv.Atoi(strings.Trim(conversation.Text(w.Do(fmt.Sprintf("GET counter:%d", i))), `"`))
		sum += n
		w.Want(fmt.Sprintf("GET {counter:%d}:times", i), fmt.Sprintf("%q", strconv.Itoa(n)))
	}
	if most := clients*increments + int(unknown.Load()); sum < clients*increments || sum > most {
		t.Errorf("the counters come to %d, want %d to %d", sum, clients*increments, most)
	}
}

// TestSlowTransactionStopsNoPipe: while a node executes a slow transaction of one client, it answers
// commands of another client that share its proxy's pipe, the one of what may take long. The pipe may
// have been opened before the cluster had a level.
func TestSlowTransactionStopsNoPipe(t *testing.T) {
	t.Parallel()
	m := startLocal(t, "--loops=1", "--nodes=1")
	slow, other := harness.DialWire(t, m.Addr), harness.DialWire(t, m.Addr)
	slow.Want("SET {k}a "+strings.Repeat("abcdefgh", 400), "OK")
	slow.Want("SET {k}b "+strings.Repeat("hgfedcba", 400), "OK")
	other.Want("BITCOUNT {j}", "(integer) 0")
	other.Want("CONFIG SET timeout 0", "OK") // waits for the level
	const many = 20
	commands, served := 200, 0
	if testing.Short() {
		commands = 40 // the race detector makes each take ten times as long
	}
	for range 5 { // the node hears of the level within a moment
		slow.Want("MULTI", "OK")
		slow.Send([]byte(strings.Repeat("LCS {k}a {k}b LEN\r\n", commands)))
		for range commands {
			slow.Next()
		}
		var ended atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer ended.Store(true) // also when the reply does not come in time, which ends this goroutine
			if got := conversation.Text(slow.Do("EXEC")); strings.Count(got, "(integer)") != commands {
				t.Errorf("EXEC answers %s", got)
			}
		})
		for served = 0; !ended.Load(); served++ {
			other.Want("BITCOUNT {j}", "(integer) 0")
		}
		if wg.Wait(); served >= many {
			return
		}
	}
	t.Errorf("%d commands were answered beside a slow transaction, want many", served)
}
