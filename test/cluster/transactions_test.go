package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
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
// may be lost.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	const clients, increments, counters = 6, 40, 3
	c := harness.StartCluster(t, 3, 2)
	var wg sync.WaitGroup
	for i := range clients {
		w := harness.DialWire(t, c.Proxy(i%2).Addr)
		wg.Go(func() {
			for done := 0; done < increments; {
				key := fmt.Sprintf("counter:%d", done%counters)
				w.Want("WATCH "+key, "OK")
				n, _ := strconv.Atoi(strings.Trim(conversation.Text(w.Do("GET "+key)), `"`))
				w.Want("MULTI", "OK")
				w.Want(fmt.Sprintf("SET %s %d", key, n+1), "QUEUED")
				w.Want(fmt.Sprintf("INCR {%s}:times", key), "QUEUED")
				switch got := conversation.Text(w.Do("EXEC")); {
				case strings.HasPrefix(got, "1) OK\n2) (integer) "):
					done++
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
	if sum != clients*increments {
		t.Errorf("the counters come to %d, want %d", sum, clients*increments)
	}
}
