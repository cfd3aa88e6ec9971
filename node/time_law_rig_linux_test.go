//go:build linux && !race

package node

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// loopMeter measures the longest turn of a loop.
type loopMeter struct {
	thread  int
	last    int64 // processor time of that thread
	longest atomic.Int64
}

func newLoopMeter(ctx context.Context, l *netloop.Loop) *loopMeter {
	m, ready := &loopMeter{}, make(chan struct{})
	l.Post(func() {
		timeLocks()
		l.OnIterationEnd(m.tick)
		close(ready)
	})
	<-ready
	go func() { // an idle loop changes its thread
		beat := time.NewTicker(time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				l.Post(func() {})
			case <-ctx.Done():
				return
			}
		}
	}()
	return m
}

func (m *loopMeter) tick() {
	thread, now := unix.Gettid(), threadTime()
	if thread == m.thread {
		m.longest.Store(max(m.longest.Load(), now-m.last))
	}
	m.thread, m.last = thread, now
}

// begin forgets what was measured.
func (m *loopMeter) begin() {
	m.longest.Store(0)
	longestLock()
}

// cost is the longest turn and the longest lock.
type cost struct{ turn, lock time.Duration }

func (m *loopMeter) end() cost {
	return cost{time.Duration(m.longest.Load()), longestLock()}
}

func (c cost) most(other cost) cost { return cost{min(c.turn, other.turn), min(c.lock, other.lock)} }

func (c cost) lawful(turn time.Duration) bool { return c.turn <= turn && c.lock <= lockBound }

// lawPatience is for how long a reply is waited for. The tests measure processor time, of which they get little
// beside others.
const lawPatience = 10 * time.Minute

// lawRig is a node of one loop that is measured.
type lawRig struct {
	t          *testing.T
	node       *Node
	meter      *loopMeter
	turnMost   time.Duration
	generation int
	filled     map[string]engine.Version // of the values that fill has stored
}

func newLawRig(t *testing.T, start func(t testing.TB, change ...func(*Config)) *Node) *lawRig {
	group := newGroup(t, 1)
	n := start(t, func(c *Config) { c.Memory, c.Group = 512<<20, group })
	meter := newLoopMeter(t.Context(), group.Loops()[0])
	return &lawRig{t: t, node: n, meter: meter, turnMost: turnBound, filled: make(map[string]engine.Version)}
}

// fill stores the values that the patterns name: a number, words of 200 and 240 bytes, the longest
// value that is not large, a large one, zeros, and a dense HyperLogLog; a hash, a set and a sorted
// set with many elements, and those with few; a long list and a packed one. Strings and big values are stored
// anew only if they have changed. Database 1 is empty.
func (rig *lawRig) fill() {
	for key, value := range stringsOfLaw {
		rig.renew(key, func() {
			if err := put(rig.node, key, value, engine.TypeString); err != nil {
				rig.t.Fatal(err)
			}
		})
	}
	rig.node.engine.Clear(engine.Section(ring.PartitionOf([]byte("{k}")), 1))
	c := dial(rig.t, rig.node.Addr())
	defer c.conn.Close()
	c.run(smallOfLaw)
	for key, add := range bigOfLaw {
		rig.renew(key, func() { makeOnce(c, key, add) })
	}
}

// smallOfLaw stores what is small, always anew.
var smallOfLaw = [][]string{
	{"DEL", "{k}few", "{k}new", "{k}zfew", "{k}newz", "{k}members"},
	{"ZADD", "{k}zfew", "1", "a", "2", "b", "3", "c"},
	{"SADD", "{k}members", "1", "2", "3"},
	{"HSET", "{k}few", "1", "v", "2", "v", "3", "v"},
	{"FUNCTION", "LOAD", "#!lua name=pass\nredis.register_function{function_name='pass', flags={'no-writes'}, " +
		"callback=function(keys, args) return args end}"},
}

// makeOnce makes a big value once, and keeps a copy in database 2. Afterwards it copies that, part by part, which takes
// a tenth of the time and makes the same parts.
func makeOnce(c *client, key string, add func(c *client, key string)) {
	c.want("SELECT 2", "OK")
	copied := c.do("COPY "+key+" "+key+" DB 0 REPLACE") == "(integer) 1"
	c.want("SELECT 0", "OK")
	if !copied { // it is the first time, or all databases were emptied
		c.do("DEL " + key)
		add(c, key)
		c.want("COPY "+key+" "+key+" DB 2 REPLACE", "(integer) 1")
	}
}

// renew stores a value unless it is as it was stored before.
func (rig *lawRig) renew(key string, store func()) {
	version := func() engine.Version {
		x := rig.node.engine.Lock(ring.PartitionOf([]byte(key)), time.Now().UnixMilli())
		defer x.Unlock()
		return x.VersionOf([]byte(key))
	}
	if before, ok := rig.filled[key]; ok && version() == before {
		return
	}
	store()
	rig.filled[key] = version()
}

var stringsOfLaw = map[string]string{
	"{k}n": "1", "{k}200": strings.Repeat("ab", 100), "{k}240": strings.Repeat("ba", 120),
	"{k}s": string(longWord[:6000]), "{k}w": string(longWord[:60_000]), "{k}l": string(longWord),
	"{k}z": strings.Repeat("\x00", 250_000), "{k}h": lawSketch(),
}

