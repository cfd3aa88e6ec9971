package node

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// TestClientsRestBehindLooks: while loops are strained, a client waits behind what looks at everything, and others do
// not. Without strain nobody does.
func TestClientsRestBehindLooks(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	w := n.workers[0]
	var strained atomic.Bool
	onLoop := func(f func()) {
		t.Helper()
		if err := n.cfg.Group.Each(func(*netloop.Loop) { f() }); err != nil {
			t.Fatal(err)
		}
	}
	onLoop(func() { n.strained = strained.Load })
	resting := func() (clients int) {
		onLoop(func() {
			for cn := range w.conns {
				if cn.Answering && !cn.State.Blocked {
					clients++
				}
			}
		})
		return clients
	}
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SET k v", "OK")
	looks := []string{"DBSIZE", "SCAN 0", "RANDOMKEY", "KEYS *", "INFO server", "CLIENT REPLY SKIP\r\nDBSIZE"}
	for _, look := range looks {
		strained.Store(true)
		onLoop(func() { w.looksUntil = w.loop.Clock() + time.Hour })
		begun := time.Now()
		c.sendRaw([]byte(look + "\r\nPING\r\n"))
		if !strings.HasPrefix(look, "CLIENT") {
			c.next()
		}
		eventually(t, look+" is followed by a rest", func() bool { return resting() == 1 })
		other.want("GET k", `"v"`)
		if n := resting(); n != 1 {
			t.Errorf("behind %s and GET %d clients rest", look, n)
		}
		strained.Store(false)
		if got := c.next(); got != "PONG" || time.Since(begun) > 10*time.Second {
			t.Errorf("behind %s, PING is answered by %s after %v", look, got, time.Since(begun))
		}
		onLoop(func() {
			if w.turns.waiting != nil || len(w.turns.delayed) > 0 {
				t.Errorf("behind %s something waits", look)
			}
			w.looksUntil = 0
		})
		c.sendRaw([]byte(look + "\r\nPING\r\n"))
		if !strings.HasPrefix(look, "CLIENT") {
			c.next()
		}
		c.next()
		onLoop(func() {
			if w.looksUntil != 0 {
				t.Errorf("%s makes its client rest although nothing is strained", look)
			}
		})
	}

	// Rests come one after the other, and are five times as long as the commands.
	strained.Store(true)
	var all sync.WaitGroup
	var took, rested time.Duration
	onLoop(func() { w.looksUntil, took = w.loop.Clock(), -w.times[command.Scan].Sum() })
	begun := time.Now()
	const clients, each = 4, 5
	for range clients {
		of := dial(t, n.Addr())
		all.Go(func() {
			for range each {
				of.send("SCAN 0")
				of.read()
			}
		})
	}
	all.Wait()
	onLoop(func() {
		rested = w.looksUntil - w.loop.Clock() + time.Since(begun)
		took += w.times[command.Scan].Sum()
	})
	const unbounded = lookRest / lookFactor // none of them was bounded if all took less
	if took < unbounded && rested < lookFactor*took {
		t.Errorf("20 SCANs took %v, and their clients have rested for %v", took, rested)
	}
	gone := dial(t, n.Addr())
	onLoop(func() { w.looksUntil = w.loop.Clock() + time.Hour })
	gone.want("DBSIZE", "(integer) 1")
	gone.conn.Close()
	strained.Store(false)
	eventually(t, "who rests may leave", func() bool {
		left := 0
		onLoop(func() { left = len(w.conns) })
		return left == 2+clients
	})
}

// TestLooks: the commands behind which clients rest are those that a proxy paces.
func TestLooks(t *testing.T) {
	for id, want := range map[command.ID]bool{
		command.DBSize: true, command.Scan: true, command.Keys: true, command.RandomKey: true, command.Info: true,
		command.FlushAll: false, command.FlushDB: false, command.Wait: false, command.Get: false, command.MGet: false,
		command.Ping: false,
	} {
		if plans[id].looks != want {
			t.Errorf("%s rests: %v", command.ByID(id).Name, !want)
		}
	}
}
