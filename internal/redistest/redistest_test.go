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

// TestStartLoaded checks that a server that starts again has what it kept, at its old address.
func TestStartLoaded(t *testing.T) {
	s := StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	conn := s.dial(s.Addr)
	if got := s.ask(conn, "SET a kept"); got != "+OK" {
		t.Fatalf("SET answers %q", got)
	}
	conn.Close()
	s.Kill()
	s.StartLoaded()
	conn = s.dial(s.Addr)
	defer conn.Close()
	if got, want := s.ask(conn, "GET a"), "$4\r\nkept"; got != want {
		t.Errorf("GET answers %q, want %q", got, want)
	}
}
