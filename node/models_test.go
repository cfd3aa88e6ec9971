package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// model is what a type's random commands are compared with.
type model interface {
	// step sends a random command and judges its reply. It reports whether there was no memory.
	step() (full bool)
	// checkAll compares all keys.
	checkAll()
	at() *player
}

// player is the part that the models of all types share.
type player struct {
	t     *testing.T
	c     *client
	r     *rand.Rand
	tag   string // of all keys
	short bool   // no long strings
}

func newPlayer(t *testing.T, c *client, tag string, seed uint64) player {
	t.Logf("seed %d", seed)
	return player{t: t, c: c, r: rand.New(rand.NewPCG(seed, 1)), tag: tag}
}

func (p *player) at() *player { return p }

// besides are the numbers of runBeside.
type besides struct {
	steps    int
	room     int // once in so many steps some memory is freed, if there is nearly none
	mostFull int // so many steps may find no memory
}

// runBeside runs random commands on a node and on a model, with memory and nearly without.
func runBeside[M model](
	t *testing.T, start func(t *testing.T, c *client, tag string, seed uint64) M, seed uint64, b besides,
) {
	for _, short := range []bool{false, true} {
		n := startLeveled(t, func(c *Config) {
			c.Group, c.Memory, c.Shards, c.Eviction = newGroup(t, 1), 16<<20, 1, "noeviction"
		})
		m := start(t, dial(t, n.Addr()), "x", seed)
		if m.at().short = short; short {
			fillMemory(t, n)
		}
		full := 0
		for i := range b.steps {
			if m.step() {
				full++
			}
			if short && i%b.room == b.room/2 {
				m.at().c.want("DEL "+fmt.Sprint("fill", i), "(integer) 1")
			}
		}
		m.checkAll()
		if short == (full == 0) || full > b.mostFull {
			t.Errorf("short %t: %d times full", short, full)
		}
	}
}

// reachTheFollower checks for each seed that after random commands a follower that takes over has what
// the owner had, wherever the snapshot began.
func reachTheFollower[M model](
	t *testing.T, start func(t *testing.T, c *client, tag string, seed uint64) M, steps int, seeds ...uint64,
) {
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		nodes, table, key := startTrio(t)
		p := partitionOf(key)
		leveled := altered(table, func(next *ring.Table) { next.Level = ring.Level })
		install(t, leveled, nodes[:]...)
		m := start(t, dial(t, nodes[0].Addr()), key, seed)
		before := m.at().r.IntN(400)
		for range before {
			m.step()
		}
		table = altered(leveled, func(next *ring.Table) { next.Follower[p] = 1 })
		install(t, table, nodes[:]...)
		for range steps - before {
			m.step()
		}
		eventually(t, "the copy is in sync", inSync(nodes[1], p))
		succeed(t, nodes, table)
		m.at().c = dial(t, nodes[1].Addr())
		m.checkAll()
		for range 100 {
			m.step()
		}
		m.checkAll()
	}
}
