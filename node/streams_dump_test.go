package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// doArgs sends a command of words, and returns its reply as text.
func (c *client) doArgs(args ...string) string {
	c.t.Helper()
	c.sendWords(args)
	return c.next()
}

func (c *client) sendWords(args []string) {
	c.t.Helper()
	c.sendArgs(bytesOfWords(args)...)
}

func bytesOfWords(args []string) [][]byte {
	all := make([][]byte, len(args))
	for i, a := range args {
		all[i] = []byte(a)
	}
	return all
}

// dumpOf is the payload of a key.
func (c *client) dumpOf(key string) []byte {
	c.t.Helper()
	c.send("DUMP " + key)
	payload, _ := resp.DecodeBulk(c.read())
	return bytes.Clone(payload)
}

func (c *client) restore(key string, payload []byte) {
	c.t.Helper()
	c.wantBig("RESTORE "+key+" 0 BIG REPLACE", payload, "OK")
}

// streamOf is all that a server says of a stream, but for the numbers of nodes, and for what redis-server 7.0
// does not say.
func streamOf(c *client, key string) string {
	c.t.Helper()
	var lines []string
	skip := false
	for line := range strings.Lines(c.do("XINFO STREAM " + key + " FULL COUNT 0")) {
		switch {
		case skip:
			skip = false
		case strings.Contains(line, `"radix-tree-`), strings.Contains(line, `"active-time"`):
			skip = true
		default:
			_, line, _ = strings.Cut(line, ") ") // which line it is
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "") + c.do("XRANGE "+key+" - +")
}

// wantStream compares two streams as streamOf returns them, and shows where they begin to differ.
func wantStream(t *testing.T, what, got, want string) {
	t.Helper()
	wantNearly(t, what, got, want, 0)
}

// wantNearly is wantStream for streams whose times differ by so many milliseconds at most.
func wantNearly(t *testing.T, what, got, want string, within int) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	same := func(a, b string) bool {
		var x, y int
		_, err1 := fmt.Sscanf(a, "(integer) %d", &x)
		_, err2 := fmt.Sscanf(b, "(integer) %d", &y)
		return a == b || err1 == nil && err2 == nil && min(x, y) > 100_000 && max(x, y)-min(x, y) <= within
	}
	at := 0
	for at < min(len(a), len(b)) && same(a[at], b[at]) {
		at++
	}
	if at == max(len(a), len(b)) {
		return
	}
	from := max(0, at-12)
	t.Fatalf("%s: line %d of %d and %d:\n%.600s\nwant\n%.600s", what, at, len(a), len(b),
		strings.Join(a[from:min(at+3, len(a))], "\n"), strings.Join(b[from:min(at+3, len(b))], "\n"))
}

// streamCommands makes commands that fill a stream of about n entries. deletes: some of them are deleted.
func streamCommands(r *rand.Rand, key string, n int, deletes bool) (all [][]string) {
	do := func(args ...string) { all = append(all, args) }
	groups := 1 + r.IntN(3)
	for g := range groups {
		do("XGROUP", "CREATE", key, strconv.Itoa(g), "0", "MKSTREAM")
	}
	ms := 1000
	var ids []string
	for len(ids) < n {
		ms += r.IntN(5)
		ids = append(ids, fmt.Sprintf("%d-%d", ms, len(ids)+1))
		add := []string{"XADD", key, ids[len(ids)-1]}
		for f := range 1 + r.IntN(3)*r.IntN(2) {
			value := strconv.Itoa(r.IntN(1<<r.IntN(31)) - 5000)
			switch r.IntN(25) {
			case 0:
				value = strings.Repeat("long ", r.IntN(3000))
			case 1, 2, 3:
				value = strings.Repeat("v", r.IntN(90))
			}
			add = append(add, "field"+strconv.Itoa(f+r.IntN(10)/9), value)
		}
		do(add...)
		group, consumer, id := strconv.Itoa(r.IntN(groups)), "consumer"+strconv.Itoa(r.IntN(5)), ids[r.IntN(len(ids))]
		switch r.IntN(12) {
		case 0, 1, 2:
			do("XREADGROUP", "GROUP", group, consumer, "COUNT", strconv.Itoa(1+r.IntN(9)), "STREAMS", key, ">")
		case 3:
			do("XACK", key, group, id)
		case 4:
			do("XCLAIM", key, group, consumer, "0", id, "TIME", strconv.Itoa(r.IntN(1<<30)), "RETRYCOUNT", strconv.Itoa(r.IntN(1<<20)))
		case 5:
			do("XGROUP", "CREATECONSUMER", key, group, strconv.Itoa(r.IntN(9)))
		case 6:
			if deletes {
				do("XDEL", key, id)
			}
		case 7:
			if deletes && r.IntN(20) == 0 {
				do("XTRIM", key, "MAXLEN", strconv.Itoa(r.IntN(200)))
			}
		}
	}
	return all
}

