package redistest

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// TestBusPort: a server of a cluster listens at a chosen port for its bus too, not at whatever port is 10,000
// above the other.
func TestBusPort(t *testing.T) {
	Want(t, "7.")
	s := &conversation.Socket{Addr: Start(t, "--cluster-enabled", "yes")}
	s.Connect(t)
	if got := s.Say(t, "CONFIG GET cluster-port"); got == "*2\r\n$12\r\ncluster-port\r\n$1\r\n0\r\n" {
		t.Errorf("the port of the bus is not chosen: %q", got)
	}
}
