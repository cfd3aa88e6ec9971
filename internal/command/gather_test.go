package command

import (
	"strings"
	"testing"
)

// TestGathered: a command whose keys may lie in several slots says where it stores, and which node executes it.
func TestGathered(t *testing.T) {
	for _, f := range []struct {
		line        string
		how         Gathering
		destination int
		home        int
	}{
		{"sinter a b", GatherRead, 0, 1},
		{"sintercard 2 a b", GatherRead, 0, 2},
		{"sunionstore d a b", GatherStore, 1, 1},
		{"zunion 2 a b", GatherRead, 0, 2},
		{"zinterstore d 2 a b", GatherStore, 1, 1},
		{"zrangestore d a 0 -1", GatherStore, 1, 1},
		{"bitop and d a b", GatherStore, 2, 2},
		{"pfcount a b", GatherRead, 0, 1},
		{"pfmerge d a b", GatherMerge, 1, 1},
		{"lcs a b", GatherRead, 0, 1},
		{"geosearchstore d a fromlonlat 1 2 byradius 3 m", GatherStore, 1, 1},
		{"georadius a 1 2 3 m store d", GatherStore, 7, 7},
		{"georadius a 1 2 3 m store d storedist e", GatherStore, 9, 9},
		{"georadiusbymember a m 3 m storedist d", GatherStore, 6, 6},
		{"copy a d replace", GatherCopy, 2, 2},
		{"rename a d", GatherMove, 2, 2},
		{"renamenx a d", GatherMove, 2, 2},
		{"sort a alpha store d", GatherStore, 4, 4},
		{"sort a by nosort get # store d", GatherStore, 7, 7},
		{"sort a by w_* store d", NotGathered, 5, 5},
		{"sort a get w_* store d", NotGathered, 5, 5},
		{"sort a limit by w_* store d", GatherStore, 6, 6},
		{"smove a d m", GatherElement, 2, 2},
		{"lmove a d left right", GatherElement, 2, 2},
		{"rpoplpush a d", GatherElement, 2, 2},
		{"msetnx a 1 b 2", GatherNew, 1, 1},
		{"get a", NotGathered, 0, 1},
	} {
		args := request(strings.Fields(f.line)...)
		c := find(string(args[0]))
		if how, destination, home := c.Gathered(args), c.Destination(args), c.Home(args); how != f.how || destination != f.destination || home != f.home {
			t.Errorf("%s: %d, %d, %d", f.line, how, destination, home)
		}
	}
}

// TestGatherableRows: only commands of several keys in one slot are gathered, and those that store say where.
func TestGatherableRows(t *testing.T) {
	for id := ID(1); id < NumIDs; id++ {
		c := ByID(id)
		if c.Gathers == NotGathered {
			continue
		}
		stores := false
		for _, k := range c.Keys {
			stores = stores || k.Use&(Update|Insert) != 0
		}
		if c.Route != Key || c.Flags&(Blocking|Internal) != 0 || stores != (c.Gathers != GatherRead) ||
			(c.Flags&Write != 0) != (c.Gathers != GatherRead) {
			t.Errorf("%s is gathered as %d", c.Name, c.Gathers)
		}
	}
}
