package proxy

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// A long transaction is divided in turns, and executed like a short one.
func TestLongTransaction(t *testing.T) {
	const n, words = 3*maxKeys + 7, 15 * maxKeys
	crossing := "-CROSSSLOT Keys in request don't hash to the same slot"
	for _, f := range []func(*Config){func(*Config) {}, relaxed} {
		c := newCluster(t, 2, oneLoop(t), f)
		lenient := c.proxy.cfg.RelaxedMulti
		cl := c.dial()
		var turns atomic.Int64 // behind which another one waits
		w := c.proxy.workers[0]
		w.loop.Post(func() { w.loop.OnIterationEnd(func() { turns.Add(int64(len(w.turns.waiting))) }) })
		exec := func(wantTurns int, want string, lines ...string) {
			t.Helper()
			turns.Store(0)
			cl.send(append(append([]string{"MULTI"}, lines...), "EXEC", "GET {k}after")...)
			cl.want("+OK")
			for range lines {
				cl.want("+QUEUED")
			}
			if got := cl.reply(); got != want {
				t.Errorf("EXEC answers %.80q, want %.80q", got, want)
			}
			cl.want("$-1")
			if got := int(turns.Load()); got < wantTurns {
				t.Errorf("%d turns, want %d", got, wantTurns)
			}
		}
		lines, want := []string{}, "*"+strconv.Itoa(n+1)+" +PONG"
		for i := range n {
			lines = append(lines, "INCR {k}n")
			want += " :" + strconv.Itoa(i+1)
		}
		exec(2*n/maxKeys, want, append([]string{"PING"}, lines...)...)
		del := ofSlot("DEL", words)
		exec(2*words/maxKeys, "*3 +OK :1 +PONG", "SET {k}7 v", del, "PING")
		cl.send(ofSlot("WATCH", n))
		cl.want("+OK")
		exec(2*words/maxKeys, "*2 +OK :1", "SET {k}7 v", del)
		if lenient {
			exec(words/maxKeys, "*2 +OK :1", "SET far v", del+" far")
		} else {
			exec(0, crossing, "SET far v", del+" far")
			exec(0, crossing, append(lines, "GET far")...)
		}
		cl.send("EXISTS far", "MULTI", "PING", "EXEC")
		cl.want(":0", "+OK", "+QUEUED", "*1 +PONG")
		cl.send(ofSlot("WATCH", 20*maxKeys), "WATCH far")
		cl.want("+OK", "+OK")
		exec(0, crossing)
		for _, size := range []int{600_000, 5_000_000} { // divided on the loop, and in a goroutine
			large := strings.Repeat("v", size)
			exec(0, fmt.Sprintf("*2 +OK $%d %s", len(large), large), "SET {k}l "+large, "GET {k}l")
			cl.send("WATCH {k}l")
			cl.want("+OK")
			exec(0, "*2 +OK +OK", "SET {k}l "+large, "UNWATCH")
			if lenient {
				exec(0, "*2 +OK +OK", "SET {k}l "+large, "SET far "+large)
				cl.send("DEL far")
				cl.want(":1")
			} else {
				exec(0, crossing, "SET {k}l "+large, "SET far "+large)
			}
			for _, end := range []string{"PING", "EXEC", "DISCARD", "RESET"} {
				gone := c.dial()
				gone.send("MULTI", del, "SET {k}l "+large, end)
				gone.Close()
			}
		}
		c.wantNothingKept()
	}
}

// TestLongArgumentsAreQueuedInPlace: a loop that copied them would serve nobody else meanwhile.
func TestLongArgumentsAreQueuedInPlace(t *testing.T) {
	c := newCluster(t, 1)
	c.level = ring.ScriptsLevel
	c.route(func(int) int { return 0 })
	cl := c.dial()
	cl.send("MULTI")
	cl.want("+OK")
	var before, after runtime.MemStats
	for _, line := range []string{"SET k ", "EVAL return 1 k "} {
		request := bytesOf(strings.Fields(line + strings.Repeat("v", 24<<20))...)
		runtime.ReadMemStats(&before)
		if _, err := cl.Write(request); err != nil {
			t.Fatal(err)
		}
		cl.want("+QUEUED")
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 12<<20 {
			t.Errorf("%s...: %d bytes are allocated", line, after.TotalAlloc-before.TotalAlloc)
		}
	}
	cl.Close()
	c.wantNothingKept()
}

// TestDividers: few of them compute at a time, and one that panics gives its place back.
func TestDividers(t *testing.T) {
	l := newGroup(t, 1).Loops()[0]
	d := newDividers(slog.New(slog.DiscardHandler))
	var now, most, panics, whole atomic.Int64
	for i := range 50 {
		d.Go(l, func() {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			runtime.Gosched()
			if i%5 == 0 {
				panic("of a test")
			}
		}, func(panicked bool) {
			if panicked {
				panics.Add(1)
			} else {
				whole.Add(1)
			}
		})
	}
	d.all.Wait()
	eventually(t, "all are back", func() bool { return panics.Load() == 10 && whole.Load() == 40 })
	if int(most.Load()) > cap(d.places) {
		t.Errorf("%d compute at a time, in %d places", most.Load(), cap(d.places))
	}
}

