package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// WATCH sees each change of a collection, whatever its size, and of a field's time to live; it does not
// see reads, or writes that change nothing.
func TestWatchSeesElements(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	many := func(command, key string, each ...string) string {
		line := command + " " + key
		for i := range 300 {
			for _, e := range each {
				line += " " + strings.ReplaceAll(e, "#", fmt.Sprint(i))
			}
		}
		return line
	}
	for _, size := range []string{"small", "big"} {
		other.do("HSET h a 1 b 2")
		other.do("SADD s a b")
		other.do("ZADD z 1 a 2 b")
		other.do("RPUSH l a b")
		if size == "big" {
			other.do(many("HSET", "h", "f#", "#"))
			other.do(many("SADD", "s", "m#"))
			other.do(many("ZADD", "z", "#", "m#"))
			other.do(many("RPUSH", "l", "e#"))
		}
		for _, x := range []struct {
			key, line string
			changes   bool
		}{
			{"h", "HSET h a 3", true}, {"h", "HDEL h b", true}, {"h", "HEXPIRE h 100 FIELDS 1 a", true},
			{"h", "HPERSIST h FIELDS 1 a", true}, {"h", "HGETEX h EX 100 FIELDS 1 a", true}, {"h", "HGETDEL h FIELDS 1 a", true},
			{"h", "HGETALL h", false}, {"h", "HDEL h nothing", false}, {"h", "HSETNX h new 1", true},
			{"s", "SADD s c", true}, {"s", "SREM s c", true}, {"s", "SREM s nothing", false}, {"s", "SMOVE s s2{s} a", true},
			{"z", "ZADD z 7 a", true}, {"z", "ZINCRBY z 1 a", true}, {"z", "ZREM z nothing", false}, {"z", "ZPOPMIN z", true},
			{"l", "LPUSH l c", true}, {"l", "LSET l 0 d", true}, {"l", "LREM l 0 nothing", false}, {"l", "LPOP l", true},
			{"h", "SET other 1", false}, {"h", "RENAME h h2{h}", true},
		} {
			line := strings.NewReplacer("s2{s}", "{s}2", "h2{h}", "{h}2").Replace(x.line)
			c.want("WATCH "+x.key, "OK")
			other.do(line)
			c.want("MULTI", "OK")
			c.want("EXISTS "+x.key, "QUEUED")
			if got := c.do("EXEC"); (got == "(nil)") != x.changes {
				t.Errorf("%s, %s: EXEC answers %q, it has changed: %t", size, line, got, x.changes)
			}
		}
		for _, key := range []string{"h", "{h}2", "s", "{s}2", "z", "l"} {
			other.do("DEL " + key)
		}
	}
}

// Under memory pressure a hash goes as a whole, the least used ones first.
func TestHashesAreEvictedWhole(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t, func(c *Config) { c.Memory, c.Shards = 16<<20, 4 })
	c := dial(t, n.Addr())
	const hashes, fields = 400, 200
	used := func(i int) bool { return i%40 == 0 }
	for i := range hashes {
		args := [][]byte{[]byte("HSET"), fmt.Appendf(nil, "hash:%d", i)}
		for f := range fields {
			args = append(args, fmt.Appendf(nil, "field:%d", f), fmt.Appendf(nil, "%0300d", i))
		}
		if c.sendArgs(args...); c.next() != fmt.Sprintf("(integer) %d", fields) {
			t.Fatalf("hash %d is not stored", i)
		}
		for j := 0; j <= i; j += 40 {
			c.want(fmt.Sprintf("HSTRLEN hash:%d field:1", j), "(integer) 300")
		}
	}
	gone, kept := 0, 0
	for i := range hashes {
		switch got := c.do(fmt.Sprintf("HLEN hash:%d", i)); {
		case got == "(integer) 0" && used(i):
			t.Errorf("hash %d is gone, which is used all the time", i)
		case got == "(integer) 0":
			gone++
			c.want(fmt.Sprintf("HGET hash:%d field:1", i), "(nil)")
		case got != fmt.Sprintf("(integer) %d", fields):
			t.Errorf("hash %d has %s of %d fields", i, got, fields)
		default:
			kept++
			c.want(fmt.Sprintf("HGET hash:%d field:%d", i, fields-1), fmt.Sprintf("\"%0300d\"", i))
		}
	}
	if gone == 0 || kept == 0 || n.engine.Stats().Evicted == 0 {
		t.Errorf("%d hashes are gone, %d are there", gone, kept)
	}
}

