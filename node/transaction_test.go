package node

import (
	"fmt"
	"math/bits"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// exec sends a transaction in one write and returns the reply to EXEC.
func (c *client) exec(lines ...string) string {
	c.t.Helper()
	return conversation.Text(c.execRaw(lines...))
}

func (c *client) execRaw(lines ...string) []byte {
	c.t.Helper()
	c.send("MULTI")
	for _, line := range lines {
		c.send(line)
	}
	c.send("EXEC")
	c.next()
	for range lines {
		c.next()
	}
	return c.read()
}

// Nobody sees a transaction half done.
func TestTransactionsAreWhole(t *testing.T) {
	n := startNode(t)
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		c := dial(t, n.Addr())
		writers.Go(func() {
			for range 300 {
				if got := c.exec("INCR {t}a", "INCR {t}b", "APPEND {t}c x"); strings.Contains(got, "error") {
					t.Errorf("EXEC answers %s", got)
				}
			}
		})
	}
	for range 2 {
		c := dial(t, n.Addr())
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c.send("MULTI")
				c.send("GET {t}a")
				c.send("GET {t}b")
				c.send("STRLEN {t}c")
				c.send("EXEC")
				for range 4 {
					c.next()
				}
				got := c.next()
				numbers := strings.Fields(strings.NewReplacer(`"`, "", "1)", "", "2)", "", "3)", "", "(integer)", "", "(nil)", "0").Replace(got))
				if len(numbers) != 3 || numbers[0] != numbers[1] || numbers[1] != numbers[2] {
					t.Errorf("half a transaction: %s", got)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	dial(t, n.Addr()).want("GET {t}a", `"600"`)
}

// Compare and set: of those who watched the same value, one succeeds.
func TestWatchedCounters(t *testing.T) {
	n := startNode(t)
	dial(t, n.Addr()).want("SET k 0", "OK")
	var wg sync.WaitGroup
	for range 4 {
		c := dial(t, n.Addr())
		wg.Go(func() {
			for done := 0; done < 100; {
				c.want("WATCH k", "OK")
				v, err := strconv.Atoi(strings.Trim(c.do("GET k"), `"`))
				if err != nil {
					t.Error(err)
					return
				}
				switch got := c.exec(fmt.Sprintf("SET k %d", v+1)); got {
				case "1) OK":
					done++
				case "(nil)":
				default:
					t.Errorf("EXEC answers %s", got)
					return
				}
			}
		})
	}
	wg.Wait()
	dial(t, n.Addr()).want("GET k", `"400"`)
}

// Large values are taken by a transaction as any others.
func TestTransactionWithLargeValues(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(1<<20, 3)
	ones, first := 0, -1
	for i, b := range v {
		if ones += bits.OnesCount8(b); first < 0 && b != 0 {
			first = 8*i + bits.LeadingZeros8(b)
		}
	}
	c.want("MULTI", "OK")
	for _, line := range []string{"SET {k}a BIG", "APPEND {k}a xyz", "SETRANGE {k}a 0 abc", "SET {k}b BIG", "GET {k}b", "BITCOUNT {k}b", "BITOP NOT {k}c {k}b", "SETBIT {k}b 9000000 1", "BITPOS {k}b 1",
		"COPY {k}b {k}d", "RENAME {k}d {k}e", "STRLEN {k}e", "DUMP {k}none"} {
		c.wantBig(line, v, "QUEUED")
	}
	c.send("EXEC")
	if got, want := c.nextBig(v), "1) OK\n2) (integer) 1048579\n3) (integer) 1048579\n4) OK\n5) BIG\n6) (integer) "+fmt.Sprint(ones)+"\n7) (integer) 1048576\n8) (integer) 0\n9) (integer) "+fmt.Sprint(first)+
		"\n10) (integer) 1\n11) OK\n12) (integer) 1125001\n13) (nil)"; got != want {
		t.Errorf("EXEC answers %.200s", got)
	}
	c.want("GETRANGE {k}a 0 2", `"abc"`)
	c.send("DUMP {k}e")
	dump, ok := resp.DecodeBulk(c.read())
	if !ok {
		t.Fatal("DUMP answers no bulk")
	}
	c.want("MULTI", "OK")
	c.wantBig("RESTORE {k}f 0 BIG", dump, "QUEUED")
	c.want("DUMP {k}e", "QUEUED")
	c.send("EXEC")
	if got := c.nextBig(dump); got != "1) OK\n2) BIG" {
		t.Errorf("RESTORE and DUMP answer %.200s", got)
	}
	c.want("GETRANGE {k}a -3 -1", `"xyz"`)
	if pinnedBytes(n) != 0 {
		t.Errorf("%d bytes are pinned", pinnedBytes(n))
	}
}

// heldBy is what a node's connections take.
func heldBy(t *testing.T, n *Node) int64 {
	t.Helper()
	var each [2]int64
	if err := n.cfg.Group.Each(func(l *netloop.Loop) { each[l.Index()] = n.workers[l.Index()].held() }); err != nil {
		t.Fatal(err)
	}
	return each[0] + each[1]
}

// TestLongArgumentsAreQueuedInPlace: a loop that copied them would serve nobody else meanwhile.
func TestLongArgumentsAreQueuedInPlace(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	request := bigRequest(t, "SET k BIG", bigValue(30<<20, 1))
	empty := heldBy(t, n)
	for _, end := range []string{"EXEC", "DISCARD", "RESET", ""} {
		c := dial(t, n.Addr())
		c.want("MULTI", "OK")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.sendRaw(request)
		if got := c.next(); got != "QUEUED" {
			t.Fatalf("SET answers %s", got)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 15<<20 {
			t.Errorf("%d bytes are allocated", after.TotalAlloc-before.TotalAlloc)
		}
		if held := heldBy(t, n) - empty; held < 30<<20 || held > 50<<20 {
			t.Errorf("%d bytes are counted", held)
		}
		if end == "" {
			c.conn.Close()
		} else {
			c.do(end)
		}
		eventually(t, "they are given back", func() bool { return heldBy(t, n)-empty < 8<<20 })
	}
	dial(t, n.Addr()).want("STRLEN k", fmt.Sprintf("(integer) %d", 30<<20))
}

// A queue is bounded, and counts as its connection's memory.
func TestTransactionsAreBounded(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	const tooLarge = "(error) ERR the transaction is too large: 65536 commands and 64 MiB are allowed"
	c.want("MULTI", "OK")
	v := bigValue(30<<20, 1)
	c.wantBig("SET k BIG", v, "QUEUED")
	if got := heldBy(t, n); got < 30<<20 {
		t.Errorf("%d bytes are counted", got)
	}
	c.wantBig("SET k BIG", v, "QUEUED")
	c.sendRaw(bigRequest(t, "SET k BIG", v))
	if got := c.next(); got != tooLarge {
		t.Errorf("the third answers %.100s", got)
	}
	c.want("EXEC", "(error) EXECABORT Transaction discarded because of previous errors.")
	eventually(t, "nothing is counted any more", func() bool { return heldBy(t, n) < 8<<20 })

	c.want("MULTI", "OK")
	var input []byte
	for range 64<<10 + 1 {
		input = append(input, "PING\r\n"...)
	}
	go c.conn.Write(input)
	for range 64 << 10 {
		if got := c.next(); got != "QUEUED" {
			t.Fatalf("PING answers %s", got)
		}
	}
	if got := c.next(); got != tooLarge {
		t.Errorf("one more answers %s", got)
	}
}

// Watched keys are bounded, and count as their connection's memory.
func TestWatchedKeysAreBounded(t *testing.T) {
	forOneClient(t)
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	key := strings.Repeat("k", 60_000)
	watched := 0
	for ; watched < 2000; watched++ {
		c.sendArgs([]byte("WATCH"), []byte(key))
		if got := c.next(); got == "(error) ERR the transaction is too large: 65536 commands and 64 MiB are allowed" {
			break
		} else if got != "OK" {
			t.Fatalf("WATCH answers %s", got)
		}
		if watched == 200 && heldBy(t, n) < 200*int64(len(key)) {
			t.Errorf("%d bytes are counted", heldBy(t, n))
		}
	}
	if watched > 64<<20/len(key) || watched < 60<<20/len(key) {
		t.Errorf("%d keys of %d bytes are watched", watched, len(key))
	}
	c.want("UNWATCH", "OK")
	c.want("WATCH "+key, "OK")
}

// One value asked for many times is not answered without bounds; all is executed nevertheless.
func TestTransactionRepliesAreBounded(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	c.patience = time.Minute                      // for 64 MiB, which take long under the race detector
	for _, size := range []int{60_000, 1 << 20} { // copied, and pinned
		c.wantBig("SET {k} BIG", bigValue(size, 3), "OK")
		c.want("SET {k}n 0", "OK")
		fit := exec.MaxReply / (size + len("$60000\r\n\r\n"))
		var lines []string
		for range 2 * fit {
			lines = append(lines, "GET {k}", "INCR {k}n")
		}
		reply := c.execRaw(lines...)
		var large, short, refused int
		count, header, _ := resp.DecodeArray(reply)
		var scan resp.Scanner
		for rest := reply[header:]; scan.Scan(rest) == resp.Done && len(rest) > 0; rest = rest[scan.Len():] {
			switch {
			case scan.Len() > size:
				large++
			case rest[0] == ':':
				short++
			case string(rest[:scan.Len()]) == "-"+errRepliesTooLarge+"\r\n":
				refused++
			}
		}
		if count != len(lines) || short != 2*fit || large > fit || large < fit-1 || large+refused != 2*fit {
			t.Errorf("%d replies, %d large, %d refused, %d short ones; %d large ones fit", count, large, refused, short, fit)
		}
		c.want("GET {k}n", fmt.Sprintf("%q", strconv.Itoa(2*fit)))
	}
	eventually(t, "nothing is pinned", func() bool { return pinnedBytes(n) == 0 })
}

// DUNLIN EXEC and WATCH, as a proxy says them.
func TestTransactionsOfProxies(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	p := openPipeTo(t, n, 7, 0, "common", 1, 2)
	slot := strconv.Itoa(int(ring.Slot([]byte("k"))))
	request := func(line string) []byte { return resp.AppendRequest(nil, words(t, line)...) }
	exec := func(slot, watched string, rest ...[]byte) string {
		args := [][]byte{[]byte("DUNLIN"), []byte("EXEC"), []byte(slot), []byte(watched)}
		p.sendArgs(append(args, rest...)...)
		return p.next()
	}
	versions := func(line string) [][]byte {
		p.send(line)
		reply := p.read()
		count, header, ok := resp.DecodeArray(reply)
		if !ok || count != 2 {
			t.Fatalf("%s answers %q", line, reply)
		}
		var scan resp.Scanner
		scan.Scan(reply[header:])
		first, _ := resp.DecodeBulk(reply[header : header+scan.Len()])
		second, _ := resp.DecodeBulk(reply[header+scan.Len():])
		return [][]byte{first, second}
	}
	k, other := []byte("k"), []byte("{k}other")
	if got := exec(slot, "0", request("SET k 1"), request("INCR k")); got != "1) OK\n2) (integer) 2" {
		t.Errorf("EXEC answers %s", got)
	}
	v := versions("DUNLIN WATCH k {k}other")
	if got := exec(slot, "2", k, v[0], other, v[1], request("GET k")); got != `1) "2"` {
		t.Errorf("EXEC of unchanged keys answers %s", got)
	}
	p.want("SET {k}other 1", "OK")
	if got := exec(slot, "2", k, v[0], other, v[1], request("SET k never")); got != "(nil)" {
		t.Errorf("EXEC with a changed key answers %s", got)
	}
	for name, got := range map[string]string{
		"no slot":         exec("x", "0"),
		"a slot too far":  exec("16384", "0"),
		"no count":        exec(slot, "-1"),
		"too few watched": exec(slot, "1", k),
		"another slot":    exec("1", "0", request("GET k")),
		"two slots":       exec(slot, "0", request("GET k"), request("GET j")),
		"half a request":  exec(slot, "0", request("GET k")[:8]),
		"two requests":    exec(slot, "0", append(request("GET k"), request("GET k")...)),
		"unknown":         exec(slot, "0", request("NOSUCH k")),
		"arity":           exec(slot, "0", request("GET")),
		"all keys":        exec(slot, "0", request("FLUSHALL")),
		"no key":          exec(slot, "0", request("PING")),
		"inside another":  exec(slot, "0", request("DUNLIN EXEC 1 0")),
	} {
		if got != "(error) "+errBadExec {
			t.Errorf("%s: %s", name, got)
		}
	}
	p.want("DUNLIN WATCH k j", "(error) "+errCrossSlot)
	p.want("GET k", `"2"`)

	p.wantBig("SET k BIG", bigValue(1<<20, 1), "OK")
	if got := exec(slot, "0", request("GET k"), request("STRLEN k")); !strings.HasPrefix(got, "(error) DUNLINLARGE ") {
		t.Errorf("a large reply is %.100s", got)
	}
}

// What a node says of a key holds for as long as it owns the partition without a break.
func TestWatchEndsWithOwnership(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("WATCH k", "OK")
	p := ring.PartitionOf([]byte("k"))
	giveAway(n, p)
	moved := fmt.Sprintf("(error) MOVED %d 127.0.0.1:1", ring.Slot([]byte("k")))
	if got := dial(t, n.Addr()).do("WATCH k"); got != moved {
		t.Errorf("WATCH answers %s, want %s", got, moved)
	}
	if got := c.exec("GET k"); got != moved {
		t.Errorf("EXEC answers %s, want %s", got, moved)
	}
}
