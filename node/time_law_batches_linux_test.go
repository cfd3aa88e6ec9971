//go:build linux && !race

package node

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestTimeLawOfBatches: a batch of another node, full of the shortest elements, keeps no command
// waiting.
func TestTimeLawOfBatches(t *testing.T) {
	if !locksAreTimed {
		t.Skip("locks are not timed")
	}
	source := startLeveled(t)
	owner := dial(t, source.Addr())
	addThousands(owner, 2, "HSET", "h", func(i int) []string { return []string{fmt.Sprint(i), "v"} })
	txn := source.engine.Lock(ring.PartitionOf([]byte("h")), time.Now().UnixMilli())
	effects := txn.AppendEffect(nil, []byte("h"))
	txn.Unlock()
	if n := len(effects); n < replica.PayloadMost/2 || n > replica.PayloadMost {
		t.Fatalf("the effects have %d bytes, want a batch of up to %d", n, replica.PayloadMost)
	}

	var copies *fakeCopies
	rig := newLawRig(t, func(t testing.TB, change ...func(*Config)) (n *Node) {
		n, copies = startReceiver(t, change...)
		return n
	})
	rig.turnMost = 500 * time.Microsecond // a loop that applies the batch takes more than twice that
	c := dial(t, rig.node.Addr())
	c.patience = lawPatience
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN STREAM a 9", "(integer) 0")
	copies.takeAll()
	seq := 0
	rig.judge("EFFECTS", func() cost {
		seq++
		rig.node.engine.Clear(engine.Section(ring.PartitionOf([]byte("h")), 0))
		return rig.send(c, resp.AppendRequest(nil, []byte("DUNLIN"), []byte("EFFECTS"), strconv.AppendInt(nil, int64(seq), 10),
			strconv.AppendInt(nil, time.Now().UnixMilli(), 10), effects))
	})
	if n := rig.node.engine.Count(ring.PartitionOf([]byte("h"))); n != 1 {
		t.Errorf("the node has %d keys, want the hash", n)
	}
}
