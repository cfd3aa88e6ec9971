package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// streamOf is what XREAD answers of a stream, in RESP2, given its entries: an ID and a value each.
func streamOf(key string, entries ...string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "*2\r\n$%d\r\n%s\r\n*%d\r\n", len(key), key, len(entries)/2)
	for i := 0; i < len(entries); i += 2 {
		id, value := entries[i], entries[i+1]
		fmt.Fprintf(&s, "*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$%d\r\n%s\r\n", len(id), id, len(value), value)
	}
	return s.String()
}

// streamsOf is the reply with several of them.
func streamsOf(streams ...string) string {
	return fmt.Sprintf("*%d\r\n", len(streams)) + strings.Join(streams, "")
}

// TestStreamsApart: XREAD and XREADGROUP name streams of several nodes.
func TestStreamsApart(t *testing.T) {
	t.Parallel()
	c := startPatient(t, 3, 2)
	s := server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}
	admin, other := harness.DialWire(t, s.addr), harness.DialWire(t, c.Proxy(1).Addr)
	for name, f := range map[string]func(*testing.T, server, *harness.Wire, *harness.Wire){
		"read": streamsRead, "groups": streamsGroups, "errors": streamsErrors, "long": streamsLong, "wait": streamsWait,
		"lost": streamsLost, "ends": streamsEnd, "many": streamsMany, "tracked": streamsTracked,
	} {
		t.Run(name, func(t *testing.T) {
			admin.Want("FLUSHALL", "OK")
			f(t, s, admin, other)
			wantBlocked(t, admin, 0)
		})
	}
	t.Run("moves", func(t *testing.T) { streamsMove(t, c, s, admin) })
}

// wantReply checks the bytes of a reply.
func wantReply(t *testing.T, w *harness.Wire, line, want string) {
	t.Helper()
	if got := string(w.Do(line)); got != want {
		t.Errorf("%.80s: got %.300q, want %.300q", line, got, want)
	}
}

// add adds an entry to a stream.
func add(t *testing.T, w *harness.Wire, key, id, value string) {
	t.Helper()
	w.Want(fmt.Sprintf("XADD %s %s f %s", key, id, value), fmt.Sprintf("%q", id))
}

// streamsRead: the reply has the order of the keys, whichever nodes have them.
func streamsRead(t *testing.T, s server, admin, _ *harness.Wire) {
	for i, key := range []string{"a1", "b2", "c3", "d4"} {
		add(t, admin, key, fmt.Sprintf("%d-0", i+1), key)
		add(t, admin, key, "9-0", "9")
	}
	nine := func(key string) string { return streamOf(key, "9-0", "9") }
	wantReply(t, admin, "XREAD STREAMS d4 b2 a1 c3 4 2 1 3", streamsOf(nine("d4"), nine("b2"), nine("a1"), nine("c3")))
	wantReply(t, admin, "XREAD COUNT 1 STREAMS none a1 b2 none2 a1 c3 0 0 9 0 1 2",
		streamsOf(streamOf("a1", "1-0", "a1"), nine("a1"), streamOf("c3", "3-0", "c3")))
	wantReply(t, admin, "XREAD STREAMS a1 b2 none $ 9 0", "*-1\r\n")
	wantReply(t, admin, "XREAD BLOCK 0 STREAMS a1 b2 none $ + 0", streamsOf(nine("b2")))
	wantReply(t, admin, "XREAD BLOCK 0 COUNT 1 STREAMS a1 b2 c3 $ 0 0", streamsOf(streamOf("b2", "2-0", "b2"), streamOf("c3", "3-0", "c3")))
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	wantReply(t, w, "XREAD STREAMS b2 a1 2 9", "%1\r\n"+strings.TrimPrefix(nine("b2"), "*2\r\n"))
	wantReply(t, w, "XREAD STREAMS b2 a1 c3 2 1 3",
		"%3\r\n"+strings.TrimPrefix(nine("b2"), "*2\r\n")+strings.TrimPrefix(nine("a1"), "*2\r\n")+strings.TrimPrefix(nine("c3"), "*2\r\n"))
	wantReply(t, w, "XREAD STREAMS b2 a1 9 9", "_\r\n")
	wantReply(t, w, "XREAD BLOCK 10 STREAMS b2 a1 9 9", "_\r\n")
	w.Send([]byte("XREAD STREAMS b2 a1 9 1\r\nPING\r\nXREAD STREAMS a1 b2 9 9\r\nPING\r\n"))
	for _, want := range []string{"%1\r\n" + strings.TrimPrefix(nine("a1"), "*2\r\n"), "+PONG\r\n", "_\r\n", "+PONG\r\n"} {
		wantNext(t, w, want)
	}
}

