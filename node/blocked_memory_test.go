package node

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// heapInUse returns the bytes of the Go heap that are reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// chargedBlocked returns what is charged for commands that wait and jobs of a node's connections.
func chargedBlocked(t *testing.T, n *Node) (charged int64) {
	t.Helper()
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range n.workers[l.Index()].conns {
			charged += int64(cn.blockedCharge + cn.jobs.charge)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return charged
}

// TestMemoryOfWaiters: very many commands of a few pipes wait, and what is charged for each is what it takes. Who
// shares a key is charged for as much as the first of two, who need a queue.
func TestMemoryOfWaiters(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	for _, c := range []struct {
		name    string
		waiters int
		keys    func(i int) string
		most    int64 // is charged, in per cent of what it takes
	}{
		{"a key each", 100_000, func(i int) string { return fmt.Sprintf("queue:%05d", i) }, 115},
		{"a key for two", 100_000, func(i int) string { return fmt.Sprintf("queue:%05d", i/2) }, 115},
		{"one key", 100_000, func(int) string { return "queue:00000" }, 150},
		{"eight keys each", 20_000, eightKeys, 115},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 1<<30, newGroup(t, 1) })
			var pipes []*client
			for i := range 4 {
				p := dial(t, n.Addr())
				p.want(fmt.Sprintf(`DUNLIN PIPE 1 %d common 1 2 "" %d`, i, ring.Level), "OK later")
				pipes = append(pipes, p)
			}
			before := heapInUse()
			haveWait(t, pipes, c.waiters, func(i int) []byte {
				return resp.AppendRequest(nil, words(t, "BLPOP "+c.keys(i)+" 0")...)
			})
			awaitBlocked(t, n, int64(c.waiters))
			takes := (heapInUse() - before) / int64(c.waiters)
			charged := chargedBlocked(t, n) / int64(c.waiters)
			t.Logf("a waiter takes %d bytes, and %d are charged", takes, charged)
			if takes > charged || charged > takes*c.most/100 {
				t.Errorf("a waiter takes %d bytes, and %d are charged", takes, charged)
			}
			for _, p := range pipes {
				p.conn.Close()
			}
			awaitBlocked(t, n, 0)
		})
	}
}

// haveWait sends requests that wait over some pipes, and reads the tokens.
func haveWait(t *testing.T, pipes []*client, waiters int, request func(i int) []byte) {
	t.Helper()
	const batch = 1000
	buffer := make([]byte, 64<<10)
	for i := 0; i < waiters; i += batch {
		var requests []byte
		for j := range batch {
			requests = append(requests, request(i+j)...)
		}
		p := pipes[i/batch%len(pipes)]
		p.sendRaw(requests)
		for lines := 0; lines < batch; {
			got, err := p.conn.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(buffer[:got], []byte("\n"))
		}
	}
}

// eightKeys are keys of one slot that nobody else names.
func eightKeys(i int) string {
	var keys []string
	for j := range 8 {
		keys = append(keys, fmt.Sprintf("{queue}:%05d:%d", i, j))
	}
	return strings.Join(keys, " ")
}
