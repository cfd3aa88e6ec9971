//go:build linux && (checked || locktimes) && !race

package node

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

var lockFields = flag.Int("lock.fields", defaultFields, "how many fields the hash has of which TestLockTimes times the locks")

const defaultFields = 50_000

// lockLaw is how long a shard may be locked at most.
const lockLaw = 200 * time.Microsecond

// lockTimes are how many locks took how long, by engine.LockClass.
type lockTimes struct {
	classes [len(engine.LockTimes)]int64
	longest time.Duration
}

// takeLockTimes returns the times of all locks since it was last called.
func takeLockTimes() (l lockTimes) {
	for i := range l.classes {
		l.classes[i] = engine.LockTimes[i].Swap(0)
	}
	l.longest = time.Duration(engine.LongestLock.Swap(0))
	return l
}

func (l *lockTimes) String() string {
	sum, beyond := int64(0), int64(0)
	for i, n := range l.classes {
		if sum += n; time.Duration(i)*engine.LockClass >= lockLaw {
			beyond += n
		}
	}
	below := func(perMille float64) time.Duration {
		n := int64(0)
		for i := range l.classes {
			if n += l.classes[i]; float64(n) >= float64(sum)*perMille/1000 {
				return time.Duration(i+1) * engine.LockClass
			}
		}
		return 0
	}
	return fmt.Sprintf("%8d locks, 50 %% below %v, 99 %% %v, 99.9 %% %v; longest %v, %d longer than %v",
		sum, below(500), below(990), below(999), l.longest, beyond, lockLaw)
}

// lockRounds is how often acts are repeated at most of which one had a lock that took too long.
const lockRounds = 8

// judgeLocks executes rounds of acts, and fails if one of these has a lock in each round that takes
// longer than bound of processor time: what is not divided into slices. It shows all times. With
// another number of fields than the default it does no more than that.
func judgeLocks(t *testing.T, bound time.Duration, round func(t *testing.T, act func(what string, f func()))) {
	t.Helper()
	defer engine.TimeLocks.Store(engine.TimeLocks.Swap(true))
	best := make(map[string]time.Duration)
	for i, lawful := 0, false; i < lockRounds && !lawful && !t.Failed(); i++ {
		t.Run(fmt.Sprint("round", i), func(t *testing.T) {
			round(t, func(what string, f func()) {
				t.Helper()
				takeLockTimes()
				begun := time.Now()
				f()
				took := time.Since(begun)
				l := takeLockTimes()
				if t.Logf("%-22s %8v %v", what, took.Round(10*time.Microsecond), &l); l.longest == 0 {
					t.Errorf("%s: no lock was timed", what)
				}
				if before, again := best[what]; !again || l.longest < before {
					best[what] = l.longest
				}
			})
		})
		if *lockFields != defaultFields {
			return
		}
		lawful = true
		for _, longest := range best {
			lawful = lawful && longest <= bound
		}
	}
	for what, longest := range best {
		if longest > bound {
			t.Errorf("%s: a lock takes %v of processor time, want at most %v", what, longest, bound)
		}
	}
}

// movingPair is two nodes, of which the first one owns the partition of a key.
type movingPair struct {
	t     *testing.T
	nodes [2]*Node
	table *ring.Table
	key   string
}

func newMovingPair(t *testing.T, memory int64) *movingPair {
	x, group := &movingPair{t: t}, newGroup(t, 2)
	var members []ring.Member
	for i := range x.nodes {
		x.nodes[i] = startBare(t, func(c *Config) {
			c.ID, c.Boot, c.Memory, c.Group = string(rune('a'+i)), int64(i+1), memory, group
		})
		members = append(members, memberOf(x.nodes[i]))
	}
	x.table = tableOf(nil, members...)
	x.table.Level = ring.Level
	install(t, x.table, x.nodes[:]...)
	x.key = keyIn(t, x.table, 0)
	return x
}

