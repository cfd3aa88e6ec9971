//go:build linux && !race

package node

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// pipelineTurn bounds by how much a turn of many commands may exceed one of them. It has room for what the build
	// tag checked adds, and for a slow machine.
	pipelineTurn = 4 * time.Millisecond
	// pipelineRead is how much of a pipeline the node reads at once, and shortRequest the longest request of which
	// that is many.
	pipelineRead = 32 << 10
	shortRequest = 512
	// pipelineTime is about how long a pipeline may take.
	pipelineTime = 50 * time.Millisecond
)

// TestTimeLawOfPipelines: no read of many commands keeps a loop for much longer than one of them, whatever they are.
// Quick ones are left out: a read of those takes as long as they do.
func TestTimeLawOfPipelines(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	rig.node.turnTime = netloop.TurnTime
	tellLoops(t, rig.node)
	for row := range rowsOfLaw() {
		if row.Quick() {
			continue
		}
		for _, pattern := range patternsOf(row, hostile[row.Name]) {
			if raw := resp.AppendRequest(nil, requestOf(pattern, wordsOf(row))...); len(raw) <= shortRequest {
				rig.pipeline(pattern, raw)
			}
		}
	}
}

// pipeline measures many times the same request on one connection.
func (rig *lawRig) pipeline(pattern string, raw []byte) {
	rig.fill()
	c := dial(rig.t, rig.node.Addr())
	defer c.conn.Close()
	c.patience = lawPatience
	began := time.Now()
	one := rig.send(c, raw)
	rig.turnMost = pipelineTurn + 2*one.turn
	many := min(pipelineRead/len(raw), 1+int(pipelineTime/time.Since(began)))
	rig.judge(fmt.Sprintf("%d times %s", many, pattern), func() cost {
		rig.fill()
		rig.meter.begin()
		c.sendRaw(bytes.Repeat(raw, many))
		for range many {
			if c.read() == nil {
				rig.t.Fatalf("%.60s is not answered", pattern)
			}
		}
		return rig.meter.end()
	})
}
