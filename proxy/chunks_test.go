package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// manyKeys is a command with n keys, each followed by its value if there are values.
func manyKeys(name string, n int, value func(i int) string) string {
	var b strings.Builder
	b.WriteString(name)
	for i := range n {
		fmt.Fprintf(&b, " many:%d", i)
		if value != nil {
			b.WriteString(" " + value(i))
		}
	}
	return b.String()
}

// longest returns the number of keys of the longest request that the nodes have executed.
func (c *rig) longest() (keys int) {
	for _, n := range c.nodes {
		for _, line := range n.executed() {
			words := strings.Fields(line)
			if count := len(words) - 1; words[0] == "MSET" {
				keys = max(keys, count/2)
			} else {
				keys = max(keys, count)
			}
		}
	}
	return keys
}

// A command of many keys is answered as one of few is, in its turn, and no node gets more than maxKeys
// of it at once.
func TestCommandsOfManyKeys(t *testing.T) {
	const n = 5 * maxKeys
	c := newCluster(t, 3)
	cl := c.dial()
	value := func(i int) string { return strconv.Itoa(i % 100) }
	cl.send("SET many:7 before", manyKeys("MSET", n, value), "SET many:9 after", "GET many:7", "GET many:9",
		manyKeys("EXISTS", n, nil))
	cl.want("+OK", "+OK", "+OK", "$1 7", "$5 after", ":"+strconv.Itoa(n))
	cl.send(manyKeys("MGET", n+5, nil), "PING")
	got := strings.Fields(cl.reply())
	if got[0] != "*"+strconv.Itoa(n+5) || len(got) != 1+2*n+5 {
		t.Fatalf("MGET has %d words after %q", len(got), got[0])
	}
	for i := range n {
		want := value(i)
		if i == 9 {
			want = "after"
		}
		if got[2+2*i] != want {
			t.Fatalf("key %d has %q, want %q", i, got[2+2*i], want)
		}
	}
	cl.want("+PONG")
	cl.send("GET many:3", manyKeys("DEL", n+5, nil), "GET many:3", manyKeys("DEL", n, nil))
	cl.want("$1 3", ":"+strconv.Itoa(n), "$-1", ":0")
	cl.send(manyKeys("MSET", n, nil) + " odd")
	cl.want("-ERR wrong number of arguments for 'mset' command")
	if keys := c.longest(); keys > maxKeys {
		t.Errorf("a node got %d keys at once", keys)
	}
	c.wantNothingKept()
}

// TestTurnsOfManyKeys counts what a loop does in a turn.
func TestTurnsOfManyKeys(t *testing.T) {
	const n = 20_000
	c := newCluster(t, 2, oneLoop(t))
	w := c.proxy.workers[0]
	f := func(name string, key func(i int) string, wantTurns int) {
		t.Helper()
		words := []string{name}
		for i := range n {
			words = append(words, key(i))
		}
		sent, done := make(chan *chunked), make(chan bool)
		w.loop.Post(func() {
			s := &client{w: w, state: new(session.State)}
			raw := bytesOf(words...)
			ch := &chunked{longRequest: longRequest{s: s, cmd: command.Lookup([]byte(name)), raw: raw}, step: 1, count: n, left: n,
				atOnce: maxKeys}
			_, ch.next = resp.DecodeArgument(raw, strings.IndexByte(string(raw), '\n')+1)
			ch.lookedTo = ch.next
			sent <- ch
			<-done
		})
		ch := <-sent
		defer close(done)
		turns := 0
		for !ch.apart && ch.looked < n {
			before := ch.looked
			if ch.look(); ch.looked-before > maxKeys {
				t.Errorf("%s looks at %d keys in a turn", name, ch.looked-before)
			}
			turns++
		}
		for ch.apart && ch.left > 0 {
			args, next, _ := ch.cut()
			if len(args)-1 > maxKeys || next-ch.next > chunkBytes {
				t.Errorf("%s sends %d keys in a turn, of %d bytes", name, len(args)-1, next-ch.next)
			}
			ch.next = next
			ch.left -= len(args) - 1
			turns++
		}
		if turns != wantTurns {
			t.Errorf("%s takes %d turns, want %d", name, turns, wantTurns)
		}
	}
	f("DEL", func(i int) string { return "k" + strconv.Itoa(i) }, 1+n/maxKeys+1)
	f("DEL", func(i int) string { return "{k}" + strconv.Itoa(i) }, n/maxKeys+1)
	f("EXISTS", func(i int) string { return strings.Repeat("x", 900) + strconv.Itoa(i) }, 1+70)
}

