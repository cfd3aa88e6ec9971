package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// TestOracleOfDatabases says the same random commands, over two connections in turns, to a node and
// to a real redis-server: SELECT and what it changes, within transactions and scripts too. WATCH is
// not among them: a node may take a watched key for changed that has not, such as one that was not
// there when its database was flushed.
func TestOracleOfDatabases(t *testing.T) {
	forOneClient(t)
	real, n := redistest.Start(t), startLeveled(t)
	type pair struct{ ours, real *client }
	var pairs []pair
	for range 2 {
		pairs = append(pairs, pair{dial(t, n.Addr()), dial(t, real)})
	}
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 2))}
	var said []string
	queues, watches := map[int]bool{}, map[int]bool{}
	for range 6_000 {
		who, line := g.IntN(len(pairs)), g.ofDatabases()
		name, _, _ := strings.Cut(line, " ")
		if queues[who] && (name == "DBSIZE" || name == "FLUSHDB") { // EXEC has them in Redis only
			continue
		}
		if name == "FLUSHDB" && len(watches) > 0 { // which changes the versions of keys that are not there, too
			continue
		}
		said = append(said, fmt.Sprint(who, ": ", line))
		got, want := pairs[who].ours.do(line), pairs[who].real.do(line)
		switch {
		case name == "MULTI":
			queues[who] = true
		case name == "WATCH":
			watches[who] = true
		case name == "RESET", (name == "EXEC" || name == "DISCARD") && queues[who]:
			queues[who] = false
			delete(watches, who)
		case name == "UNWATCH" && !queues[who]:
			delete(watches, who)
		}
		if !sameReply(line, got, want) {
			last := said[max(0, len(said)-40):]
			t.Fatalf("seed %d: %s answers\n%s\nwant\n%s\nafter\n%s", seed, line, got, want, strings.Join(last, "\n"))
		}
	}
}

// ofDatabases is a command in which databases matter.
func (g *generator) ofDatabases() string {
	database := func() string { return g.pick("0", "0", "1", "1", "15", "15", "16", "-1", "x") }
	k := g.key()
	switch g.IntN(24) {
	case 0, 1, 2:
		return "SELECT " + database()
	case 3, 4, 5:
		return "MOVE " + k + " " + database()
	case 6, 7:
		return "COPY " + k + " " + g.key() + " " + g.pick("", "REPLACE", "DB "+database(), "DB "+database()+" REPLACE", "DB 0 DB 1")
	case 8:
		return g.pick("DBSIZE", "DBSIZE", "FLUSHDB", "RENAME "+k+" "+g.key(), "RESET")
	case 9, 10, 11:
		return "MULTI"
	case 12, 13:
		return g.pick("EXEC", "EXEC", "EXEC", "DISCARD", "UNWATCH")
	case 14:
		return "SET " + k + " " + g.pick("a", "b", "c") + " " + g.pick("", "EXAT 9999999999", "NX", "GET")
	case 15:
		return g.pick("RPUSH", "LPUSH") + " " + k + " " + g.some(func() string { return g.pick("x", "y", "1") }, 4)
	case 16:
		return "HSET " + k + " " + g.pick("f", "g") + " " + g.pick("v", "w")
	case 17:
		return "EVAL " + `"redis.call('SELECT', ARGV[1]); return redis.call(ARGV[2], KEYS[1])" 1 ` + k + " " + database() + " " +
			g.pick("TYPE", "DEL", "EXPIRETIME", "INCR")
	case 18:
		return "EVAL " + `"redis.call('SELECT', ARGV[1]); return redis.call('MOVE', KEYS[1], ARGV[2])" 1 ` + k + " " + database() + " " + database()
	case 19:
		return g.pick("DEL", "EXISTS", "UNLINK", "TOUCH") + " " + k + " " + g.key()
	case 20:
		return "BLPOP " + k + " " + g.key() + " 0.001"
	}
	return g.pick("GET", "TYPE", "EXPIRETIME", "LLEN", "HGETALL", "SORT") + " " + k
}