// streamsGroups: each stream has its own group, and what was delivered is pending there.
func streamsGroups(t *testing.T, _ server, admin, _ *harness.Wire) {
	keys := []string{"a1", "b2", "c3"}
	for _, key := range keys {
		admin.Want("XGROUP CREATE "+key+" g 0 MKSTREAM", "OK")
		add(t, admin, key, "1-0", key)
	}
	one := streamsOf(streamOf("c3", "1-0", "c3"), streamOf("a1", "1-0", "a1"), streamOf("b2", "1-0", "b2"))
	wantReply(t, admin, "XREADGROUP GROUP g c BLOCK 0 STREAMS c3 a1 b2 > > >", one)
	wantReply(t, admin, "XREADGROUP GROUP g c STREAMS c3 a1 b2 > > >", "*-1\r\n")
	wantReply(t, admin, "XREADGROUP GROUP g c BLOCK 0 STREAMS c3 a1 b2 0 0 0", one)
	wantReply(t, admin, "XREADGROUP GROUP g d BLOCK 0 STREAMS c3 a1 b2 > 0 >", streamsOf(streamOf("a1")))
	for _, key := range keys {
		admin.Want("XACK "+key+" g 1", "(integer) 1")
	}
	add(t, admin, "b2", "2-0", "x")
	wantReply(t, admin, "XREADGROUP GROUP g e NOACK COUNT 1 BLOCK 120000 STREAMS c3 b2 > >", streamsOf(streamOf("b2", "2-0", "x")))
	wantReply(t, admin, "XPENDING b2 g", "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n")
}

// streamsErrors: errors are those of a command whose streams lie together.
func streamsErrors(t *testing.T, _ server, admin, _ *harness.Wire) {
	admin.Want("SET string x", "OK")
	admin.Want("XGROUP CREATE a1 g 0 MKSTREAM", "OK")
	for line, want := range map[string]string{
		"XREAD STREAMS a1 string 0 0":                                                       "-WRONGTYPE",
		"XREAD BLOCK 0 STREAMS a1 string $ $":                                               "-WRONGTYPE",
		"XREAD BLOCK 0 STREAMS a1 b2 $ x":                                                   "-ERR Invalid stream ID",
		"XREAD BLOCK 0 STREAMS a1 b2 $ >":                                                   "-ERR The > ID can be specified only",
		"XREAD BLOCK -1 STREAMS a1 b2 0 0":                                                  "-ERR timeout is negative",
		"XREAD BLOCK x STREAMS a1 b2 0 0":                                                   "-ERR timeout is not an integer",
		"XREAD BLOCK 0 COUNT x STREAMS a1 b2 0 0":                                           "-ERR value is not an integer",
		"XREAD BLOCK 0 STREAMS a1 b2 0":                                                     "-ERR Unbalanced 'xread' list of streams",
		"XREAD STREAMS a1 b2 c3 0 0":                                                        "-ERR Unbalanced 'xread' list of streams",
		"XREAD BLOCK 0 NOACK STREAMS a1 b2 0 0":                                             "-ERR The NOACK option is only supported by XREADGROUP",
		"XREADGROUP GROUP g c STREAMS a1 b2 > >":                                            "-NOGROUP No such key 'b2' or consumer group 'g'",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS a1 b2 > >":                                    "-NOGROUP No such key 'b2' or consumer group 'g'",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS a1 string > >":                                "-WRONGTYPE",
		"XREADGROUP GROUP g c BLOCK 0 STREAMS a1 b2 $ >":                                    "-ERR The $ ID is meaningless",
		"XREADGROUP NOACK NOACK BLOCK 0 STREAMS a1 b2 > >":                                  "-ERR Missing GROUP option",
		"XREADGROUP GROUP g c CLAIM x BLOCK 0 STREAMS a1 b2 > >":                            "-ERR min-idle-time is not an integer",
		"XREAD STREAMS" + strings.Repeat(" a1 b2", 129) + strings.Repeat(" 0", 258):         "-ERR XREAD and XREADGROUP can name at most 256 streams",
		"XREAD BLOCK 0 STREAMS" + strings.Repeat(" a1 b2", 129) + strings.Repeat(" 0", 258): "-ERR a blocking command can name at most 256 keys",
	} {
		if got := string(admin.Do(line)); !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: %q, want %q", line, got, want)
		}
	}
	begun := time.Now()
	if got := string(admin.Do("XREAD BLOCK 200 STREAMS a1 b2 $ $")); got != "*-1\r\n" || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("got %q after %v", got, time.Since(begun))
	}
}

