package cluster

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestStrangers checks that connections which never authenticate keep nobody out, and end.
func TestStrangers(t *testing.T) {
	t.Parallel()
	m := startLocal(t, "--nodes", "1", "--memory", "64mb", "--maxclients", "100", "--requirepass", "secret")
	begin := time.Now()
	var silent []net.Conn
	for _, addr := range []string{m.Addr, portAfter(m.Addr, 1)} { // a proxy and a node
		early := harness.DialWire(t, addr)
		early.Want("AUTH secret", "OK")
		for range 300 {
			silent = append(silent, harness.DialWire(t, addr).Conn)
		}
		late := harness.DialWire(t, addr)
		late.Want("AUTH secret", "OK")
		late.Want("SET k v", "OK")
		early.Want("GET k", `"v"`)
	}
	for _, s := range silent {
		_ = s.SetReadDeadline(begin.Add(harness.AnswerTime + 5*time.Second)) // each has ten seconds
		if n, err := s.Read(make([]byte, 100)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a silent connection is told %d bytes, %v, after %v", n, err, time.Since(begin))
		}
	}
}
