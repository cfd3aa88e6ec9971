package test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestServerCommands: what a proxy answers for the whole cluster, with the nodes' own answers put together.
func TestServerCommands(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2, 1)
	t.Run("memory", func(t *testing.T) { memoryOfTheCluster(t, c) })
}

func memoryOfTheCluster(t *testing.T, c *cluster) {
	w := dialWire(t, c.proxy(0).addr)
	w.want("MSET a 1 b 2 c 3 d 4", "OK")
	w.want("MEMORY USAGE nothing", "(nil)")
	if got := string(w.do("MEMORY USAGE a")); !regexp.MustCompile(`^:[1-9][0-9]\r\n$`).MatchString(got) {
		t.Errorf("MEMORY USAGE of a small key answers %q", got)
	}
	stats := string(w.do("MEMORY STATS"))
	if !strings.HasPrefix(stats, "*54\r\n") || !strings.Contains(stats, "\r\nkeys.count\r\n:4\r\n") {
		t.Errorf("MEMORY STATS answers %q", stats)
	}
	sum := 0
	for i := range 2 {
		sum += keysCount(t, string(dialWire(t, c.node(i).addr).do("MEMORY STATS")))
	}
	if sum != 4 {
		t.Errorf("the nodes count %d keys, want 4", sum)
	}
	w.want("FLUSHALL", "OK")
}

func keysCount(t *testing.T, stats string) int {
	t.Helper()
	found := regexp.MustCompile(`keys\.count\r\n:(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		t.Fatalf("MEMORY STATS answers %q", stats)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
