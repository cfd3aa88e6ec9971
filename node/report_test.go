package node

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestNumberOfDatabases: packages that must not import each other agree on how many databases there are.
func TestNumberOfDatabases(t *testing.T) {
	for name, n := range map[string]int{
		"engine": engine.Databases, "figures": figures.MaxDatabases, "config": config.DefaultDatabases,
	} {
		if n != ring.MaxDatabases {
			t.Errorf("for package %s there are %d databases, for ring %d", name, n, ring.MaxDatabases)
		}
	}
	for number := range ring.MaxDatabases + 1 {
		if got := keyevent.IsChannel(fmt.Appendf(nil, "__keyspace@%d__:k", number)); got != (number < ring.MaxDatabases) {
			t.Errorf("for package keyevent, database %d is there: %v", number, got)
		}
	}
}
