package proxy

import (
	"testing"
	"time"
)

// Beside other commands a long command waits for the others' chunks, and for the rest behind them.
func TestLongCommandsRest(t *testing.T) {
	for come, want := range map[bool]uint32{true: freeChunks, false: freeChunks + 2} {
		c := newCluster(t, 1, oneLoop(t))
		w := c.proxy.workers[0]
		w.onLoop(func() {
			w.others = others{come: come, looked: w.loop.Now() + time.Hour}
			w.pace.until = w.loop.Clock() + time.Hour
		})
		cl := c.dial()
		cl.send(manyKeys("EXISTS", int(want)*maxKeys, nil))
		if come {
			cl.send("PING")
			cl.send(manyKeys("EXISTS", (freeChunks+2)*maxKeys, nil))
		}
		cl.want(":0")
		if !come {
			continue
		}
		cl.want("+PONG")
		eventually(t, "the command rests", func() (rests bool) {
			w.onLoop(func() {
				long, _ := w.clients[0].long.(*chunked)
				rests = long != nil && long.rests && len(long.flying) == 0
				if rests && long.cuts != want {
					t.Errorf("the command rests behind %d chunks, want %d", long.cuts, want)
				}
				if rests {
					w.pace.until = 0
					w.endRests()
				}
			})
			return rests
		})
		cl.want(":0")
	}
}

// The rest is as long as the chunk took, some times, within bounds; a chunk that does not come back holds
// up the others only for a while.
func TestRestBehindChunks(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w := c.proxy.workers[0]
	w.onLoop(func() {
		const slack = 5 * time.Millisecond
		left := func(what string, want time.Duration) {
			t.Helper()
			got := w.pace.until - w.loop.Clock()
			if got > want+slack || got < want-slack {
				t.Errorf("%s: %v are left, want %v", what, got, want)
			}
		}
		f, later := &fan{}, &fan{}
		w.longChunkSent(f)
		left("on its way", flightLimit)
		w.pace.sent -= 18 * time.Millisecond
		w.chunkCame(&fan{}) // of a command that is not long
		left("still on its way", flightLimit)
		w.longChunkSent(later)
		w.chunkCame(f)
		left("the later one is on its way", flightLimit)
		w.pace.sent -= 18 * time.Millisecond
		w.chunkCame(later)
		left("behind 18 ms", restFactor*18*time.Millisecond)
		w.longChunkSent(f)
		w.pace.sent -= time.Second
		w.chunkCame(f)
		left("behind a second", restLimit)
	})
}