func (c *client) run(all [][]string) {
	c.t.Helper()
	for len(all) > 0 {
		some := all[:min(len(all), 200)]
		var requests []byte // one write: each one of its own takes longer than most commands
		for _, args := range some {
			requests = resp.AppendRequest(requests, bytesOfWords(args)...)
		}
		c.sendRaw(requests)
		for range some {
			c.read()
		}
		all = all[len(some):]
	}
}

// TestStreamPayloadsWithRedis restores redis-server's streams here, and ours there.
func TestStreamPayloadsWithRedis(t *testing.T) {
	forOneClient(t)
	c, theirs := dial(t, startLeveled(t).Addr()), dial(t, redistest.Start(t))
	theirs.want("CONFIG SET sanitize-dump-payload yes", "OK")
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 4))
		deletes, compresses, size := r.IntN(2) == 0, r.IntN(2) == 0, []int{0, 3, 40, 700}[seed%4]
		theirs.want("CONFIG SET rdbcompression "+map[bool]string{true: "yes", false: "no"}[compresses], "OK")
		theirs.do("DEL k")
		theirs.run(streamCommands(r, "k", size, deletes))
		payload, want := theirs.dumpOf("k"), streamOf(theirs, "k")
		c.restore("k", payload)
		wantStream(t, fmt.Sprint("we read seed ", seed), streamOf(c, "k"), want)
		ours := c.dumpOf("k")
		if !deletes && !compresses && !bytes.Equal(ours, payload) {
			t.Errorf("seed %d: the payload is %.200q, want %.200q", seed, ours, payload)
		}
		theirs.restore("back", ours)
		wantStream(t, fmt.Sprint("Redis reads seed ", seed), streamOf(theirs, "back"), want)
		c.do("DEL k")
		c.run(streamCommands(r, "k", size, deletes))
		want = streamOf(c, "k")
		theirs.restore("k", c.dumpOf("k"))
		wantStream(t, fmt.Sprint("Redis reads ours of seed ", seed), streamOf(theirs, "k"), want)
	}
}

// TestBigStreamPayloads has streams whose payloads are made and read in many slices.
func TestBigStreamPayloads(t *testing.T) {
	forOneClient(t)
	c, theirs := dial(t, startLeveled(t, func(c *Config) { c.Memory = 512 << 20 }).Addr()), dial(t, redistest.Start(t))
	var all [][]string
	for i := range 40_000 {
		all = append(all, []string{"XADD", "k", fmt.Sprintf("%d-%d", 1+i/3, 1+i), "field", strconv.Itoa(i), "other", "value"})
		if i%997 == 0 {
			all = append(all, []string{"XADD", "k", fmt.Sprintf("%d-%d", 1+i/3, 2+i), "long", strings.Repeat("x", i*20), "b", strings.Repeat("y", 100_000)})
		}
	}
	many := []string{"XADD", "k", "99999-1"}
	for i := range 20_000 {
		many = append(many, strconv.Itoa(i), strings.Repeat("v", i%9))
	}
	all = append(all, many, []string{"XGROUP", "CREATE", "k", "g", "0"}, []string{"XGROUP", "CREATE", "k", "h", "0"})
	for i := range 300 {
		all = append(all, []string{"XREADGROUP", "GROUP", "g", "consumer" + strconv.Itoa(i%70), "COUNT", "100", "STREAMS", "k", ">"})
	}
	for i := range 2000 {
		all = append(all, []string{"XGROUP", "CREATECONSUMER", "k", "h", "idle" + strconv.Itoa(i)})
	}
	all = append(all, []string{"XREADGROUP", "GROUP", "h", "busy", "COUNT", "20000", "STREAMS", "k", ">"})
	theirs.run(all)
	want := streamOf(theirs, "k")
	c.restore("k", theirs.dumpOf("k"))
	wantStream(t, "we read", streamOf(c, "k"), want)
	for _, then := range []string{"COPY k {k}copy", "RENAME k {k}copy", "RENAME {k}copy k"} {
		if got := c.do(then); got != "OK" && got != "(integer) 1" {
			t.Fatalf("%s answers %s", then, got)
		}
	}
	c.want("TYPE k", "stream")
	theirs.restore("back", c.dumpOf("k"))
	wantStream(t, "Redis reads", streamOf(theirs, "back"), want)
}