// What lies in one partition goes as a whole, because it is atomic.
func TestManyKeysOfOnePartition(t *testing.T) {
	for _, size := range []int{1, 400} {
		const n = 3 * maxKeys
		c := newCluster(t, 2, oneLoop(t))
		cl := c.dial()
		var line strings.Builder
		line.WriteString("MSET")
		for i := range n {
			fmt.Fprintf(&line, " {tag}%d %s", i, strings.Repeat("v", size))
		}
		cl.send("SET {tag}0 before", line.String(), "EXISTS {tag}0 {tag}3000")
		cl.want("+OK", "+OK", ":2")
		if keys := c.longest(); keys != n {
			t.Errorf("the longest request has %d keys, want %d", keys, n)
		}
		c.wantNothingKept()
	}
}

// A long value travels alone, and small ones around it too.
func TestManyKeysWithLongValues(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	const n = 18
	long := hugeValue(3 << 20)
	value := func(i int) string {
		return long[:[]int{10, 3 << 20, chunkBytes, hugePair, 100, order.HugeRequest}[i%6]-i%5]
	}
	cl.send(manyKeys("MSET", n, value), "PING")
	cl.want("+OK", "+PONG")
	for i := range n {
		cl.send("GET many:" + strconv.Itoa(i))
		if got := cl.reply(); got != text(value(i)) {
			t.Fatalf("value %d came back as %d other bytes", i, len(got))
		}
	}
	c.wantNothingKept()
}

// While nodes refuse, break off and change places, a command of many keys is executed once for each
// key, between the client's commands before and behind it. The later of two values for a key
// stands.
func TestManyKeysWhileNodesChange(t *testing.T) {
	const n = 3000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newCluster(t, 3, oneLoop(t))
	var refusals atomic.Int32
	for i, node := range c.nodes {
		rng := rand.New(rand.NewPCG(seed, uint64(i))) // under the node's lock
		node.set(func(n *fakeNode) {
			n.refuse = func(string) string {
				if rng.IntN(500) == 0 && refusals.Add(1) < 100 {
					return "-DUNLINWAIT\r\n"
				}
				return ""
			}
		})
	}
	cl := c.dial()
	for round := range 4 {
		value := func(i int) string { return strconv.Itoa(round*n + i) }
		repeats, again, last := "", "MGET", ""
		for i := n / 2; i < n; i += 7 { // in the chunks next to theirs, or the one after
			key := fmt.Sprintf(" many:%d", i)
			repeats += key + " last"
			again += key
			last += " $4 last"
		}
		write := func(cut bool) (replies []string) {
			lines := []string{"SET many:5 before", manyKeys("MSET", n, value) + repeats, "SET many:6 behind", "MGET many:5 many:6 many:2999"}
			cl.send(lines...)
			if cut {
				c.nodes[1].cut()
			}
			for range lines {
				replies = append(replies, cl.reply())
			}
			return replies
		}
		got := write(round == 2)
		if round == 2 && strings.Contains(got[0]+got[1], "outcome unknown") {
			got = write(false) // the node may have executed a later write of the same keys, too
		}
		want := []string{"+OK", "+OK", "+OK", fmt.Sprintf("*3 %s $6 behind %s", text(value(5)), text(value(2999)))}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: got %.300q, want %.300q", round, got, want)
		}
		cl.send(manyKeys("EXISTS", n, nil), again)
		cl.want(":"+strconv.Itoa(n), fmt.Sprintf("*%d%s", strings.Count(last, "last"), last))
	}
	if refusals.Load() == 0 {
		t.Error("no node refused anything")
	}
	c.wantNothingKept()
}

