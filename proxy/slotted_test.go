package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// ofSlot is a command with n keys of one slot behind what it begins with.
func ofSlot(begin string, n int) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := range n {
		b.WriteString(" {k}" + strconv.Itoa(i))
	}
	return b.String()
}

// A WATCH of many keys goes to its node in pieces, and EXEC watches all of them.
func TestWatchOfManyKeys(t *testing.T) {
	const n = 5*maxKeys + 7
	c := newCluster(t, 2, oneLoop(t))
	var longest atomic.Int64
	for _, node := range c.nodes {
		node.set(func(n *fakeNode) {
			n.answer = func(args []string) (string, bool) {
				if args[0] == "DUNLIN" && args[1] == "WATCH" {
					longest.Store(max(longest.Load(), int64(len(args)-2))) // all keys are of one node
				}
				return "", false
			}
		})
	}
	cl, other := c.dial(), c.dial()
	transaction := func(want string) {
		t.Helper()
		cl.send("MULTI", "SET {k} v", "EXEC")
		cl.want("+OK", "+QUEUED", want)
	}
	cl.send(ofSlot("WATCH", n), "WATCH {k}last", "SET {k}other 1")
	cl.want("+OK", "+OK", "+OK")
	transaction("*1 +OK")
	for _, changed := range []string{"{k}0", "{k}1024", "{k}" + strconv.Itoa(n-1)} {
		cl.send(ofSlot("WATCH", n))
		cl.want("+OK")
		other.send("INCR " + changed)
		other.reply()
		transaction("*-1")
	}
	cl.send(ofSlot("WATCH", n)+" far", "GET {k}0")
	cl.want("-CROSSSLOT Keys in request don't hash to the same slot", "$1 1")
	other.send("INCR {k}0")
	other.want(":2")
	transaction("*1 +OK") // nothing is watched
	if longest := longest.Load(); longest != maxKeys {
		t.Errorf("the longest request has %d keys, want %d", longest, maxKeys)
	}
	c.wantNothingKept()

	for _, node := range c.nodes { // one piece fails
		node.set(func(n *fakeNode) {
			n.answer = func(args []string) (string, bool) {
				return "-ERR no\r\n", args[0] == "DUNLIN" && args[1] == "WATCH" && slices.Contains(args, "{k}2000")
			}
		})
	}
	cl.send(ofSlot("WATCH", n), "MULTI", "SET {k} never", "EXEC")
	cl.want("-ERR no", "+OK", "+QUEUED", "*-1")
	gone := c.dial()
	gone.send(ofSlot("WATCH", n))
	gone.Close()
	c.wantNothingKept()
}

// The keys of a piece and their versions are encoded at once, without a list of them.
func TestWatchedKeysAreInOnePiece(t *testing.T) {
	for _, database := range []uint8{0, 3} {
		args, versions := make([][]byte, maxKeys), resp.AppendArray(nil, maxKeys)
		var want []byte
		for i := range args {
			args[i] = fmt.Appendf(nil, "{k}%d", i)
			version := fmt.Appendf(nil, "v%08d", i)
			versions = resp.AppendBulk(versions, version)
			want = member.AppendWatched(want, database, args[i], version)
		}
		p := &watchPiece{
			w: &watching{at: database}, keys: maxKeys, raw: member.AppendRequest(nil, member.VerbWatch, args...),
		}
		var got []byte
		ok := false
		if allocs := testing.AllocsPerRun(3, func() { got, ok = p.encode(versions) }); allocs > 4 {
			t.Errorf("%.0f allocations", allocs)
		}
		if !ok || string(got) != string(want) || cap(got) > len(want)+64 {
			t.Errorf("%v, %d bytes in %d, want %d", ok, len(got), cap(got), len(want))
		}
	}
}

// A command of one slot with many keys goes to its owner as it is, or is refused.
func TestManyKeysOfOneSlot(t *testing.T) {
	for _, n := range []int{maxKeys, 5*maxKeys + 7, 100_000} { // the last is longer than what is copied
		c := newCluster(t, 2, oneLoop(t))
		for _, node := range c.nodes {
			node.set(func(n *fakeNode) {
				n.answer = func(args []string) (string, bool) {
					return fmt.Sprintf(":%d\r\n", len(args)), args[0] == "PFCOUNT"
				}
			})
		}
		cl := c.dial()
		var turns atomic.Int64 // behind which another one waits
		w := c.proxy.workers[0]
		w.loop.Post(func() { w.loop.OnIterationEnd(func() { turns.Add(int64(len(w.turns.waiting))) }) })
		cl.send("SET a 1", ofSlot("PFCOUNT", n), "GET a", ofSlot("PFCOUNT far", n), ofSlot("PFCOUNT", n)+" far", "GET a")
		crossing := "-CROSSSLOT Keys in request don't hash to the same slot"
		cl.want("+OK", ":"+strconv.Itoa(n+1), "$1 1", crossing, crossing, "$1 1")
		if got, want := int(turns.Load()), 2*(n/maxKeys-1); got < want {
			t.Errorf("two requests of %d keys take %d turns, want %d", n, got, want)
		}
		gone := c.dial()
		gone.send(ofSlot("PFCOUNT", n))
		gone.Close()
		c.wantNothingKept()
	}
}

// TestTurnsOfOneSlot counts the keys that a loop looks at in a turn.
func TestTurnsOfOneSlot(t *testing.T) {
	const n = 10 * maxKeys
	c := newCluster(t, 2, oneLoop(t))
	w := c.proxy.workers[0]
	cl := c.dial()
	cl.send("SET a 1")
	cl.want("+OK")
	done := make(chan bool)
	w.loop.Post(func() {
		defer close(done)
		request := func(line string) (longRequest, [][]byte) {
			words := strings.Fields(line)
			raw := bytesOf(words...)
			l := longRequest{s: w.clients[0], cmd: command.Lookup([]byte(words[0])), raw: raw}
			_, l.next = resp.DecodeArgument(raw, strings.IndexByte(string(raw), '\n')+1)
			return l, argsOf(raw)
		}
		for begin, keys := range map[string]int{"PFCOUNT": n, "BITOP AND": n, "MSETNX": n / 2} {
			c := &slotted{place: 1, first: true}
			var args [][]byte
			c.longRequest, args = request(ofSlot(begin, n))
			c.keys = c.cmd.KeyRuns(args)
			c.last = c.keys.Last()
			turns := 0
			for ; c.place <= c.last; turns++ {
				before := c.place
				if c.look(); c.crossing || c.place-before > maxKeys {
					t.Fatalf("%s looks at %d words in a turn", begin, c.place-before)
				}
			}
			if turns < keys/maxKeys || turns > n/maxKeys+1 {
				t.Errorf("%s takes %d turns", begin, turns)
			}
		}
		watch := &watching{left: n}
		watch.longRequest, _ = request(ofSlot("WATCH", n))
		if keys, end := watch.cut(); keys != maxKeys || end >= len(watch.raw)/5 {
			t.Errorf("WATCH sends %d keys in a turn", keys)
		}
	})
	<-done
}