// streamsLong: long replies, which come in pieces.
func streamsLong(t *testing.T, _ server, admin, _ *harness.Wire) {
	long := strings.Repeat("x", 400_000)
	var all []string
	for _, key := range []string{"a1", "b2", "c3"} {
		for i := range 3 {
			admin.Send(fmt.Appendf(nil, "*5\r\n$4\r\nXADD\r\n$2\r\n%s\r\n$1\r\n%d\r\n$1\r\nf\r\n$%d\r\n%s\r\n", key, i+1, len(long), long))
			wantNext(t, admin, fmt.Sprintf("$3\r\n%d-0\r\n", i+1))
		}
		all = append(all, streamOf(key, "1-0", long, "2-0", long, "3-0", long))
		admin.Want("XGROUP CREATE "+key+" g 0", "OK")
	}
	for _, line := range []string{
		"XREAD STREAMS a1 b2 c3 0 0 0", "XREAD BLOCK 0 STREAMS a1 b2 c3 0 0 0",
		"XREADGROUP GROUP g c STREAMS a1 b2 c3 > > >", "XREADGROUP GROUP g c BLOCK 0 STREAMS a1 b2 c3 0 0 0",
	} {
		if got, want := string(admin.Do(line)), streamsOf(all...); got != want {
			t.Errorf("%s: %d bytes, want %d", line, len(got), len(want))
		}
	}
}

// streamsWait: whichever stream gets an entry first. $ is what it was when the command came.
func streamsWait(t *testing.T, s server, admin, other *harness.Wire) {
	keys := []string{"a1", "b2", "c3", "d4"}
	for _, key := range keys {
		add(t, admin, key, "5-0", "old")
		admin.Want("XGROUP CREATE "+key+" g $", "OK")
	}
	for i, key := range keys {
		lines := []string{
			"XREAD BLOCK 0 STREAMS a1 b2 c3 d4 $ $ $ $", "XREADGROUP GROUP g x BLOCK 0 STREAMS a1 b2 c3 d4 > > > >",
			"XREADGROUP GROUP g y BLOCK 0 STREAMS d4 c3 b2 a1 > > > >", "XREADGROUP GROUP g z BLOCK 0 STREAMS " + key + " >",
		}
		var waiting []*harness.Wire
		for i, line := range lines {
			waiting = append(waiting, waiter(t, s, admin, i, line))
			s.wantStanding(t, lines[:i+1]...)
		}
		reads, members := waiting[0], waiting[1:]
		serve := func(n int) (want string) {
			id := fmt.Sprintf("%d-%d", i+6, n)
			add(t, other, key, id, fmt.Sprint(n))
			wantBlocked(t, admin, len(members)-n-1)
			return streamsOf(streamOf(key, id, fmt.Sprint(n)))
		}
		wantInTurn(t, members, serve)
		wantNext(t, reads, streamsOf(streamOf(key, fmt.Sprintf("%d-0", i+6), "0")))
	}
	w := harness.DialWire(t, s.addr)
	w.Send([]byte("XREADGROUP GROUP g c BLOCK 0 CLAIM 200 STREAMS a1 b2 > >\r\n")) // it waits, unless that was long ago
	if got := string(w.Next()); !strings.HasPrefix(got, "*2\r\n*2\r\n$2\r\na1\r\n") && !strings.HasPrefix(got, "*1\r\n*2\r\n$2\r\n") {
		t.Errorf("what is pending for long is answered as %q", got)
	}
}