// TestStreamsOfCorridor has what all types have in common: COPY, RENAME, OBJECT, MEMORY USAGE, SCAN.
func TestStreamsOfCorridor(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		c.want("FLUSHALL", "OK")
		c.run(streamCommands(r, "{k}a", []int{0, 3, 60, 900}[seed%4], true))
		if seed%3 == 0 {
			for g := range 3 {
				c.doArgs("XGROUP", "DESTROY", "{k}a", strconv.Itoa(g))
			}
		}
		want := streamOf(c, "{k}a")
		same := func(key string) {
			t.Helper()
			wantStream(t, fmt.Sprint(key, " of seed ", seed), streamOf(c, key), want)
			c.want("TYPE "+key, "stream")
			c.want("OBJECT ENCODING "+key, `"stream"`)
		}
		c.want("EXPIRE {k}a 1000", "(integer) 1")
		c.want("SET {k}b x", "OK")
		c.want("COPY {k}a {k}b", "(integer) 0")
		c.want("COPY {k}a {k}b REPLACE", "(integer) 1")
		same("{k}b")
		c.want("PERSIST {k}b", "(integer) 1")
		c.want("DEL {k}a", "(integer) 1")
		c.want("RENAME {k}b {k}c", "OK")
		same("{k}c")
		c.want("RENAMENX {k}c {k}c", "(integer) 0")
		c.restore("{k}d", c.dumpOf("{k}c"))
		same("{k}d")
		c.want("SCAN 0 TYPE stream COUNT 1000 MATCH {k}d", "1) \"0\"\n2) 1) \"{k}d\"")
		c.want("SCAN 0 TYPE zset COUNT 1000", "1) \"0\"\n2) (empty array)")
		var bytes int
		if _, err := fmt.Sscanf(c.do("MEMORY USAGE {k}d"), "(integer) %d", &bytes); err != nil || bytes < 20 {
			t.Errorf("MEMORY USAGE is %d bytes, %v", bytes, err)
		}
		c.send("MULTI")
		c.send("COPY {k}d {k}e")
		c.send("RENAME {k}e {k}f")
		c.send("EXEC")
		for range 4 {
			c.read()
		}
		same("{k}f")
		// What was copied and restored is a stream that can be changed.
		c.want("XADD {k}d 9999999-1 a b", `"9999999-1"`)
		c.want("XADD {k}f 9999999-1 a b", `"9999999-1"`)
		c.want("XGROUP CREATE {k}d new $", "OK")
		c.want("XGROUP CREATE {k}f new $", "OK")
		c.want("XREADGROUP GROUP new me STREAMS {k}d >", "(nil)")
		c.want("XREADGROUP GROUP new me STREAMS {k}f >", "(nil)")
	}
	n.engine.Sweep(1, n.engine.Pages())
}

// TestStreamForValkey: a payload for Valkey keeps when consumers were active.
func TestStreamForValkey(t *testing.T) {
	for forValkey, kind := range map[bool]byte{false: 19, true: 21} {
		c := dial(t, startLeveled(t, func(cfg *Config) { cfg.DumpForValkey = forValkey }).Addr())
		c.want("XGROUP CREATE k g 0 MKSTREAM", "OK")
		c.want("XGROUP CREATECONSUMER k g never", "(integer) 1")
		payload := c.dumpOf("k")
		if payload[0] != kind {
			t.Errorf("with DumpForValkey %t the type is %d, want %d", forValkey, payload[0], kind)
		}
		c.restore("r", payload)
		if got := strings.Contains(c.do("XINFO CONSUMERS r g"), "(integer) -1"); got != forValkey {
			t.Errorf("with DumpForValkey %t the consumer was never active: %t", forValkey, got)
		}
	}
}

