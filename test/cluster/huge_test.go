package cluster

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestHugeValue moves the largest possible value through a proxy. The proxy holds it at most once
// on the way in, and hardly any of it on the way out, and other clients do not notice.
func TestHugeValue(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("moves gigabytes")
	}
	const size = 512 << 20
	const mostPassed = 64 << 20 // bytes of it, while a small command waits
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, Proxies: 1, NodeFlags: []string{"--memory", "1500mb"}})
	node, proxy := c.Node(0), c.Proxy(0)
	w := harness.DialWire(t, proxy.Addr)
	w.Want("SET small x", "OK")
	var moved atomic.Int64 // bytes of huge values, in both directions
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i ^ i>>8 ^ i>>16 ^ i>>24)
	}
	set := func() {
		w.Send(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n$%d\r\n", size))
		_ = w.Conn.SetWriteDeadline(time.Time{})
		for piece := range slices.Chunk(value, 1<<20) {
			if _, err := w.Conn.Write(piece); err != nil {
				t.Fatal(err)
			}
			moved.Add(int64(len(piece)))
		}
		w.Send([]byte("\r\n"))
		if got := conversation.Text(w.Next()); got != "OK" {
			t.Fatalf("SET answers %s", got)
		}
	}
	get := func() {
		w.Send([]byte("*2\r\n$3\r\nGET\r\n$4\r\nhuge\r\n"))
		readHuge(t, w, value, &moved)
	}
	for _, step := range []struct {
		name        string
		run         func()
		proxy, node int64 // highest growth in bytes
	}{
		{"SET", set, size + 24<<20, size + 24<<20},
		{"GET", get, 24 << 20, 24 << 20},
	} {
		proxyBase, nodeBase := resetPeak(t, proxy), resetPeak(t, node)
		// From the proxy to the node, the value shows in the node's memory only.
		progress := func() int64 { return moved.Load() + harness.Resident(t, node) }
		slow, passed := p99Beside(t, proxy.Addr, progress, step.run)
		p, n := peakResident(t, proxy)-proxyBase, peakResident(t, node)-nodeBase
		t.Logf("%s of 512 MiB: p99 of others %v, while %d MiB pass, the proxy takes %d MiB more, the node %d",
			step.name, slow, passed>>20, p>>20, n>>20)
		if p > step.proxy || n > step.node {
			t.Errorf("%s: the proxy takes %d MiB more, the node %d", step.name, p>>20, n>>20)
		}
		if passed > mostPassed {
			t.Errorf("%s: while one in a hundred of others' commands waits, %d MiB pass", step.name, passed>>20)
		}
	}
	w.Send(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n$%d\r\n", 513<<20))
	if got := conversation.Text(w.Next()); got != "(error) ERR Protocol error: invalid bulk length" {
		t.Errorf("513 MiB: %s", got)
	}
	if got := conversation.Text(w.Next()); got != "(closed)" {
		t.Errorf("then %s", got)
	}
}

// readHuge reads a bulk string in pieces, compares them, and counts their bytes in moved.
func readHuge(t *testing.T, w *harness.Wire, value []byte, moved *atomic.Int64) {
	t.Helper()
	_ = w.Conn.SetReadDeadline(time.Now().Add(time.Minute))
	head := fmt.Sprintf("$%d\r\n", len(value))
	got := make([]byte, len(head))
	if _, err := io.ReadFull(w.Conn, got); err != nil || string(got) != head {
		t.Fatalf("GET answers %.100q, %v", got, err)
	}
	piece := make([]byte, 1<<20)
	for off := 0; off < len(value); {
		n, err := w.Conn.Read(piece[:min(len(piece), len(value)-off)])
		if err != nil || !slices.Equal(piece[:n], value[off:off+n]) {
			t.Fatalf("another value at %d: %v", off, err)
		}
		off += n
		moved.Add(int64(n))
	}
	if _, err := io.ReadFull(w.Conn, got[:2]); err != nil || string(got[:2]) != "\r\n" {
		t.Fatalf("the value ends with %q, %v", got[:2], err)
	}
}

// resetPeak makes peakResident start again, and returns the resident memory.
func resetPeak(t *testing.T, m *harness.Member) int64 {
	t.Helper()
	if err := os.WriteFile("/proc/"+strconv.Itoa(m.Cmd.Process.Pid)+"/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("the peak of resident memory cannot be reset: %v", err)
	}
	return harness.Resident(t, m)
}

// p99Beside returns the 99th percentile of the times of a few clients' small commands while f runs,
// and of how far f got by its progress meanwhile. On a busy machine both wait, and that tells a busy
// machine from a command that waits for all of f.
func p99Beside(t *testing.T, addr string, progress func() int64, f func()) (time.Duration, int64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	var passed []int64
	stop := make(chan struct{})
	for range 8 {
		w := harness.DialWire(t, addr)
		wg.Go(func() {
			request := resp.AppendRequest(nil, []byte("GET"), []byte("small"))
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				sent, before := time.Now(), progress()
				if _, err := w.Conn.Write(request); err != nil {
					t.Error(err)
					return
				}
				if reply, err := w.Read(); err != nil || !strings.HasPrefix(string(reply), "$1") {
					t.Errorf("GET answers %q, %v", reply, err)
					return
				}
				mu.Lock()
				took, passed = append(took, time.Since(sent)), append(passed, progress()-before)
				mu.Unlock()
			}
		})
	}
	f()
	close(stop)
	wg.Wait()
	slices.Sort(took)
	slices.Sort(passed)
	return took[len(took)*99/100], passed[len(passed)*99/100]
}
