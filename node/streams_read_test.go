package node

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// addEntries adds entries to a stream, from an ID on.
func addEntries(t testing.TB, c *client, key string, from, n int, fields string) {
	t.Helper()
	var requests []byte
	for i := range n {
		requests = resp.AppendRequest(requests, words(t, fmt.Sprintf("XADD %s %d %s", key, from+i, fields))...)
	}
	c.sendRaw(requests)
	for range n {
		if got := c.next(); strings.HasPrefix(got, "(error)") {
			t.Fatal(got)
		}
	}
}

// bytesOf returns the bytes of a reply.
func (c *client) bytesOf(line string) string {
	c.send(line)
	return string(c.read())
}

// readOf is how XREAD and XREADGROUP answer what XRANGE has answered for the same entries.
func readOf(key, entries string) string {
	return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n%s", len(key), key, entries)
}

// sameBytes checks two long replies.
func sameBytes(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d bytes, want %d; they differ at %d: %.80q, want %.80q", what, len(got), len(want), at, got[at:], want[at:])
}

// TestLongReads: what takes a pin, or several runs, is answered whole.
func TestLongReads(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const entries = 15_000
	addEntries(t, c, "{s}a", 1, entries, "field value number 12345 text 0123456789012345678901234567890123456789")
	addEntries(t, c, "{s}b", 1, 10, "f v")
	addEntries(t, c, "{s}c", 1, entries/2, "f v g w")
	a, b, all := c.bytesOf("XRANGE {s}a - +"), c.bytesOf("XRANGE {s}b - +"), c.bytesOf("XRANGE {s}c - +")
	some := c.bytesOf("XRANGE {s}a (7000 + COUNT 3000")
	sameBytes(t, "XREAD of one", c.bytesOf("XREAD STREAMS {s}a 0"), "*1\r\n"+readOf("{s}a", a))
	sameBytes(t, "XREAD of some", c.bytesOf("XREAD COUNT 3000 STREAMS {s}a 7000"), "*1\r\n"+readOf("{s}a", some))
	sameBytes(t, "XREAD of several", c.bytesOf("XREAD STREAMS {s}b {s}a {s}none {s}b {s}c {s}b 0 0 0 5 0 9"),
		"*5\r\n"+readOf("{s}b", b)+readOf("{s}a", a)+readOf("{s}b", c.bytesOf("XRANGE {s}b (5 +"))+readOf("{s}c", all)+
			readOf("{s}b", c.bytesOf("XRANGE {s}b (9 +")))
	for _, key := range []string{"{s}a", "{s}b", "{s}c"} {
		c.do("XGROUP CREATE " + key + " g 0")
	}
	sameBytes(t, "XREADGROUP of several", c.bytesOf("XREADGROUP GROUP g x STREAMS {s}b {s}a {s}c > > >"),
		"*3\r\n"+readOf("{s}b", b)+readOf("{s}a", a)+readOf("{s}c", all))
	sameBytes(t, "XREADGROUP again", c.bytesOf("XREADGROUP GROUP g x BLOCK 1 STREAMS {s}b {s}a {s}c > > >"), "*-1\r\n")
	sameBytes(t, "history", c.bytesOf("XREADGROUP GROUP g x STREAMS {s}a {s}c 0 0"), "*2\r\n"+readOf("{s}a", a)+readOf("{s}c", all))
	sameBytes(t, "some history", c.bytesOf("XREADGROUP GROUP g x COUNT 3000 STREAMS {s}a 7000"), "*1\r\n"+readOf("{s}a", some))
	if got := c.do("XPENDING {s}a g"); !strings.HasPrefix(got, fmt.Sprintf("1) (integer) %d\n", entries)) {
		t.Errorf("pending is %s", got)
	}
	c.do("MULTI")
	c.do("XGROUP SETID {s}a g 0")
	c.do("XREAD STREAMS {s}a {s}b 0 0")
	c.do("XREADGROUP GROUP g y NOACK STREAMS {s}a >")
	sameBytes(t, "in a transaction", c.bytesOf("EXEC"),
		"*3\r\n+OK\r\n*2\r\n"+readOf("{s}a", a)+readOf("{s}b", b)+"*1\r\n"+readOf("{s}a", a))
	got := c.do(`EVAL "local r = redis.call('XREADGROUP', 'GROUP', 'g', 'z', 'STREAMS', KEYS[1], '0') redis.call('XGROUP', 'SETID', KEYS[1], 'g', '0') return {#r[1][2], #redis.call('XREADGROUP', 'GROUP', 'g', 'z', 'STREAMS', KEYS[1], '>')[1][2], #redis.call('XREAD', 'STREAMS', KEYS[1], 0)[1][2]}" 1 {s}a`)
	if want := fmt.Sprintf("1) (integer) 0\n2) (integer) %d\n3) (integer) %d", entries, entries); got != want {
		t.Errorf("a script gets %s", got)
	}
}