// TestTurnsOfLongTransaction counts what a loop divides in a turn: words and bytes.
func TestTurnsOfLongTransaction(t *testing.T) {
	long, value := 3*maxKeys/2, strings.Repeat("v", chunkBytes/16)
	var values []string
	for range 10 * 16 {
		values = append(values, "SET {k} "+value)
	}
	far := ofSlot("DEL far", long)
	for name, f := range map[string]struct {
		watched int // pieces
		lines   []string
		turns   int // at least
	}{
		"values":           {0, values, 10},
		"one of values":    {0, []string{"MSET" + strings.Repeat(" {k} "+strings.Repeat("v", 2<<10), maxKeys)}, 8},
		"in several slots": {0, []string{far, far, far, far}, 4},
		"watched keys":     {5, nil, 5},
		"long ones":        {5, nil, 5},
	} {
		c := newCluster(t, 2, oneLoop(t), relaxed)
		w := c.proxy.workers[0]
		done := make(chan bool)
		w.loop.Post(func() {
			defer close(done)
			tx := &session.Transaction{}
			for range f.watched {
				e := session.Encoded{Keys: maxKeys}
				if name == "long ones" {
					e = session.Encoded{Keys: 1, Text: make([]byte, chunkBytes)}
				}
				tx.Encoded = append(tx.Encoded, e)
			}
			for _, line := range f.lines {
				words := strings.Fields(line)
				tx.Queue = append(tx.Queue, session.Queued{Cmd: command.Lookup([]byte(words[0])), Args: argsOf(bytesOf(words...))})
			}
			s := &client{w: w}
			x := &executing{s: s, tx: tx, t: s.newTransaction(tx)}
			turns := 0
			for ; !x.divided; turns++ {
				x.words = 0
				if !x.divide() {
					t.Errorf("%s: the transaction is refused", name)
					return
				}
			}
			for i := range x.t.parts { // as it is, and not copied
				p := &x.t.parts[i]
				if end := last(p.body); end != last(p.request()) {
					t.Errorf("%s: the request of a part is copied", name)
				}
			}
			if turns < f.turns {
				t.Errorf("%s: %d turns, want %d", name, turns, f.turns)
			}
		})
		<-done
	}
}

func last(b []byte) *byte { return &b[len(b)-1] }

// What the proxy answers itself of a transaction takes turns as well, and its replies are charged until
// the client has them.
func TestSlowCommandsOfATransaction(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w, cl := c.proxy.workers[0], c.dial()
	cl.send("COMMAND DOCS")
	text := cl.reply()
	if got := int(reflect.TypeFor[entry]().Size()); got != entrySize {
		t.Errorf("an entry takes %d bytes, want %d", got, entrySize)
	}
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	var size, longest atomic.Int64 // bytes: of one reply, and of those that were made in an iteration
	before := 0
	w.loop.Post(func() {
		s := w.clients[0]
		docs := argsOf(bytesOf("COMMAND", "DOCS"))
		size.Store(int64(len(s.executeHere(command.Row(docs), docs, 0))))
		w.loop.OnIterationEnd(func() {
			longest.Store(max(longest.Load(), int64(s.gathered-before)))
			before = s.gathered
		})
	})
	const count = 20
	cl.send("MULTI", "GET k")
	cl.want("+OK", "+QUEUED")
	for range count {
		cl.send("COMMAND DOCS")
		cl.want("+QUEUED")
	}
	cl.send("EXEC")
	eventually(t, "the replies are charged", func() bool { return c.stats().Heap >= count*size.Load() })
	if got, most := longest.Load(), size.Load()+chunkBytes; got > most {
		t.Errorf("an iteration makes %d bytes of replies, want at most %d", got, most)
	}
	close(gate)
	if got := cl.reply(); got != fmt.Sprintf("*%d $-1%s", count+1, strings.Repeat(" "+text, count)) {
		t.Errorf("EXEC answers %d bytes", len(got))
	}
	c.wantNothingKept()
}

// stuck is a command whose turn panics.
type stuck struct{ chunked }

func (*stuck) turn() { panic("as asked") }

// A panic in a turn closes the session whose turn it was, and no other one.
func TestPanicInATurn(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w, cl := c.proxy.workers[0], c.dial()
	cl.send("PING")
	cl.want("+PONG")
	w.loop.Post(func() {
		s := w.clients[0]
		l := &stuck{chunked{longRequest: longRequest{s: s}}}
		s.issue()
		s.long = l
		w.turns.take(w.loop, l)
	})
	cl.wantClosed()
	other := c.dial()
	other.send(manyKeys("MSET", 2*maxKeys, func(int) string { return "v" }), "GET many:1")
	other.want("+OK", "$1 v")
	c.wantNothingKept()
}