// TestRestoreRefusesStreams has payloads with what only a value can find to be wrong.
func TestRestoreRefusesStreams(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	f := func(want string, groups ...string) {
		t.Helper()
		var body []byte
		w := rdb.StreamWriter{Out: func(piece []byte) error {
			body = append(body, piece...)
			return nil
		}}
		w.Info(rdb.StreamInfo{Groups: len(groups)})
		for _, g := range groups {
			name, consumers, _ := strings.Cut(g, ":")
			w.Group(rdb.StreamGroup{Name: []byte(name)})
			all := strings.Fields(consumers)
			w.Consumers(len(all))
			for _, name := range all {
				w.Consumer(rdb.StreamConsumer{Name: []byte(name)})
			}
		}
		head, _ := w.End()
		c.wantBig("RESTORE k 0 BIG", append(head, body...), want)
		c.want("EXISTS k", "(integer) 0")
	}
	const malformed = "(error) ERR Bad data format"
	f(malformed, "g", "g")
	f(malformed, "g:a a")
	f(malformed, "a", "g:a b c b")
	long := strings.Repeat("n", 513)
	const tooLong = "(error) ERR the name of a consumer group or a consumer is longer than 512 bytes"
	f(tooLong, long)
	f(tooLong, "g:"+long)
	payload := []byte{19, 1}
	c.wantBig("RESTORE k 0 BIG", rdb.AppendFoot(payload, rdb.Sum(0, payload)), malformed)
	var twice []byte
	w := rdb.StreamWriter{Out: func(piece []byte) error {
		twice = append(twice, piece...)
		return nil
	}}
	for range 2 {
		w.Entry(rdb.StreamEntry{ID: rdb.StreamID{Ms: 1}, Strings: [][]byte{[]byte("a"), []byte("b")}})
	}
	w.Info(rdb.StreamInfo{Len: 2, Last: rdb.StreamID{Ms: 1}, Added: 2})
	head, _ := w.End()
	c.wantBig("RESTORE k 0 BIG", append(head, twice...), malformed)
	c.want("EXISTS k", "(integer) 0")
}

// TestStreamsRestoredReachTheFollower: RESTORE, COPY and RENAME of streams, small and big.
func TestStreamsRestoredReachTheFollower(t *testing.T) {
	sizes, begun, ended := []int{0, 3, 60, 1500}, 16, 20
	if testing.Short() { // each size once before the follower comes, while it fetches, and behind that
		sizes[3], begun, ended = 300, 8, 12
	}
	nodes, table, tag := startTrio(t)
	p := partitionOf(tag)
	leveled := altered(table, func(next *ring.Table) { next.Level = ring.Level })
	install(t, leveled, nodes[:]...)
	c := dial(t, nodes[0].Addr())
	key := func(name string, seed int) string { return "{" + tag + "}" + name + strconv.Itoa(seed) }
	make := func(seed int) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		c.run(streamCommands(r, key("a", seed), sizes[seed%4], seed%3 == 0))
		c.run([][]string{{"SET", key("b", seed), "x"}, {"XADD", key("c", seed), "1-1", "a", "b"}})
		c.want(fmt.Sprintf("COPY %s %s REPLACE", key("a", seed), key("b", seed)), "(integer) 1")
		c.restore(key("c", seed), c.dumpOf(key("a", seed)))
		c.restore(key("d", seed), c.dumpOf(key("a", seed)))
		c.want(fmt.Sprintf("RENAME %s %s", key("d", seed), key("e", seed)), "OK")
		c.want(fmt.Sprintf("COPY %s %s", key("e", seed), key("f", seed)), "(integer) 1")
		c.doArgs("XADD", key("f", seed), "9999999-1", "more", "value")
		c.doArgs("XGROUP", "CREATE", key("e", seed), "new", "0")
		c.doArgs("XREADGROUP", "GROUP", "new", "me", "COUNT", "10", "STREAMS", key("e", seed), ">")
	}
	for seed := range 4 {
		make(seed)
	}
	table = altered(leveled, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, table, nodes[:]...)
	for seed := 4; seed < begun; seed++ {
		make(seed)
	}
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	for seed := begun; seed < ended; seed++ {
		make(seed)
	}
	want := map[string]string{}
	for seed := range ended {
		for _, name := range []string{"a", "b", "c", "e", "f"} {
			want[key(name, seed)] = streamOf(c, key(name, seed))
		}
	}
	succeed(t, nodes, table)
	c = dial(t, nodes[1].Addr())
	var missing []string
	for key := range want {
		if c.do("EXISTS "+key) != "(integer) 1" {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("the follower lacks %d of %d keys: %s", len(missing), len(want), missing)
	}
	for key, want := range want {
		wantNearly(t, "the follower has "+key, streamOf(c, key), want, 2000) // their clocks differ, as far as they know
	}
}