// TestLongEntriesRead: entries with very many fields, and long ones, are answered whole.
func TestLongEntriesRead(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	long := strings.Repeat("x", 1<<20)
	for i, fields := range []int{1, 30_000, 2} {
		args := [][]byte{[]byte("XADD"), []byte("s"), strconv.AppendInt(nil, int64(i+1), 10)}
		for f := range fields {
			args = append(args, fmt.Appendf(nil, "field%d", f), []byte("v"))
		}
		c.sendArgs(append(args, []byte("long"), []byte(long))...)
		c.wantNext(fmt.Sprintf(`"%d-0"`, i+1))
	}
	c.do("XGROUP CREATE s g 0")
	want := "*1\r\n" + readOf("s", c.bytesOf("XRANGE s - +"))
	sameBytes(t, "XREAD", c.bytesOf("XREAD STREAMS s 0"), want)
	sameBytes(t, "XREADGROUP", c.bytesOf("XREADGROUP GROUP g x STREAMS s >"), want)
	sameBytes(t, "history", c.bytesOf("XREADGROUP GROUP g x STREAMS s 0"), want)
	c.do("XCLAIM s g x 0 1 2 3 TIME 1 JUSTID")
	if got := c.bytesOf("XREADGROUP GROUP g y CLAIM 1000 STREAMS s >"); len(got) < len(want) || strings.Count(got, long) != 3 {
		t.Errorf("CLAIM answers %d bytes, and %d long strings", len(got), strings.Count(got, long))
	}
	w := block(t, n, "XREAD BLOCK 0 STREAMS s $")
	c.sendArgs([]byte("XADD"), []byte("s"), []byte("9"), []byte("f"), []byte(long))
	c.next()
	if got := w.read(); !bytes.Contains(got, []byte(long)) {
		t.Errorf("who has waited gets %d bytes", len(got))
	}
}

// TestClaimingManyEntries: pending entries are claimed in the order of their times, however many there are.
func TestClaimingManyEntries(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const entries = 3 * 4096
	addEntries(t, c, "s", 1, entries, "f v")
	c.do("XGROUP CREATE s g 0")
	c.bytesOf("XREADGROUP GROUP g x STREAMS s >")
	for i := range entries / 1024 { // the last ones are idle for longest
		c.send(fmt.Sprintf("XCLAIM s g x 0 %d TIME %d JUSTID", entries-i*1024, 1000+i))
	}
	for range entries / 1024 {
		c.next()
	}
	got := c.do("XREADGROUP GROUP g y COUNT 3 CLAIM 100000000 STREAMS s >")
	want := []string{fmt.Sprint(entries), fmt.Sprint(entries - 1024), fmt.Sprint(entries - 2048)}
	at := 0
	for _, id := range want {
		next := strings.Index(got, `"`+id+`-0"`)
		if next <= at {
			t.Fatalf("CLAIM answers %s, want %q", got, want)
		}
		at = next
	}
	if got := c.do("XREADGROUP GROUP g y CLAIM 100000000 STREAMS s >"); strings.Count(got, "-0\"") != entries/1024-3 {
		t.Errorf("CLAIM answers %s", got)
	}
	c.want("XREADGROUP GROUP g y CLAIM 100000000 STREAMS s >", "(nil)")
	if got := c.do("XREADGROUP GROUP g z CLAIM 0 STREAMS s >"); strings.Count(got, "-0\"") != 1024 {
		t.Errorf("%d entries are claimed at once", strings.Count(got, "-0\""))
	}
	if got := c.do("XPENDING s g - + 1 z"); !strings.Contains(got, `"z"`) {
		t.Errorf("pending for z: %s", got)
	}
}

// TestReadsOfManyStreams: more streams than one run looks at.
func TestReadsOfManyStreams(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const streams = 1500
	var keys, ids, news, want strings.Builder
	for i := range streams {
		c.send(fmt.Sprintf("XGROUP CREATE {s}%d g 0 MKSTREAM", i))
		c.send(fmt.Sprintf("XADD {s}%d 1 f v", i))
		fmt.Fprintf(&keys, " {s}%d", i)
		ids.WriteString(" 0")
		news.WriteString(" >")
		want.WriteString(readOf(fmt.Sprintf("{s}%d", i), "*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"))
	}
	for range 2 * streams {
		c.next()
	}
	sameBytes(t, "XREAD", c.bytesOf("XREAD STREAMS"+keys.String()+ids.String()), fmt.Sprintf("*%d\r\n", streams)+want.String())
	sameBytes(t, "XREADGROUP", c.bytesOf("XREADGROUP GROUP g c STREAMS"+keys.String()+news.String()), fmt.Sprintf("*%d\r\n", streams)+want.String())
	c.want("XREADGROUP GROUP g c STREAMS"+keys.String()+news.String(), "(nil)")
	c.want("XREAD BLOCK 0 STREAMS"+keys.String()+ids.String(), "(error) ERR XREAD and XREADGROUP that wait can name at most 64 streams of one slot")
	c.do("DEL {s}1499")
	c.want("XREADGROUP GROUP g c STREAMS"+keys.String()+news.String(),
		"(error) NOGROUP No such key '{s}1499' or consumer group 'g' in XREADGROUP with GROUP option")
}

// TestReadEvents: XREADGROUP announces the consumers that it makes.
func TestReadEvents(t *testing.T) {
	n := startLeveled(t)
	c, l := dial(t, n.Addr()), dial(t, n.Addr())
	c.do("CONFIG SET notify-keyspace-events Kt")
	c.do("XGROUP CREATE s g $ MKSTREAM")
	l.do("SUBSCRIBE __keyspace@0__:s")
	c.do("XREADGROUP GROUP g c STREAMS s >")
	c.do("XREADGROUP GROUP g c STREAMS s >")
	c.do("XADD s 1 f v")
	for _, want := range []string{"xgroup-createconsumer", "xadd"} {
		if got := l.next(); !strings.HasSuffix(got, `"`+want+`"`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