// What fails later does not begin again: the client learns that some of it was executed.
func TestManyKeysFail(t *testing.T) {
	const n = 3000
	c := newCluster(t, 2, oneLoop(t))
	fail := func(name, key string) {
		c.nodes[0].set(func(n *fakeNode) {
			n.answer = func(args []string) (string, bool) {
				for _, a := range args {
					if args[0] == name && a == key {
						return "-OOM no memory\r\n", true
					}
				}
				return "", false
			}
		})
	}
	last := ""
	for i := n - 1; last == ""; i-- {
		if k := "many:" + strconv.Itoa(i); ring.PartitionOf([]byte(k))%2 == 0 {
			last = k
		}
	}
	cl := c.dial()
	value := func(i int) string { return strconv.Itoa(i) }
	fail("mset", last)
	cl.send(manyKeys("MSET", n, value), "PING")
	cl.want("-ERR executed for some keys only: OOM no memory", "+PONG")
	fail("mget", last)
	cl.send(manyKeys("MGET", n, nil), "PING")
	cl.want("-OOM no memory", "+PONG")

	fail("", "")
	cl.send(manyKeys("MSET", n, func(int) string { return strings.Repeat("v", 2000) }))
	cl.want("+OK")
	fail("mget", last)
	cl.send("CLIENT REPLY SKIP", manyKeys("MGET", n, nil), "PING")
	cl.want("+PONG") // nothing of the reply was sent, so nothing of it is missing
	cl.send(manyKeys("MGET", n, nil), "PING")
	all := 0
	buf := make([]byte, 1<<20)
	for {
		got, err := cl.r.Read(buf)
		if all += got; err != nil {
			break // closed, in the middle of the reply
		}
	}
	if all < maxReplyBytes || all > 2000*n {
		t.Errorf("%d bytes came before the end", all)
	}
	c.wantNothingKept()
}

// A client that reads slowly makes the proxy keep little of a long reply, and one that disconnects
// leaves nothing behind.
func TestManyKeysForASlowReader(t *testing.T) {
	const n, size = 4000, 2000
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	cl.send(manyKeys("MSET", n, func(int) string { return strings.Repeat("v", size) }))
	cl.want("+OK")
	cl.send(manyKeys("MGET", n, nil))
	if _, err := cl.r.Peek(1); err != nil {
		t.Fatal(err)
	}
	if got := c.stats().Heap; got > 4*maxReplyBytes {
		t.Errorf("%d bytes of the reply are kept", got)
	}
	if got := len(strings.Fields(cl.reply())); got != 1+2*n {
		t.Errorf("the reply has %d words", got)
	}
	cl.send("CLIENT REPLY SKIP", manyKeys("MGET", n, nil), "PING")
	cl.want("+PONG")
	for range 3 {
		reader, writer := c.dial(), c.dial()
		reader.send(manyKeys("MGET", n, nil))
		if _, err := reader.r.Peek(1); err != nil {
			t.Fatal(err)
		}
		reader.Close()
		writer.send(manyKeys("MSET", n, func(int) string { return strings.Repeat("w", size) }))
		writer.Close()
	}
	c.wantNothingKept()
}

// Pushes wait for the end of a reply that passes on as it comes: they are none of its elements.
func TestPushesWaitForALongReply(t *testing.T) {
	for _, subscribes := range []bool{false, true} {
		c := trackingCluster(t, func(string, string) {}, moveTime(time.Hour))
		cl := c.moves()
		if subscribes {
			cl.send("SUBSCRIBE ch")
			cl.want(">3 $9 subscribe $2 ch :1")
		}
		const n = 4000
		cl.send(manyKeys("MSET", n, func(int) string { return strings.Repeat("v", 2000) }))
		cl.want("+OK")
		gate := make(chan struct{})
		c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
		cl.send(manyKeys("MGET", n, nil))
		// Some chunks of 16 keys, then some of 256 KiB: just enough for the reply to begin. The proxy asks for more when
		// the client's socket has taken of that.
		for range 8 {
			gate <- struct{}{}
		}
		if _, err := cl.r.Peek(1); err != nil {
			t.Fatal(err)
		}
		c.onLoop(func(w *worker) {
			w.clients[0].takeRedirected("k", false)
			w.move(1_700_000_000_000)
		})
		close(gate)
		if got := len(strings.Fields(cl.reply())); got != 1+2*n {
			t.Fatalf("the reply has %d words", got)
		}
		cl.want(">2 $10 invalidate *1 $1 k")
		cl.send("PING")
		cl.wantMoving(3600)
		cl.want("+PONG")
		c.wantNothingKept()
	}
}