// bigOfLaw makes the big values.
var bigOfLaw = map[string]func(c *client, key string){
	"{k}hash": func(c *client, key string) {
		addThousands(c, 20, "HSET", key, func(i int) []string { return []string{fmt.Sprint(i), "value"} })
	},
	"{k}set": func(c *client, key string) {
		addThousands(c, 20, "SADD", key, func(i int) []string { return []string{fmt.Sprint(i)} })
	},
	"{k}zset": func(c *client, key string) {
		addThousands(c, 20, "ZADD", key, func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprint("m", i)} })
	},
	"{k}list": func(c *client, key string) {
		addThousands(c, 20, "RPUSH", key, func(i int) []string { return []string{fmt.Sprint(i % 10_000)} })
	},
	"{k}dense": func(c *client, key string) {
		addThousands(c, 2, "RPUSH", key, func(i int) []string { return []string{fmt.Sprint(i % 2)} })
	},
	"{k}places": func(c *client, key string) {
		addThousands(c, 10, "GEOADD", key, func(i int) []string { return []string{fmt.Sprint(i % 180), fmt.Sprint(i % 85), fmt.Sprint("m", i)} })
	},
}

// addThousands adds n thousand elements to a key.
func addThousands(c *client, n int, command, key string, element func(i int) []string) {
	for from := range n {
		args := [][]byte{[]byte(command), []byte(key)}
		for i := range 1000 {
			for _, word := range element(from*1000 + i) {
				args = append(args, []byte(word))
			}
		}
		c.sendArgs(args...)
		c.read()
	}
}

// measure executes a request in some way, and compares what it costs with the law.
func (rig *lawRig) measure(way, pattern string, args [][]byte) {
	rig.t.Helper()
	rig.judge(way+": "+pattern, func() cost {
		rig.fill()
		return rig.once(way, args)
	})
}

// judge compares the best of a few measurements with the law.
func (rig *lawRig) judge(what string, measure func() cost) {
	rig.t.Helper()
	c := measure()
	for try := 1; try < tries && !c.lawful(rig.turnMost); try++ {
		time.Sleep(time.Duration(try) * tryPause)
		c = c.most(measure())
	}
	if c.turn > rig.turnMost/4 || c.lock > lockBound/4 {
		rig.t.Logf("%.70s: a turn of %v, a lock of %v", what, c.turn, c.lock)
	}
	if !c.lawful(rig.turnMost) {
		rig.t.Errorf("%.70s: a turn takes %v and a lock %v of processor time, want at most %v and %v",
			what, c.turn, c.lock, rig.turnMost, lockBound)
	}
}

// once executes a request on a connection of its own.
func (rig *lawRig) once(way string, args [][]byte) cost {
	c, raw := rig.open(way, args)
	defer c.conn.Close()
	return rig.send(c, raw)
}

// open opens a connection for a request, and returns what to send on it.
func (rig *lawRig) open(way string, args [][]byte) (c *client, raw []byte) {
	if way == "client" || way == "MULTI" {
		c = dial(rig.t, rig.node.Addr())
	} else {
		rig.generation++
		c = dial(rig.t, rig.node.Addr())
		c.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "large", rig.generation, 2), ring.Level), "OK later")
	}
	c.patience = lawPatience
	raw = resp.AppendRequest(nil, args...)
	switch way {
	case "MULTI":
		c.want("MULTI", "OK")
		c.sendRaw(raw)
		c.read()
		raw = resp.AppendRequest(nil, []byte("EXEC"))
	case "EXEC":
		raw = rig.execOf(nil, raw)
	case "GATHER":
		raw = resp.AppendRequest(nil, append([][]byte{[]byte("DUNLIN"), []byte("GATHER")}, args...)...)
	case "EACH":
		raw = resp.AppendRequest(nil, append([][]byte{[]byte("DUNLIN"), []byte("EACH"), allPartitions[:]}, args...)...)
	}
	return c, raw
}

// execOf returns a proxy's EXEC of watched keys, with their versions, and commands.
func (rig *lawRig) execOf(watched [][]byte, commands ...[]byte) []byte {
	slot := fmt.Append(nil, ring.Slot([]byte("{k}")))
	args := append([][]byte{[]byte("DUNLIN"), []byte("EXEC"), slot, fmt.Append(nil, len(watched)/2)}, watched...)
	return resp.AppendRequest(nil, append(args, commands...)...)
}

// send measures one request on a connection.
func (rig *lawRig) send(c *client, raw []byte) cost {
	beside := dial(rig.t, rig.node.Addr())
	defer beside.conn.Close()
	beside.want("PING", "PONG")
	rig.meter.begin()
	c.sendRaw(raw)
	reply := c.read()
	if bytes.HasPrefix(reply, []byte("-DUNLINLATER")) {
		reply = c.read()
	}
	if reply == nil {
		rig.t.Errorf("%.60q is not answered", raw)
	}
	beside.want("PING", "PONG") // the turn in which it was answered has ended
	return rig.meter.end()
}
