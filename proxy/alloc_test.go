package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// countingNode opens any pipe and then gives one reply for each size bytes that it reads, without
// allocating.
func countingNode(t testing.TB, size int, reply []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serveCounting(c, size, reply)
		}
	}()
	return ln.Addr().String()
}

func serveCounting(c net.Conn, size int, reply []byte) {
	defer c.Close()
	in := make([]byte, 64<<10)
	if _, err := c.Read(in); err != nil { // DUNLIN PIPE
		return
	}
	if _, err := c.Write([]byte("+OK later\r\n")); err != nil {
		return
	}
	out := bytes.Repeat(reply, len(in)/size+1)
	have := 0
	for {
		n, err := c.Read(in)
		if err != nil {
			return
		}
		have += n
		if _, err := c.Write(out[:have/size*len(reply)]); err != nil {
			return
		}
		have %= size
	}
}

// forwarding returns a function that sends a batch of one command through a proxy and reads the
// replies.
func forwarding(t testing.TB, request, reply []byte, batch int) func() {
	t.Helper()
	return through(t, 0, request, reply, batch, countingNode(t, len(request), reply))
}

// through is forwarding for nodes that share the partitions in turn, in a database.
func through(t testing.TB, database int, request, reply []byte, batch int, nodes ...string) func() {
	t.Helper()
	c := newCluster(t, 0)
	table := &ring.Table{Epoch: 1, Issuer: "test", Level: ring.Level}
	for i, addr := range nodes {
		table.Nodes = append(table.Nodes, ring.Member{ID: fmt.Sprint("n", i), Boot: 1, Addr: addr})
	}
	for p := range table.Owner {
		table.Owner[p] = uint16(p % len(nodes))
	}
	for p := range table.Follower {
		table.Follower[p] = ring.NoNode
	}
	c.proxy.SetTable(table)
	c.proxy.stopSampler() // it allocates once a second, and on a busy machine a run lasts longer
	c.proxy.sampler.Wait()
	cl, err := net.Dial("tcp", c.proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	if _, err := cl.Write(bytesOf("SELECT", strconv.Itoa(database))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(cl, make([]byte, len("+OK\r\n"))); err != nil {
		t.Fatal(err)
	}
	requests := bytes.Repeat(request, batch)
	replies := make([]byte, batch*len(reply))
	return func() {
		if _, err := cl.Write(requests); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(cl, replies); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(replies[:len(reply)], reply) {
			t.Fatalf("got reply %q, want %q", replies[:len(reply)], reply)
		}
	}
}

func bytesOf(args ...string) []byte {
	var b [][]byte
	for _, a := range args {
		b = append(b, []byte(a))
	}
	return resp.AppendRequest(nil, b...)
}

func TestForwardingAllocatesNothing(t *testing.T) {
	check := func(name string, database int, request, reply []byte) {
		t.Run(name, func(t *testing.T) {
			size := len(member.AppendDatabase(nil, uint8(database))) + len(request)
			run := through(t, database, request, reply, 16, countingNode(t, size, reply))
			for range 200 {
				run() // grows the buffers, opens the pipe
			}
			// AllocsPerRun leaves one processor, which the loops give up only every 10 ms: few runs
			// are many seconds. What else the process allocates in that time counts too, but not
			// every time.
			got := testing.AllocsPerRun(20, run)
			for tries := 0; got > 0 && tries < 4; tries++ {
				got = min(got, testing.AllocsPerRun(20, run))
			}
			if got > 0 {
				t.Errorf("16 commands allocate %.2f times, want 0", got)
			}
		})
	}
	check("get", 0, bytesOf("GET", "key"), []byte("$5\r\nvalue\r\n"))
	check("set", 0, bytesOf("SET", "key", "value"), []byte("+OK\r\n"))
	check("incr", 0, bytesOf("INCR", "key"), []byte(":1\r\n"))
	check("get of database 13", 13, bytesOf("GET", "key"), []byte("$5\r\nvalue\r\n"))
	check("set of database 10", 10, bytesOf("SET", "key", "value"), []byte("+OK\r\n"))
}

func BenchmarkForward(b *testing.B) {
	for name, batch := range map[string]int{"Pipeline1": 1, "Pipeline64": 64} {
		b.Run(name, func(b *testing.B) {
			run := forwarding(b, bytesOf("GET", "key:000000000001"), []byte("$5\r\nvalue\r\n"), batch)
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/cmd")
		})
	}
}

// BenchmarkSplit is about commands whose keys lie on two nodes.
func BenchmarkSplit(b *testing.B) {
	const batch = 16
	for _, keys := range []int{2, 32} {
		b.Run(fmt.Sprint("MSET", keys), func(b *testing.B) {
			whole, part := []string{"MSET"}, []string{"mset"}
			for i := range keys {
				k := fmt.Sprintf("{%s}:%02d", key(i%2, 2), i)
				if whole = append(whole, k, "value"); i%2 == 0 {
					part = append(part, k, "value")
				}
			}
			size, ok := len(bytesOf(part...)), []byte("+OK\r\n")
			run := through(b, 0, bytesOf(whole...), ok, batch, countingNode(b, size, ok), countingNode(b, size, ok))
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/cmd")
		})
	}
}
