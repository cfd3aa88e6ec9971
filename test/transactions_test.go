package test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// TestRelaxedTransactions: with --multi relaxed, what frameworks put into one transaction may lie anywhere.
func TestRelaxedTransactions(t *testing.T) {
	t.Parallel()
	c := startClusterWith(t, startOptions{nodes: 3, proxies: 1, env: []string{"DUNLIN_MULTI=relaxed"}})
	playAll(t, c.proxy(0).addr, false, "testdata/relaxed/*.txt")
}

// TestCompareAndSet: clients of two proxies watch the same counters; no increment is lost.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	const clients, increments, counters = 6, 40, 3
	c := startCluster(t, 3, 2)
	var wg sync.WaitGroup
	for i := range clients {
		w := dialWire(t, c.proxy(i%2).addr)
		wg.Go(func() {
			for done := 0; done < increments; {
				key := fmt.Sprintf("counter:%d", done%counters)
				w.want("WATCH "+key, "OK")
				n, _ := strconv.Atoi(strings.Trim(conversation.Text(w.do("GET "+key)), `"`))
				w.want("MULTI", "OK")
				w.want(fmt.Sprintf("SET %s %d", key, n+1), "QUEUED")
				w.want(fmt.Sprintf("INCR {%s}:times", key), "QUEUED")
				switch got := conversation.Text(w.do("EXEC")); {
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
	w, sum := dialWire(t, c.proxy(0).addr), 0
	for i := range counters {
		n, _ := strconv.Atoi(strings.Trim(conversation.Text(w.do(fmt.Sprintf("GET counter:%d", i))), `"`))
		sum += n
		w.want(fmt.Sprintf("GET {counter:%d}:times", i), fmt.Sprintf("%q", strconv.Itoa(n)))
	}
	if sum != clients*increments {
		t.Errorf("the counters come to %d, want %d", sum, clients*increments)
	}
}
