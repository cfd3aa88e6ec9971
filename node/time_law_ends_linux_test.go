//go:build linux && !race

package node

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// The work for a connection ends soon after the connection: the node then computes nothing for it any more, and keeps
// nothing. The test asks every command what TestTimeLaw asks, resets the connection once the request is read, and
// measures the processor time of the process until the node is at rest. A connection of which only the peer's
// direction is closed has not ended: `printf … | nc` is a client too.
//
// To the end are executed:
//   - the commands of a transaction, as in Redis, but for those that only read, once one has been executed that
//     may have changed something: nobody sees half of a transaction;
//   - the commands of inPlace.
const (
	// endBound is what may be computed behind the end of a connection. It has room for what is freed then, for what
	// looks whether the node is at rest, and for what the build tag checked adds.
	endBound = 25 * time.Millisecond
	// scriptBound is that of scripts: no function of Lua's library is interrupted, and string.rep makes 30 MB at once.
	scriptBound = 4 * endBound
	// longEnough is what each request of endless takes at least.
	longEnough = 2 * endBound
)

// inPlace are commands that change many elements of one value, some at a time, while they hold its partition: nobody
// may see half of that. A command that gathers before it changes something does not belong here: see exec.Gatherer.
const inPlace = `bzmpop geoadd hdel hexpire hexpireat hgetdel hgetex hmset hpersist hpexpire hpexpireat hset hsetex
	linsert lmpop lpop lpush lpushx lrem ltrim msetex msetnx mset rpop rpush rpushx sadd spop srem xack xackdel xadd
	xautoclaim xclaim xdel xdelex xgroup|delconsumer xgroup|destroy xreadgroup xtrim zadd zmpop zpopmax zpopmin zrem
	zremrangebylex zremrangebyrank zremrangebyscore`

// endless are requests that take long enough to be seen to end early. {k}huge is a set of hugeMembers, {k}hugez a
// sorted one, and there are as many keys of which KEYS compares much.
var endless = map[string]string{
	"keys":        "*" + strings.Repeat("a*", 390) + "c*",
	"dump":        "{k}huge",
	"sort":        "{k}huge; {k}huge ALPHA STORE {k}new; {k}huge BY {k}w* GET {k}n*",
	"sort_ro":     "{k}huge",
	"sinter":      "{k}huge {k}huge",
	"sinterstore": "{k}new {k}huge {k}huge",
	"sunionstore": "{k}new {k}huge {k}set",
	"sdiff":       "{k}huge {k}set",
	"sdiffstore":  "{k}new {k}huge {k}set",
	"zunion":      "2 {k}huge {k}hugez",
	"zunionstore": "{k}new 2 {k}huge {k}hugez",
	"zinter":      "2 {k}huge {k}hugez",
	"zinterstore": "{k}new 2 {k}huge {k}hugez",
	"zdiff":       "2 {k}hugez {k}set",
	"zdiffstore":  "{k}new 2 {k}hugez {k}set",
	"zrangestore": "{k}new {k}hugez 0 -1",
	"pfcount":     "( 8000x {k}h )",
	"pfmerge":     "{k}new ( 8000x {k}h )",
}

const hugeMembers = 200_000

func (rig *endRig) fillHuge() {
	c := dial(rig.t, rig.node.Addr())
	defer c.conn.Close()
	addThousands(c, hugeMembers/1000, "SADD", "{k}huge", func(i int) []string { return []string{fmt.Sprint(i)} })
	addThousands(c, hugeMembers/1000, "ZADD", "{k}hugez", func(i int) []string { return []string{fmt.Sprint(i % 1000), fmt.Sprint(i)} })
	name := strings.Repeat("ab", 400)
	for i := range 60_000 {
		if err := put(rig.node, fmt.Sprint(name, i), "v", engine.TypeString); err != nil {
			rig.t.Fatal(err)
		}
	}
}

