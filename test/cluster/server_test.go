package cluster

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestServerCommands checks the commands that a proxy answers for the whole cluster from the
// answers of all nodes.
func TestServerCommands(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	t.Run("memory", func(t *testing.T) { memoryOfTheCluster(t, c) })
	t.Run("statistics of commands", func(t *testing.T) { callsOfTheCluster(t, c) })
	t.Run("slow log", func(t *testing.T) { slowLogOfTheCluster(t, c) })
}

// callsOfTheCluster checks that nodes count commands on keys, and that the proxy counts those that
// it answers itself.
func callsOfTheCluster(t *testing.T, c *harness.Cluster) {
	w := harness.DialWire(t, c.Proxy(0).Addr)
	w.Want("CONFIG RESETSTAT", "OK")
	// Every sampled command is slow enough for the log.
	w.Want("CONFIG SET slowlog-log-slower-than 0", "OK")
	for i := range 200 {
		w.Want("SET key:"+strconv.Itoa(i)+" v", "OK")
	}
	w.Do("INCR key:1")
	w.Do("NOSUCH")
	for range 5 {
		w.Want("PING", "PONG")
	}
	var info string
	harness.Eventually(t, 10*time.Second, "the proxy's own numbers are there", func() bool {
		info = string(w.Do("INFO commandstats errorstats latencystats stats"))
		return strings.Contains(info, "cmdstat_ping:calls=5,")
	})
	for _, want := range []string{
		`cmdstat_set:calls=200,usec=[1-9]\d*,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0`,
		`cmdstat_incr:calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=1`,
		`errorstat_ERR:count=2`,
		`total_error_replies:2`,
		`latency_percentiles_usec_set:p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}`,
	} {
		if !regexp.MustCompile(`\r\n` + want + `\r\n`).MatchString(info) {
			t.Errorf("INFO has no line %s:\n%s", want, info)
		}
	}
	histogram := string(w.Do("LATENCY HISTOGRAM set nosuch"))
	if !regexp.MustCompile(`^\*2\r\n\$3\r\nset\r\n\*4\r\n\$5\r\ncalls\r\n:[1-9]\d*\r\n\$14\r\nhistogram_usec\r\n\*[1-9]`).MatchString(histogram) {
		t.Errorf("LATENCY HISTOGRAM answers %q", histogram)
	}
	w.Want("CONFIG RESETSTAT", "OK")
	if info := string(w.Do("INFO commandstats")); strings.Contains(info, "cmdstat_set") {
		t.Errorf("after RESETSTAT: %s", info)
	}
	w.Want("CONFIG SET slowlog-log-slower-than 10000", "OK")
	w.Want("FLUSHALL", "OK")
}

func slowLogOfTheCluster(t *testing.T, c *harness.Cluster) {
	w := harness.DialWire(t, c.Proxy(0).Addr)
	w.Want("SLOWLOG RESET", "OK")
	w.Want("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 1000", "OK")
	w.Want("CONFIG GET slowlog*", "1) \"slowlog-log-slower-than\"\n2) \"0\"\n3) \"slowlog-max-len\"\n4) \"1000\"")
	for i := range 20 {
		w.Want("SET key:"+strconv.Itoa(i)+" v", "OK")
	}
	w.Want("PING slow", `"slow"`)
	w.Do("KEYS key?1")
	w.Want("CONFIG SET slowlog-log-slower-than -1", "OK")
	all := string(w.Do("SLOWLOG GET -1"))
	for i := range 20 {
		if n := strings.Count(all, "\r\n$"+strconv.Itoa(len("key:"+strconv.Itoa(i)))+"\r\nkey:"+strconv.Itoa(i)+"\r\n"); n != 1 {
			t.Errorf("key:%d is in %d entries of the slow log", i, n)
		}
	}
	if !strings.Contains(all, "\r\nPING\r\n$4\r\nslow\r\n") || !strings.Contains(all, "\r\nKEYS\r\n$5\r\nkey?1\r\n") {
		t.Errorf("the slow log has not what the proxy answers and merges:\n%s", all)
	}
	for i := range 2 {
		if id := c.Node(i).ID; !strings.Contains(all, "\r\n"+id+"\r\n") {
			t.Errorf("no entry names node %s:\n%s", id, all)
		}
	}
	ids := regexp.MustCompile(`\*6\r\n:(\d+)\r\n`).FindAllStringSubmatch(all, -1)
	for i := range ids[1:] {
		if ids[i][1] < ids[i+1][1] { // of one length, as of this century
			t.Errorf("entry %d has the id %s, the next one %s", i, ids[i][1], ids[i+1][1])
		}
	}
	if got := string(w.Do("SLOWLOG GET 3")); strings.Count(got, "*6\r\n") != 3 || !strings.HasPrefix(all[strings.Index(all, "*6"):], got[4:]) {
		t.Errorf("SLOWLOG GET 3 answers %q, not the latest of all", got)
	}
	w.Want("SLOWLOG LEN", "(integer) "+strconv.Itoa(len(ids)))
	w.Want("SLOWLOG RESET", "OK")
	w.Want("SLOWLOG LEN", "(integer) 0")
	w.Want("CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128", "OK")
	w.Want("FLUSHALL", "OK")
}

func memoryOfTheCluster(t *testing.T, c *harness.Cluster) {
	w := harness.DialWire(t, c.Proxy(0).Addr)
	w.Want("MSET a 1 b 2 c 3 d 4", "OK")
	w.Want("MEMORY USAGE nothing", "(nil)")
	if got := string(w.Do("MEMORY USAGE a")); !regexp.MustCompile(`^:[1-9][0-9]\r\n$`).MatchString(got) {
		t.Errorf("MEMORY USAGE of a small key answers %q", got)
	}
	stats := string(w.Do("MEMORY STATS"))
	if !strings.HasPrefix(stats, "*54\r\n") || !strings.Contains(stats, "\r\nkeys.count\r\n:4\r\n") {
		t.Errorf("MEMORY STATS answers %q", stats)
	}
	sum := 0
	for i := range 2 {
		sum += keysCount(t, string(harness.DialWire(t, c.Node(i).Addr).Do("MEMORY STATS")))
	}
	if sum != 4 {
		t.Errorf("the nodes count %d keys, want 4", sum)
	}
	w.Want("FLUSHALL", "OK")
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