// MONITOR shows the beginning of such a command, and a transaction queues it whole.
func TestManyKeysAreShownAndQueued(t *testing.T) {
	const n = 4 * maxKeys
	c := newCluster(t, 2, oneLoop(t))
	cl, monitor := c.dial(), c.dial()
	monitor.send("MONITOR")
	monitor.want("+OK")
	cl.send(manyKeys("DEL", n, nil))
	cl.want(":0")
	if line := monitor.reply(); !strings.HasSuffix(line, fmt.Sprintf(" ... (%d more arguments)", n-2*maxKeys)) {
		t.Errorf("the line ends in %q", line[len(line)-50:])
	}
	line := "MSET"
	for i := range n {
		line += fmt.Sprintf(" {t}%d v", i)
	}
	cl.send("MULTI", line, "EXEC", "EXISTS {t}4000 {t}4095")
	cl.want("+OK", "+QUEUED", "*1 +OK", ":2")
}

// A command in chunks takes no turn while its session cannot enter the lane: others wait for
// theirs.
func TestChunksAskForTheirLane(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w := c.proxy.workers[0]
	gate := make(chan struct{})
	cl := c.dial()
	cl.send("SET many:1 v") // over the common pipe, and what follows over the large one
	cl.want("+OK")
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("GET many:1", manyKeys("EXISTS", 10*maxKeys, nil))
	var long *chunked
	eventually(t, "EXISTS waits", func() (waits bool) {
		w.onLoop(func() {
			long, waits = w.clients[0].long.(*chunked)
			waits = waits && long.apart && !long.queued
		})
		return waits
	})
	w.onLoop(func() {
		if long.goOn(); long.queued {
			t.Error("it takes a turn while GET is outstanding on another lane")
		}
	})
	close(gate)
	cl.want("$1 v", ":1")
}

// onLoop calls f on the worker's loop.
func (w *worker) onLoop(f func()) {
	done := make(chan struct{})
	w.loop.Post(func() {
		defer close(done)
		f()
	})
	<-done
}

// Beside other commands one chunk of a long one is on its way, and else some.
func TestChunksGiveWay(t *testing.T) {
	for come, want := range map[bool]int{false: maxFlying, true: 1} {
		c := newCluster(t, 1, oneLoop(t))
		w := c.proxy.workers[0]
		gate := make(chan struct{})
		c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
		w.onLoop(func() { w.others = others{come: come, looked: w.loop.Now() + time.Hour} })
		cl := c.dial()
		cl.send(manyKeys("EXISTS", 10*maxKeys, nil))
		eventually(t, "chunks are sent", func() (sent bool) {
			w.onLoop(func() {
				long, _ := w.clients[0].long.(*chunked)
				if sent = long != nil && len(long.flying) == want && !long.queued; sent {
					if long.goOn(); long.queued {
						t.Errorf("other commands come: %t, but more than %d chunks are to be sent", come, want)
					}
				}
			})
			return sent
		})
		close(gate)
		cl.want(":0")
	}
}

func TestOthersAreNoticed(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w := c.proxy.workers[0]
	w.onLoop(func() {
		for i, come := range []bool{false, true, true, false, false} {
			if come {
				w.stats.Commands[command.Get]++
			}
			w.others.looked -= othersLook
			if got := w.hasOthers(); got != come {
				t.Errorf("look %d: others come: %t, want %t", i, got, come)
			}
		}
	})
}
