package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// ports holds the ports that FreeAddr has returned in this process.
var ports struct {
	sync.Mutex
	taken map[int]bool
}

// FreeAddr returns a loopback address that is free for TCP and UDP. Its port is below the ephemeral
// ports, so that the system does not give it to an outgoing connection while its member is down.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.taken == nil {
		ports.taken = map[int]bool{}
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if ports.taken[port] || !IsFree(addr) {
			continue
		}
		ports.taken[port] = true
		return addr
	}
	t.Fatal("cannot find a free port")
	return ""
}

// IsFree reports whether addr is free for TCP and UDP.
func IsFree(addr string) bool {
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}