// streamsLost: who waits in a group is told that it has gone, and who reads waits on.
func streamsLost(t *testing.T, s server, admin, other *harness.Wire) {
	for line, want := range map[string]string{
		"XGROUP DESTROY b2 g": "-NOGROUP No such key 'b2' or consumer group 'g' in XREADGROUP with GROUP option\r\n",
		"DEL b2":              "-NOGROUP No such key 'b2' or consumer group 'g' in XREADGROUP with GROUP option\r\n",
		"SET b2 x":            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
	} {
		admin.Do("DEL b2")
		for _, key := range []string{"a1", "b2"} {
			admin.Do("XGROUP CREATE " + key + " g $ MKSTREAM")
		}
		const group, alone = "XREADGROUP GROUP g c BLOCK 0 STREAMS a1 b2 > >", "XREAD BLOCK 0 STREAMS a1 b2 $ $"
		w, reads := waiter(t, s, admin, 0, group), waiter(t, s, admin, 1, alone)
		s.wantStanding(t, group, alone)
		other.Do(line)
		wantNext(t, w, want)
		other.Do("DEL b2")
		add(t, other, "b2", "1-0", "x")
		wantNext(t, reads, streamsOf(streamOf("b2", "1-0", "x")))
	}
}

// streamsEnd: CLIENT UNBLOCK, and clients that leave.
func streamsEnd(t *testing.T, s server, admin, other *harness.Wire) {
	for option, want := range map[string]string{"": "*-1\r\n", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"} {
		w := harness.DialWire(t, s.addr)
		id := strings.Trim(string(w.Do("CLIENT ID")), ":\r\n")
		w.Send([]byte("XREAD BLOCK 0 STREAMS u1 v2 $ $\r\nPING\r\n"))
		wantBlocked(t, admin, 1)
		admin.Want("CLIENT UNBLOCK "+id+option, "(integer) 1")
		wantNext(t, w, want)
		wantNext(t, w, "+PONG\r\n")
	}
	for _, key := range []string{"u1", "v2"} {
		admin.Want("XGROUP CREATE "+key+" g $ MKSTREAM", "OK")
	}
	gone := waiter(t, s, admin, 0, "XREADGROUP GROUP g c BLOCK 0 STREAMS u1 v2 > >")
	behind := waiter(t, s, admin, 1, "XREADGROUP GROUP g d BLOCK 0 STREAMS v2 >")
	gone.Conn.Close()
	wantBlocked(t, admin, 1)
	add(t, other, "v2", "1-0", "x")
	wantNext(t, behind, streamsOf(streamOf("v2", "1-0", "x")))
}