// TestDumpOfChangingStream: a payload is of one moment, whatever happens to the stream meanwhile.
func TestDumpOfChangingStream(t *testing.T) {
	entries, rounds := 20_000, 3000
	if testing.Short() {
		entries, rounds = 5000, 900
	}
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	fill := func(key string) (all [][]string) {
		for i := range entries {
			all = append(all, []string{"XADD", key, strconv.Itoa(i+1) + "-0", "field", strconv.Itoa(i)})
		}
		all = append(all, []string{"XGROUP", "CREATE", key, "g", "0"})
		for i := range 50 {
			all = append(all, []string{"XREADGROUP", "GROUP", "g", strconv.Itoa(i), "COUNT", strconv.Itoa(entries / 100), "STREAMS", key, ">"})
		}
		return all
	}
	changes := func(key string) (all [][]string) {
		for i := range rounds {
			id := strconv.Itoa(i*5+1) + "-0"
			all = append(all, []string{"XDEL", key, id}, []string{"XACK", key, "g", id},
				[]string{"XADD", key, strconv.Itoa(entries+i+1) + "-0", "a", "b"})
		}
		return all
	}
	c.run(fill("k"))
	c.send("DUMP k")
	other.run(append(changes("k"), []string{"XGROUP", "DESTROY", "k", "g"}, []string{"DEL", "k"}))
	payload, _ := resp.DecodeBulk(c.read())
	c.restore("k", bytes.Clone(payload))

	// Which moment it was, the payload itself tells: it counts the entries that were ever added.
	var added int
	_, rest, _ := strings.Cut(c.do("XINFO STREAM k"), "entries-added")
	if _, err := fmt.Sscanf(rest[strings.Index(rest, "(integer)"):], "(integer) %d", &added); err != nil {
		t.Fatal(err)
	}
	done := 3 * (added - entries)
	c.run(append(fill("m"), changes("m")[:done]...))
	counts := func(key string) string { return c.do("XLEN "+key) + c.do("XPENDING "+key+" g") }
	for range 2 { // changes of its round
		if counts("m") != counts("k") {
			c.run(changes("m")[done : done+1])
			done++
		}
	}
	wantNearly(t, "the payload has", streamOf(c, "k"), streamOf(c, "m"), 3_600_000)
}

// TestStreamPayloadIsBounded restores payloads that declare far more than they have.
func TestStreamPayloadIsBounded(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	huge := binary.BigEndian.AppendUint64([]byte{0x81}, 1<<60)
	for _, body := range [][]byte{
		slices.Concat([]byte{19}, huge),
		slices.Concat([]byte{19, 0, 0, 0, 0, 0, 0, 0, 0, 0}, huge),
		slices.Concat([]byte{19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 'g', 0, 0, 0}, huge),
		slices.Concat([]byte{19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 'g', 0, 0, 0, 0}, huge),
	} {
		for _, padding := range []int{0, 10_000, 400_000} {
			payload := append(slices.Clone(body), make([]byte, padding)...)
			c.wantBig("RESTORE k 0 BIG", rdb.AppendFoot(payload, rdb.Sum(0, payload)), "(error) ERR Bad data format")
		}
	}
}