// forever are requests that wait until their connection ends.
var forever = map[string]string{
	"blpop": "( 250x {k}none# ) 0", "blmove": "{k}none {k}other LEFT RIGHT 0", "bzpopmin": "( 250x {k}none# ) 0",
	"xread": "BLOCK 0 STREAMS {k}stream $", "xreadgroup": "GROUP g c BLOCK 0 STREAMS {k}stream >", "wait": "1 0",
}

// endRig is a node that is asked over connections which end while it works.
type endRig struct {
	*lawRig
	goroutines int   // of an idle node and this test: the fewest that were seen
	used       int64 // of the loop's account
}

func newEndRig(t *testing.T) *endRig {
	rig := &endRig{lawRig: newLawRig(t, startLeveled)}
	rig.fill()
	eventually(t, "the connection that has filled the node is closed", func() bool {
		_, open := rig.received()
		return !open
	})
	rig.goroutines = runtime.NumGoroutine() // one that ends just now is counted, too
	rig.onLoop(func(w *worker) { rig.used = w.held() })
	return rig
}

// processTime returns how long the process has computed.
func processTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// onLoop calls f on the node's only loop.
func (rig *endRig) onLoop(f func(w *worker)) {
	rig.t.Helper()
	err := rig.node.cfg.Group.Each(func(l *netloop.Loop) { f(rig.node.workers[l.Index()]) })
	if err != nil {
		rig.t.Fatal(err)
	}
}

// unrest returns what is not over yet; "": nothing. What goroutines have posted to the loop runs before the loop is
// asked, and may begin goroutines.
func (rig *endRig) unrest() (what string) {
	n := rig.node
	rig.goroutines = min(rig.goroutines, runtime.NumGoroutine())
	if runtime.NumGoroutine() > rig.goroutines {
		return "a goroutine"
	}
	rig.onLoop(func(w *worker) {
		switch {
		case len(w.conns) > 0:
			what = "a connection"
		case len(w.turns.waiting)+len(w.turns.delayed) > 0:
			what = "work that waits for its turn"
		case len(w.holdQueues) > 0:
			what = "somebody who waits for a hold"
		case w.moving.queue.Len() > 0:
			what = "somebody who waits for a move"
		case w.held() != rig.used:
			what = fmt.Sprintf("charges of connections: %d bytes", w.held()-rig.used)
		}
	})
	st := n.engine.Stats()
	switch {
	case what != "":
	case len(n.engine.Holds()) > 0:
		what = "a hold"
	case n.waiters.Load() > 0:
		what = "a command that waits"
	case st.Staged > 0:
		what = fmt.Sprintf("%d staged bytes", st.Staged)
	case st.Pinned > 0:
		what = fmt.Sprintf("%d pinned bytes", st.Pinned)
	case st.Leaving > 0:
		what = fmt.Sprintf("%d leaving bytes", st.Leaving)
	case runtime.NumGoroutine() > rig.goroutines:
		what = "a goroutine"
	}
	return what
}

// rest waits until the node is at rest.
func (rig *endRig) rest(what string) {
	rig.t.Helper()
	still := ""
	defer func() {
		if still != "" {
			rig.t.Errorf("%.70s: there is still %s", what, still)
		}
	}()
	eventually(rig.t, "the node is at rest", func() bool {
		still = rig.unrest()
		return still == ""
	})
}

// received returns how many bytes the loop has read, and whether there are connections.
func (rig *endRig) received() (n uint64, open bool) {
	rig.onLoop(func(w *worker) {
		ofClients, _ := w.clients.Traffic()
		ofMembers, _ := w.members.Traffic()
		n = ofClients + ofMembers
		open = len(w.conns) > 0
	})
	return n, open
}

// cut executes a request on a connection that ends once the request is read. It returns what was computed behind that.
func (rig *endRig) cut(way, pattern string, args [][]byte) time.Duration {
	rig.t.Helper()
	c, raw := rig.open(way, args)
	before, _ := rig.received()
	c.sendRaw(raw)
	eventually(rig.t, "the request is read", func() bool {
		now, open := rig.received()
		return now == before+uint64(len(raw)) || !open
	})
	begun := processTime()
	c.conn.(*net.TCPConn).SetLinger(0)
	c.conn.Close()
	rig.rest(way + ": " + pattern)
	return processTime() - begun
}