// A hash moves with all of its fields, their values and their times to live, small or big, and while
// it changes.
func TestMoveTakesHashesAlong(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	p := partitionOf(key)
	a := dial(t, nodes[0].Addr())
	name := func(i int) string { return fmt.Sprintf("{%s}%d", key, i) }
	fields := []int{3, 200, 20}
	value := func(i, f int) string { return strings.Repeat(fmt.Sprintf("%d.%d ", i, f), 1+i/2*8000) }
	for i, n := range fields {
		for f := range n {
			a.sendArgs([]byte("HSET"), []byte(name(i)), fmt.Appendf(nil, "f%d", f), []byte(value(i, f)))
			if got := a.next(); got != "(integer) 1" {
				t.Fatalf("HSET answers %s", got)
			}
		}
		a.want("HEXPIRE "+name(i)+" 5000 FIELDS 1 f1", "1) (integer) 1")
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	for i := range fields {
		a.want("HSET "+name(i)+" f0 changed", "(integer) 0")
		a.want("HDEL "+name(i)+" f2", "(integer) 1")
	}
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	b := dial(t, nodes[1].Addr())
	for i, n := range fields {
		b.want("HLEN "+name(i), fmt.Sprintf("(integer) %d", n-1))
		b.want("HGET "+name(i)+" f0", "\"changed\"")
		for f := range n {
			if want := fmt.Sprintf("%q", value(i, f)); f != 0 && f != 2 && b.do(fmt.Sprintf("HGET %s f%d", name(i), f)) != want {
				t.Errorf("field %d of hash %d is not what it was", f, i)
			}
		}
		wantTTL(t, b, "HTTL "+name(i)+" FIELDS 1 f1", 5000)
		a.want("HLEN "+name(i), fmt.Sprintf("(error) MOVED %d %s", ring.Slot([]byte(key)), nodes[1].Addr()))
	}
}

// Collections of many elements move, and their followers take over: a table that is filled from a
// snapshot never lacks blocks for what comes next.
func TestMoveTakesManyElementsAlong(t *testing.T) {
	nodes, table, key := startLeveledTrio(t, func(c *Config) { c.Memory = 256 << 20 })
	p := partitionOf(key)
	a := dial(t, nodes[0].Addr())
	elements, atOnce := 40_000, 1000
	if testing.Short() {
		elements = 3000
	}
	each := []struct{ add, count string }{{"HSET", "HLEN"}, {"SADD", "SCARD"}, {"ZADD", "ZCARD"}, {"RPUSH", "LLEN"}}
	name := func(i int) string { return fmt.Sprintf("{%s}%d", key, i) }
	for i, x := range each {
		for from := 0; from < elements; from += atOnce {
			args := [][]byte{[]byte(x.add), []byte(name(i))}
			for e := from; e < from+atOnce; e++ {
				switch x.add {
				case "HSET":
					args = append(args, fmt.Appendf(nil, "field:%d", e))
				case "ZADD":
					args = append(args, fmt.Appendf(nil, "%d", e))
				}
				args = append(args, fmt.Appendf(nil, "%0100d", e))
			}
			a.sendArgs(args...)
			a.next()
		}
		a.want(x.count+" "+name(i), fmt.Sprintf("(integer) %d", elements))
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	install(t, altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }), nodes[:]...)
	b := dial(t, nodes[1].Addr())
	for i, x := range each {
		b.want(x.count+" "+name(i), fmt.Sprintf("(integer) %d", elements))
	}
}