// streamsMany: each entry goes to one of many clients of a group, and to all that read.
func streamsMany(t *testing.T, s server, admin, other *harness.Wire) {
	const clients = 100
	for i := range 4 {
		admin.Want(fmt.Sprintf("XGROUP CREATE m%d g $ MKSTREAM", i), "OK")
	}
	members, reads := make([]*harness.Wire, clients), make([]*harness.Wire, clients)
	var lines []string
	for i := range clients {
		members[i], reads[i] = harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
		group := fmt.Sprintf("XREADGROUP GROUP g c%d COUNT 1 BLOCK 0 STREAMS m%d m%d > >", i, i%4, (i+1)%4)
		const alone = "XREAD BLOCK 0 COUNT 1 STREAMS m0 m1 m2 m3 $ $ $ $"
		members[i].Send([]byte(group + "\r\n"))
		reads[i].Send([]byte(alone + "\r\n"))
		lines = append(lines, group, alone)
	}
	wantBlocked(t, admin, 2*clients)
	s.wantStanding(t, lines...)
	for i := range 4 * clients {
		other.Send(fmt.Appendf(nil, "XADD m%d %d f v\r\n", i%4, i+1))
	}
	for range 4 * clients {
		other.Next()
	}
	got := make(map[string]bool)
	for i := range clients {
		reads[i].Next()
		for part := range strings.SplitSeq(string(members[i].Next()), "*2\r\n$") {
			if strings.Contains(part, "-0\r\n") {
				if got[part] {
					t.Errorf("%q was delivered twice", part)
				}
				got[part] = true
			}
		}
	}
	if len(got) < clients {
		t.Errorf("%d clients got %d entries", clients, len(got))
	}
}

// streamsTracked: a client that waits for entries is told at once what else it is to forget, and behind what it has
// read to forget that.
func streamsTracked(t *testing.T, s server, admin, other *harness.Wire) {
	for _, line := range []string{"XREAD BLOCK 0 STREAMS a1 $", "XREAD BLOCK 0 STREAMS a1 b2 $ $"} {
		admin.Want("SET k v", "OK")
		w := harness.DialWire(t, s.addr)
		w.Do("HELLO 3")
		w.Do("CLIENT TRACKING ON")
		w.Do("GET k")
		w.Send([]byte(line + "\r\n"))
		wantBlocked(t, admin, 1)
		s.wantStanding(t, line)
		other.Want("SET k w", "OK")
		wantNext(t, w, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")
		other.Do("XADD a1 * f v")
		seen := ""
		for !strings.Contains(seen, "%1\r\n$2\r\na1") || strings.LastIndex(seen, "invalidate\r\n*1\r\n$2\r\na1") < strings.Index(seen, "%1\r\n") {
			seen += string(w.Next()) // or the test's patience ends
		}
		w.Conn.Close()
		wantBlocked(t, admin, 0)
	}
}

// streamsMove: commands that wait go on with the next owners, when a node leaves and when one dies,
// and mean the same $.
func streamsMove(t *testing.T, c *harness.Cluster, s server, admin *harness.Wire) {
	const clients = 60
	var waiting []*harness.Wire
	lines := []string{
		"XREAD BLOCK 120000 STREAMS one:%[1]d $", "XREAD BLOCK 120000 STREAMS two:%[1]d one:%[1]d three:%[1]d $ $ $",
		"XREADGROUP GROUP g c BLOCK 120000 STREAMS one:%[1]d >", "XREADGROUP GROUP g c BLOCK 120000 STREAMS three:%[1]d one:%[1]d > >",
	}
	for i := range clients {
		for _, key := range []string{"one", "two", "three"} {
			admin.Want(fmt.Sprintf("XADD %s:%d 5 f v", key, i), `"5-0"`)
			admin.Want(fmt.Sprintf("XGROUP CREATE %s:%d g $", key, i), "OK")
		}
		w := harness.DialWire(t, s.addr)
		w.Send(fmt.Appendf(nil, lines[i%len(lines)]+"\r\n", i))
		waiting = append(waiting, w)
	}
	wantBlocked(t, admin, clients)
	feed := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			add(t, admin, fmt.Sprintf("one:%d", i), "6-0", fmt.Sprint(i))
		}
		for i := from; i < to; i++ {
			wantNext(t, waiting[i], streamsOf(streamOf(fmt.Sprintf("one:%d", i), "6-0", fmt.Sprint(i))))
		}
		wantBlocked(t, admin, clients-to)
	}
	c.Node(2).Term(harness.ReadyTimeout)
	feed(0, 20)
	c.AwaitCopies(harness.ReadyTimeout) // what a node has that dies before that may be lost
	c.Node(1).Kill()
	c.Converge(harness.ReadyTimeout)
	feed(20, clients)
}
