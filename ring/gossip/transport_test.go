package gossip

import (
	"bytes"
	"log"
	"net"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

func mustListen(t *testing.T, ip string) *transport {
	t.Helper()
	tr, err := listen(ip, 0, log.New(t.Output(), "", 0))
	if err != nil {
		t.Skipf("cannot listen at %s: %v", ip, err) // a machine without IPv6
	}
	return tr
}

// TestTransportCarriesPackets: packets arrive as they were sent, each in memory of its own, and take about
// as much of it as they have bytes.
func TestTransportCarriesPackets(t *testing.T) {
	const packets, patience = 100, 10 * time.Second
	for _, at := range []struct{ ip, to string }{{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}, {"::1", "::1"}} {
		from, to := mustListen(t, at.ip), mustListen(t, at.ip)
		addr := memberlist.Address{Addr: net.JoinHostPort(at.to, strconv.Itoa(to.port()))}
		content := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1400) }
		var got [packets]*memberlist.Packet
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range packets {
			if _, err := from.WriteToAddress(content(i), addr); err != nil {
				t.Fatalf("at %s: %v", at.ip, err)
			}
			select {
			case got[i] = <-to.PacketCh():
			case <-time.After(patience):
				t.Fatalf("at %s: packet %d does not arrive", at.ip, i)
			}
		}
		runtime.ReadMemStats(&after)
		for i, p := range got {
			if port := p.From.(*net.UDPAddr).Port; !bytes.Equal(p.Buf, content(i)) || port != from.port() {
				t.Errorf("at %s: packet %d has other bytes, or is from port %d and not %d", at.ip, i, port, from.port())
			}
		}
		if each := (after.TotalAlloc - before.TotalAlloc) / packets; each > 8<<10 {
			t.Errorf("a packet of 1,400 bytes takes %d", each)
		}
		for _, tr := range []*transport{from, to} {
			if err := tr.Shutdown(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTransportShutsDown: what nobody takes does not keep a transport from its end.
func TestTransportShutsDown(t *testing.T) {
	from, to := mustListen(t, "127.0.0.1"), mustListen(t, "127.0.0.1")
	defer func() { _ = from.Shutdown() }()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(to.port()))
	if _, err := from.WriteTo([]byte("x"), addr); err != nil {
		t.Fatal(err)
	}
	c, err := from.DialTimeout(addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := to.Shutdown(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that nobody took is open")
	}
}

// failing is a listener that accepts a connection behind some errors, and then none.
type failing struct {
	net.Listener
	before int
	tries  []time.Time
	tried  chan bool // capacity: all tries that a test waits for
}

func (f *failing) Accept() (net.Conn, error) {
	f.tries = append(f.tries, time.Now())
	if f.tried <- true; len(f.tries) == f.before+1 {
		_, c := net.Pipe()
		return c, nil
	}
	return nil, syscall.EMFILE
}

// TestTransportWithoutDescriptors: who cannot accept tries less and less often, and hardly says so.
func TestTransportWithoutDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, behind = 12, 3
		var lines bytes.Buffer
		f := &failing{before: before, tried: make(chan bool)}
		tr := &transport{
			log: log.New(&lines, "", 0), streams: f, stop: make(chan struct{}), streamCh: make(chan net.Conn, 1),
		}
		tr.running.Go(tr.accept)
		for range before + 1 + behind {
			<-f.tried
		}
		synctest.Wait()
		close(tr.stop)
		tr.running.Wait()
		var rests []time.Duration
		for i, at := range f.tries[1:] {
			rests = append(rests, at.Sub(f.tries[i])/time.Millisecond)
		}
		want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000, 0, 5, 10}
		if !slices.Equal(rests, want) {
			t.Errorf("between the tries are %d ms, want %d", rests, want)
		}
		took := f.tries[len(f.tries)-1].Sub(f.tries[0])
		if n := bytes.Count(lines.Bytes(), []byte("\n")); n == 0 || n > 1+int(took/time.Second) {
			t.Errorf("%d lines are logged in %v:\n%s", n, took, &lines)
		}
	})
}
