package node

import (
	"fmt"
	"net"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// onLoop runs f on the loop of a connection that a client has opened to n, with
// the connection's handler.
func onLoop(t testing.TB, n *Node, f func(cn *conn)) {
	t.Helper()
	c, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var found *conn
	eventually(t, "the connection is accepted", func() bool {
		n.cfg.Group.Each(func(l *netloop.Loop) {
			for cn := range n.workers[l.Index()].conns {
				if cn.State.Addr == c.LocalAddr().String() {
					found = cn
				}
			}
		})
		return found != nil
	})
	done := make(chan struct{})
	found.worker.loop.Post(func() {
		defer close(done)
		f(found)
	})
	<-done
}

// TestNoAllocations proves that commands in steady state allocate nothing, from
// the input of the connection to the replies in its output.
func TestNoAllocations(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	f := func(name string, lines ...string) {
		t.Helper()
		var input []byte
		for _, line := range lines {
			input = resp.AppendRequest(input, words(t, line)...)
		}
		t.Run(name, func(t *testing.T) {
			var allocs float64
			onLoop(t, n, func(cn *conn) {
				// Replies are thrown away, or the output would grow.
				out := make([]byte, 0, 64<<10)
				allocs = testing.AllocsPerRun(1000, func() {
					cn.Socket.SetOut(out[:0])
					if used := cn.OnData(cn.Socket, input); used != len(input) {
						panic(fmt.Sprintf("OnData used %d of %d bytes", used, len(input)))
					}
				})
			})
			if allocs != 0 {
				t.Errorf("%s: %v allocations for each run, want 0", name, allocs)
			}
		})
	}
	f("SET", "SET key:000000000001 0123456789012345678901234567890123456789012345678901234567890123")
	f("GET", "GET key:000000000001")
	f("GET of nothing", "GET missing")
	f("pipeline", "SET a 1", "GET a", "SET b 2", "GET b", "INCR a", "DEL b", "EXISTS a b", "MGET a b", "EXPIRE a 100", "TTL a")
	f("SET with expiry", "SET k v EX 100", "GET k")
	f("SET NX", "SET k v NX", "SETNX k v", "APPEND a 1", "SETRANGE a 0 1", "GETRANGE a 0 0", "STRLEN a", "SET a 1")
	f("MSET", "MSET a 1 b 2 c 3")
	f("PFADD", "DEL h", "PFADD h 1 2 3", "PFADD h 4", "PFCOUNT h", "PFCOUNT h h", "PFMERGE h h")
	f("whole keys", "SET {k}a 1", "RENAME {k}a {k}b", "COPY {k}b {k}a REPLACE", "DUMP {k}a", "OBJECT ENCODING {k}a", "OBJECT FREQ {k}none", "RENAMENX {k}a {k}b")
	f("databases", "SELECT 1", "SET a 1", "GET a", "INCR a", "MOVE a 15", "MGET a b", "SELECT 15", "GET a", "DEL a", "SELECT 0", "SET a 1", "COPY a a DB 1 REPLACE")
	f("IFEQ", "SET a 1", "SET a 2 IFEQ 1", "DELIFEQ a 2")
	f("IFDEQ", "SET a 1", "SET a 2 IFDNE 0123456789abcdef", "DIGEST a", "DELEX a IFDNE 0123456789abcdef")
	f("bits", "SETBIT b 100 1", "GETBIT b 7", "BITCOUNT b", "BITCOUNT b 0 -1 BIT", "BITPOS b 1", "BITPOS b 0 1")
	f("BITFIELD", "BITFIELD b SET u8 #1 5 OVERFLOW SAT INCRBY i64 3 1 GET u5 7", "BITFIELD_RO b GET u8 0")
	f("BITOP", "SETBIT {b}1 100 1", "BITOP OR {b}2 {b}1 {b}1", "BITOP NOT {b}2 {b}1")
	f("packed list", "DEL {l}a {l}b", "RPUSH {l}a a b 3", "LPUSH {l}a 1", "LINDEX {l}a 1", "LSET {l}a 0 x", "LPOP {l}a", "RPOP {l}a 1", "LRANGE {l}a 0 -1", "LMOVE {l}a {l}b LEFT RIGHT", "LLEN {l}a")
	long := "RPUSH {l}big"
	for i := range 1000 {
		long += fmt.Sprintf(" element:%d", i)
	}
	dial(t, n.Addr()).do(long)
	f("big list", "RPUSH {l}big a", "LPUSH {l}big b", "LPOP {l}big", "RPOP {l}big", "LINDEX {l}big 500", "LSET {l}big 500 element:500", "LRANGE {l}big 0 100", "LPOS {l}big element:7")
	f("packed set", "DEL {s}a {s}b", "SADD {s}a a b 3", "SADD {s}a c", "SADD {s}a c", "SISMEMBER {s}a a", "SMISMEMBER {s}a a x", "SCARD {s}a", "SMEMBERS {s}a", "SRANDMEMBER {s}a", "SRANDMEMBER {s}a -3", "SMOVE {s}a {s}b a", "SREM {s}a b", "SPOP {s}a", "SSCAN {s}b 0")
	long = "SADD {s}big"
	for i := range 1000 {
		long += fmt.Sprintf(" element:%d", i)
	}
	dial(t, n.Addr()).do(long)
	f("big set", "SADD {s}big new", "SADD {s}big new", "SADD {s}big a b c", "SISMEMBER {s}big element:7", "SMISMEMBER {s}big element:8 x", "SCARD {s}big", "SRANDMEMBER {s}big", "SRANDMEMBER {s}big -3", "SREM {s}big new a", "SMOVE {s}big {s}small b", "SMOVE {s}small {s}big b", "SPOP {s}big", "SPOP {s}big 2", "SSCAN {s}big 0", "SADD {s}big b a c element:3 element:5 element:7")
	if !shape.Verifies {
		f("packed sorted set", "DEL z", "ZADD z 1 a 2.5 b 3 c", "ZADD z 5 a", "ZINCRBY z 0.25 b", "ZSCORE z a", "ZSCORE z x", "ZMSCORE z a x", "ZRANK z b", "ZREVRANK z b WITHSCORE", "ZCARD z", "ZCOUNT z 1 (3", "ZRANGE z 0 -1 WITHSCORES", "ZRANGE z 1 3 BYSCORE", "ZRANDMEMBER z", "ZSCAN z 0", "ZREM z b", "ZPOPMIN z", "ZPOPMAX z 1")
		long = "ZADD zbig"
		for i := range 1000 {
			long += fmt.Sprintf(" %d.5 member:%d", i, i)
		}
		dial(t, n.Addr()).do(long)
		f("big sorted set", "ZADD zbig 7.25 new 1 a 2 b", "ZADD zbig 0.1234567890123 member:7", "ZINCRBY zbig 1.5 member:8", "ZINCRBY zbig 500 member:9", "ZINCRBY zbig -500 member:9", "ZSCORE zbig member:7", "ZSCORE zbig x", "ZRANK zbig member:500", "ZRANGE zbig 100 200 WITHSCORES", "ZRANGE zbig 1 30 BYSCORE", "ZREVRANGE zbig 0 9", "ZCOUNT zbig 5 900", "ZRANDMEMBER zbig", "ZSCAN zbig 0", "ZREM zbig new a", "ZPOPMIN zbig", "ZADD zbig 1 b 1.5 member:1", "ZREMRANGEBYRANK zbig 0 0", "ZADD zbig 1 b")
	}
	f("packed hash", "DEL h", "HSET h a 1 b 2 c 3", "HSET h a 5", "HSETNX h d 4", "HGET h a", "HMGET h a b x", "HINCRBY h a 2", "HEXISTS h b", "HSTRLEN h c", "HGETALL h", "HKEYS h", "HRANDFIELD h", "HRANDFIELD h -3 WITHVALUES", "HSCAN h 0", "HTTL h FIELDS 1 a", "HDEL h a b", "HLEN h")
	long = "HSET big"
	for i := range 1000 {
		long += fmt.Sprintf(" field:%d value:%d", i, i)
	}
	dial(t, n.Addr()).do(long)
	f("big hash", "HSET big new 1 field:7 2", "HGET big field:7", "HMGET big field:1 field:2 x", "HINCRBY big field:7 1", "HDEL big new", "HLEN big", "HEXISTS big field:9", "HRANDFIELD big", "HSCAN big 0", "HEXPIRE big 1000 FIELDS 1 field:3", "HTTL big FIELDS 1 field:3", "HPERSIST big FIELDS 1 field:3", "HGETEX big FIELDS 1 field:3", "HSETEX big KEEPTTL FIELDS 1 field:3 x")
	f("random elements", "SRANDMEMBER {s}big 7", "SRANDMEMBER {s}big 200", "HRANDFIELD big 7 WITHVALUES",
		"HRANDFIELD big 200")
	if !shape.Verifies {
		f("random members", "ZRANDMEMBER zbig 7", "ZRANDMEMBER zbig -7 WITHSCORES")
	}
}
