package harness

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/freeport"
)

// FreeAddr returns a loopback address that is free for TCP and UDP, and that no other test process gets. The
// system does not give its port to an outgoing connection while its member is down.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Loopback(port)
}
