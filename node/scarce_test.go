package node

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lookForMemory does what each loop does every second.
func lookForMemory(t *testing.T, n *Node) {
	t.Helper()
	if err := n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].closeSilent() }); err != nil {
		t.Fatal(err)
	}
}

// stopTimers has the loops look at nothing on their own.
func stopTimers(t *testing.T, n *Node) {
	t.Helper()
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for _, timer := range n.workers[l.Index()].timers {
			timer.Stop()
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSlowReadersGiveWay: when a large value finds no memory, clients are closed that hold it by
// reading a pinned value slowly, or not at all.
func TestSlowReadersGiveWay(t *testing.T) {
	n := startNode(t)
	c, pinned, wanted := dial(t, n.Addr()), bigValue(40<<20, 1), bigValue(30<<20, 2)
	c.wantBig("SET k BIG", pinned, "OK")
	slow := slowClient(t, n, []byte("GET k\r\n"))
	for range 3 {
		lookForMemory(t, n)
	}
	if pinnedBytes(n) == 0 {
		t.Fatal("it is closed though nobody wants its memory")
	}
	c.wantBig("SET mine BIG", wanted, "(error) "+exec.ErrOOM)
	eventually(t, "it is closed", func() bool {
		lookForMemory(t, n)
		return pinnedBytes(n) == 0
	})
	c.wantBig("SET mine BIG", wanted, "OK")
	if got, _ := io.Copy(io.Discard, slow.conn); got >= int64(len(pinned)) {
		t.Errorf("%d bytes came", got)
	}
	if st, err := n.Stats(); err != nil || st.SlowReaders != 1 {
		t.Errorf("%d slow readers are counted, error %v", st.SlowReaders, err)
	}
}

// TestPaceIsOfOneValue: who sends one large value after another at full speed does not crawl,
// wherever in them the looks find it.
func TestPaceIsOfOneValue(t *testing.T) {
	cn, s := new(conn), scarcity{scarce: true}
	defer func() {
		if r := recover(); r != nil { // it has no socket to close
			t.Errorf("it is closed: %v", r)
		}
	}()
	for range 3 {
		for _, came := range []int{40_000, 50_000} {
			cn.Upload = &exec.Upload{Came: came, Left: 100_000 - came}
			s.look(cn)
		}
	}
}

// TestTicketsGiveWay: tickets hold memory as well. A proxy that stops fetching finds that its
// ticket has ended; one that goes on keeps it.
func TestTicketsGiveWay(t *testing.T) {
	n := startNode(t)
	stopTimers(t, n)
	common, fetch := openPipeTo(t, n, 7, 0, "common", 1, 2), openPipeTo(t, n, 7, 1, "fetch", 1, 2)
	common.wantBig("SET k BIG", bigValue(40<<20, 1), "OK")
	var tickets [3]uint64
	const crawls, steady, waits = 0, 1, 2
	// Nothing moves on the pipe of the one that waits, which would spare it.
	other := openPipeTo(t, n, 8, 0, "common", 1, 2)
	for i, pipe := range []*client{crawls: common, steady: common, waits: other} {
		tickets[i], _ = pipe.ticketFor("GET k")
	}
	const piece = 128 << 10
	open := func(i, from int) bool {
		fetch.send(fmt.Sprintf("DUNLIN FETCH %d %d %d", tickets[i], from, piece))
		return bytes.HasPrefix(fetch.read(), []byte("$"))
	}
	if !open(crawls, 0) {
		t.Fatal("no first piece")
	}
	dial(t, n.Addr()).wantBig("SET mine BIG", bigValue(30<<20, 2), "(error) "+exec.ErrOOM)
	for i := range patientLooks {
		for j := range 5 {
			if !open(steady, (5*i+j)*piece*6) {
				t.Fatalf("look %d: the ticket has ended that is being fetched", i)
			}
		}
		lookForMemory(t, n)
	}
	if open(crawls, piece) {
		t.Error("the ticket is there that is not fetched any more")
	}
	if !open(steady, 40<<20-piece) {
		t.Error("the ticket has ended that was fetched")
	}
	lookForMemory(t, n)
	if open(waits, 0) {
		t.Error("the ticket is there that nobody fetches")
	}
	if !open(steady, 0) {
		t.Error("the ticket has ended that was fetched to its end")
	}
}

// TestSlowReaderIsTold: a client that was sent nothing yet of a large value gets an error in its
// place, and goes on.
func TestSlowReaderIsTold(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, wanted := dial(t, n.Addr()), bigValue(30<<20, 2)
	c.wantBig("SET k BIG", bigValue(40<<20, 1), "OK")
	small := bytes.Repeat([]byte{'s'}, 60_000)
	c.sendArgs([]byte("SET"), []byte("m"), small)
	c.next()
	slow := dial(t, n.Addr())
	slow.conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	asked, w := 0, n.workers[0]
	state := func() (executed, queued int) {
		done := make(chan struct{})
		w.loop.Post(func() {
			for cn := range w.conns {
				queued = max(queued, cn.Socket.Queued())
			}
			executed = int(w.Count.Commands[command.Get])
			close(done)
		})
		<-done
		return executed, queued
	}
	for full := false; !full; { // the kernel takes no more
		slow.send("GET m")
		asked++
		eventually(t, "GET is executed", func() bool {
			executed, _ := state()
			return executed == asked
		})
		_, queued := state()    // behind the flush
		full = queued > 512<<10 // it may take a little more, but not all that
	}
	slow.send("GET k")
	slow.send("PING")
	eventually(t, "a pin is held", func() bool { return pinnedBytes(n) > 0 })
	c.wantBig("SET mine BIG", wanted, "(error) "+exec.ErrOOM)
	eventually(t, "it gives way", func() bool {
		lookForMemory(t, n)
		return pinnedBytes(n) == 0
	})
	c.wantBig("SET mine BIG", wanted, "OK")
	for range asked {
		if got := slow.nextBig(small); got != "BIG" {
			t.Fatalf("GET m answers %.50s", got)
		}
	}
	for _, want := range []string{"(error) " + exec.ErrReplyLost, "PONG"} {
		if got := slow.next(); got != want {
			t.Errorf("got %.80s, want %s", got, want)
		}
	}
}

// TestStalledRequestsGiveWay: when buffers find no memory, clients are closed whose long requests of small arguments do
// not come.
func TestStalledRequestsGiveWay(t *testing.T) {
	n := startLimited(t, 16<<20, "allkeys")
	stopTimers(t, n)
	request := mSetRequest("half", 1000)
	for range 3 {
		dial(t, n.Addr()).sendRaw(request[:len(request)-10])
	}
	half := int64(3*len(request)) - 100
	outside := func() int64 { return n.engine.Stats().Outside }
	eventually(t, "they have come", func() bool { return outside() > half })
	for range 3 {
		lookForMemory(t, n)
	}
	if outside() < half {
		t.Fatal("they are closed though nobody wants their memory")
	}
	big := dial(t, n.Addr())
	go big.conn.Write(mSetRequest("big", 7000)) // fails when the node closes
	eventually(t, "they are closed", func() bool {
		lookForMemory(t, n)
		return outside() < half/2
	})
	mine := dial(t, n.Addr())
	mine.sendRaw(mSetRequest("mine", 4000))
	if got := mine.next(); got != "OK" {
		t.Errorf("then MSET answers %s", got)
	}
}

// TestPinsLeaveRoom: those who read large values, and do not go on, do not pin what others' small values need. Who would
// gets an error in place of the reply. Of others' replies, short values are copied.
func TestPinsLeaveRoom(t *testing.T) {
	const (
		large, long   = 36, 2 << 20 // a socket takes less than one of them
		medium, short = 100, 100_000
	)
	for _, x := range []struct {
		set, command, behind string
		id                   command.ID
		refusal              string
	}{
		{"SET", "GET", "", command.Get, exec.ErrPinned},
		{"SET", "GETDEL", "", command.GetDel, exec.ErrReplyLost},
		{"SET", "MGET", "", command.MGet, exec.ErrPinned},
		{"RPUSH", "LRANGE", " 0 -1", command.LRange, exec.ErrPinned},
		{"RPUSH", "BLPOP", " 0", command.BLPop, exec.ErrReplyLost},
	} {
		t.Run(x.command, func(t *testing.T) {
			n := startLeveled(t, func(c *Config) { c.Memory, c.Eviction, c.StallLimit = 128<<20, "allkeys", time.Hour })
			stopTimers(t, n)
			buffers := n.engine.MaxBytes() / connShare * 3 / 4
			if !n.engine.Charge(buffers) { // what clients' connections may have
				t.Fatal("no memory for the buffers")
			}
			defer n.engine.Refund(buffers)
			c := dial(t, n.Addr())
			set := func(i int) {
				c.sendRaw(bigRequest(t, fmt.Sprintf("%s large:%d BIG", x.set, i), bigValue(long, byte(i))))
				if got := c.read(); resp.IsError(got) {
					t.Fatalf("%s answers %s", x.set, got)
				}
			}
			names := ""
			for i := range medium {
				c.wantBig(fmt.Sprintf("SET medium:%d BIG", i), bigValue(short, byte(i)), "OK")
				names += fmt.Sprint(" medium:", i)
			}
			executed := func(id command.ID) uint64 {
				st, err := n.Stats()
				if err != nil {
					t.Fatal(err)
				}
				return st.Commands[id]
			}
			reader := func(id command.ID, line string) *client {
				before := executed(id)
				r := dial(t, n.Addr())
				r.conn.(*net.TCPConn).SetReadBuffer(32 << 10)
				r.send(line)
				eventually(t, "it is executed", func() bool { return executed(id) > before })
				return r
			}
			waits := x.id == command.BLPop
			for i := range large {
				if !waits {
					set(i)
				}
			}
			reader(command.MGet, "MGET large:0"+names)
			for i := range large {
				keys := fmt.Sprint(" large:", i)
				if x.id == command.MGet {
					keys = strings.Repeat(keys, exec.MaxReply/long-1) // of which the first alone takes memory
				}
				r := reader(x.id, x.command+keys+x.behind)
				if waits {
					set(i)
				}
				if i < large-1 {
					continue
				}
				head := make([]byte, len(x.refusal)+1)
				if _, err := io.ReadFull(r.conn, head); err != nil || string(head) != "-"+x.refusal {
					t.Errorf("the last reader gets %q, error %v", head, err)
				}
			}
			mine := bigValue(short, 99)
			c.wantBig("SET mine BIG", mine, "OK")
			c.wantBig("RPUSH mines BIG", mine, "(integer) 1")
			for _, line := range []string{"GET mine", "LINDEX mines 0", "LPOP mines"} {
				c.send(line)
				if got := c.nextBig(mine); got != "BIG" {
					t.Errorf("%s answers %.100s", line, got)
				}
			}
			for i := range 2000 {
				length := []int{10, 100, 1000, 10_000, 30_000}[i%5]
				if c.want(fmt.Sprintf("SET small:%d %s", i, strings.Repeat("v", length)), "OK"); t.Failed() {
					break
				}
			}
		})
	}
}