// isWhole reports whether a request is executed to its end.
func isWhole(row *command.Command, way string, args [][]byte) bool {
	if way == "MULTI" || way == "EXEC" {
		return mustRun(row, args)
	}
	for name := range strings.FieldsSeq(inPlace) {
		if name == row.Name {
			return true
		}
	}
	return false
}

// TestTimeLawOfEnds: no command is executed for long after its connection has ended.
func TestTimeLawOfEnds(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newEndRig(t)
	rig.fillHuge()
	for row := range rowsOfLaw() {
		if endless[row.Name] != "" {
			rig.endless(row, strings.Split(endless[row.Name], ";"))
		}
	}
	for name, pattern := range forever {
		rig.waits(name, pattern)
	}
	c := dial(t, rig.node.Addr())
	c.do("FLUSHALL")
	c.conn.Close()
	for row := range rowsOfLaw() {
		ways := make(map[string]bool) // in which the row was executed whole
		eachRequest(row, hostile[row.Name], func(way, pattern string, args [][]byte) {
			whole := isWhole(row, way, args)
			if whole && ways[way] {
				return
			}
			ways[way] = true
			rig.judge(row, way, pattern, args)
		})
	}
}

// endless judges requests that take long.
func (rig *endRig) endless(row *command.Command, patterns []string) {
	ways := []string{"client", "MULTI", "pipe", "EXEC"}
	if plans[row.ID].keys == allKeys {
		ways = []string{"client", "EACH"}
	}
	for _, pattern := range patterns {
		pattern = strings.ToUpper(row.Name) + " " + strings.TrimSpace(pattern)
		args := requestOf(pattern, manyWords)
		rig.fill()
		begun := processTime()
		rig.once("client", args)
		rig.rest("whole " + pattern)
		if full := processTime() - begun; full < longEnough {
			rig.t.Errorf("%.70s takes %v, want at least %v, or nothing is shown", pattern, full, longEnough)
		}
		for _, way := range ways {
			if !isWhole(row, way, args) {
				rig.judge(row, way, pattern, args)
			}
		}
	}
}

// waits sees that what waits for ever ends with its connection.
func (rig *endRig) waits(name, pattern string) {
	rig.t.Helper()
	rig.fill()
	for _, way := range []string{"client", "pipe"} {
		rig.rest("before " + name)
		c, raw := rig.open(way, requestOf(strings.ToUpper(name)+" "+pattern, manyWords))
		c.sendRaw(raw)
		eventually(rig.t, name+" waits", func() bool {
			return rig.node.waiters.Load() > 0 || runtime.NumGoroutine() > rig.goroutines
		})
		c.conn.Close()
		rig.rest(way + ": " + name)
	}
}

// judge compares the best of a few measurements with the law. Of what is executed whole it only sees that
// nothing is left.
func (rig *endRig) judge(row *command.Command, way, pattern string, args [][]byte) {
	rig.t.Helper()
	measure := func() time.Duration {
		rig.fill()
		rig.rest("before " + pattern)
		lists := rig.node.lists.Load()
		took := rig.cut(way, pattern, args)
		// Less may be charged: what scripts and functions keep, which is not judged, is given back later.
		if more := rig.node.lists.Load() - lists; more > 0 && !row.IsScript() && row.Flags&command.NoScript == 0 {
			rig.t.Errorf("%s: %.70s: %d bytes stay charged", way, pattern, more)
		}
		return took
	}
	took, whole, bound := measure(), isWhole(row, way, args), endBound
	if row.IsScript() {
		bound = scriptBound
	}
	for try := 1; try < tries && took > bound && !whole; try++ {
		time.Sleep(time.Duration(try) * tryPause)
		took = min(took, measure())
	}
	if took > bound && !whole {
		rig.t.Errorf("%s: %.70s: %v are computed behind the end of the connection, want at most %v", way, pattern, took, bound)
	}
}