// copy has the second node get the partition, and all that changes there.
func (x *movingPair) copy() {
	p := partitionOf(x.key)
	x.table = altered(x.table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(x.t, x.table, x.nodes[:]...)
	for !inSync(x.nodes[1], p)() {
		time.Sleep(10 * time.Millisecond)
	}
}

// moveOn makes the second node the owner.
func (x *movingPair) moveOn() {
	p := partitionOf(x.key)
	x.table = altered(x.table, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	x.nodes[1].SetTable(x.table)
	eventually(x.t, "the new owner serves", x.nodes[1].Serving)
}

// TestLockTimes measures for how long shards are locked while a big hash is made, read, copied,
// deleted, moved, evicted, and expires. It bounds processor time, of which a busy machine takes
// little more; TestTimeLaw has all commands. The build tag checked takes much of the time itself:
//
//	go test -tags locktimes -run TestLockTimes -v ./node -lock.fields 10000000 -timeout 1h
func TestLockTimes(t *testing.T) { judgeLocks(t, lockBound, lockTimesOfHash) }

func lockTimesOfHash(t *testing.T, act func(what string, f func())) {
	pair := newMovingPair(t, max(64<<20, 200*int64(*lockFields)))
	nodes, key := pair.nodes, pair.key
	owner := dial(t, nodes[0].Addr())
	owner.patience = 10 * time.Minute
	freed := func(n *Node, parts int64) {
		eventually(t, "its memory is free", func() bool { return n.engine.Stats().Parts <= parts })
	}
	act("HSET", func() { fillHash(t, owner, key, *lockFields) })
	act("HGETALL", func() {
		owner.send("HGETALL " + key)
		owner.read()
	})
	act("HSCAN", func() {
		for cursor := "0"; ; {
			reply := owner.do("HSCAN " + key + " " + cursor + " COUNT 1000")
			if cursor = strings.Split(reply, `"`)[1]; cursor == "0" {
				break
			}
		}
	})
	one := nodes[0].engine.Stats().Parts
	act("COPY", func() { owner.want("COPY "+key+" {"+key+"}copy", "(integer) 1") })
	act("DEL", func() {
		owner.want("DEL {"+key+"}copy", "(integer) 1")
		freed(nodes[0], one)
	})
	act("move", func() {
		pair.copy()
		pair.moveOn()
		freed(nodes[0], 0)
	})
	heir := dial(t, nodes[1].Addr())
	heir.patience = 10 * time.Minute
	act("expiry", func() {
		heir.want("PEXPIRE "+key+" 1", "(integer) 1")
		for heir.do("EXISTS "+key) != "(integer) 0" {
		}
		freed(nodes[1], 0)
	})
	fillHash(t, heir, key, *lockFields)
	act("eviction", func() {
		for i := 0; heir.do("EXISTS "+key) != "(integer) 0"; i++ {
			pipelined(heir, 1000, func(j int) []string {
				return []string{"SET", fmt.Sprintf("{%s}%d", key, i*1000+j), string(make([]byte, 1000))}
			})
		}
	})
}

// TestLockTimesOfSmallRecords measures for how long shards are locked when the limit falls while
// memory is full of records of 24 bytes, of which there are thousands on a page.
func TestLockTimesOfSmallRecords(t *testing.T) {
	const bound = lockBound / 2 // a page without slices takes 1.2 to 2.2 ms, and a slice 0.2 ms
	judgeLocks(t, bound, func(t *testing.T, act func(what string, f func())) {
		c, _ := fullOfSmall(t)
		act("lowered limit", func() { c.want("CONFIG SET maxmemory 16mb", "OK") })
	})
}

// TestLockTimesOfWrites measures for how long shards are locked by writes while memory is full of
// records of 24 bytes. A page of them, of which there are thousands, has to go for each page that the
// small queue or another length needs. It takes two keys for each of -lock.fields.
func TestLockTimesOfWrites(t *testing.T) {
	judgeLocks(t, lockBound, func(t *testing.T, act func(what string, f func())) {
		c, keys := fullOfSmall(t)
		writes := 2 * *lockFields
		act("new keys", func() {
			pipelined(c, writes, func(i int) []string { return []string{"SET", fmt.Sprintf("k%08d", keys+i), "value"} })
		})
		keys += writes
		recent := func(i int) string { return fmt.Sprintf("k%08d", keys-1-i*7919%20_000) }
		act("reads between", func() {
			pipelined(c, writes, func(i int) []string {
				if i%2 == 0 {
					return []string{"GET", recent(i)}
				}
				return []string{"SET", fmt.Sprintf("k%08d", keys+i), "value"}
			})
		})
		act("other lengths", func() {
			pipelined(c, writes, func(i int) []string {
				return []string{"SET", recent(i), strings.Repeat("v", i/500*37%500)}
			})
		})
		act("all lengths", func() {
			pipelined(c, writes/10, func(i int) []string {
				return []string{"SET", recent(i), strings.Repeat("v", 1<<(i%15)+i*31%(1<<(i%15)))}
			})
		})
		act("appends", func() {
			pipelined(c, writes/10, func(i int) []string {
				return []string{"APPEND", fmt.Sprintf("a%d", i%50), strings.Repeat("v", 100)}
			})
		})
	})
}

// fullOfSmall is a node with two shards and pages of 64 KiB whose memory is full of records of 24
// bytes, and how many were written.
func fullOfSmall(t *testing.T) (c *client, keys int) {
	n := startNode(t, func(c *Config) { c.Memory, c.Shards = 32<<20, 2 })
	for ; !n.engine.IsTight(); keys++ {
		if err := put(n, fmt.Sprintf("k%08d", keys), "value", engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	return dial(t, n.Addr()), keys
}

// pipelined sends n commands, a thousand at a time.
func pipelined(c *client, n int, command func(i int) []string) {
	c.t.Helper()
	const atOnce = 1000
	for first := 0; first < n; first += atOnce {
		var batch []byte
		for i := first; i < min(n, first+atOnce); i++ {
			args := command(i)
			words := make([][]byte, len(args))
			for j, a := range args {
				words[j] = []byte(a)
			}
			batch = resp.AppendRequest(batch, words...)
		}
		c.sendRaw(batch)
		for i := first; i < min(n, first+atOnce); i++ {
			if got := c.read(); resp.IsError(got) {
				c.t.Fatalf("%v answers %s", command(i), got)
			}
		}
	}
}

// fillHash makes a hash of n fields.
func fillHash(t *testing.T, c *client, key string, n int) {
	t.Helper()
	const atOnce = 1000
	for i := 0; i < n; i += atOnce {
		args := [][]byte{[]byte("HSET"), []byte(key)}
		for j := i; j < min(n, i+atOnce); j++ {
			args = append(args, fmt.Append(nil, "field:", j), fmt.Appendf(nil, "value:%010d", j))
		}
		c.sendArgs(args...)
		if got := c.read(); resp.IsError(got) {
			t.Fatalf("HSET answers %s", got)
		}
	}
}
