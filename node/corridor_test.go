package node

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// element is the i-th element of a value with n of them, of which some are long.
func elementOf(i, n int) string {
	switch {
	case i%97 == 5 && n < 5000:
		return strings.Repeat("long", 20+i)
	case i%3 == 0:
		return strconv.Itoa(i * 7919)
	}
	return "element:" + strconv.Itoa(i)
}

// makers make values of n elements of each type under a key. readers answer all of one.
var (
	makers = map[string]func(c *client, key string, n int){
		"hash": func(c *client, key string, n int) {
			fillInPieces(c, "HSET", key, n, func(i int) []string { return []string{elementOf(i, n), "v" + elementOf(i+1, n)} })
		},
		"set": func(c *client, key string, n int) {
			fillInPieces(c, "SADD", key, n, func(i int) []string { return []string{elementOf(i, n)} })
		},
		"list": func(c *client, key string, n int) {
			fillInPieces(c, "RPUSH", key, n, func(i int) []string { return []string{elementOf(i%300, n)} })
		},
		"zset": func(c *client, key string, n int) {
			fillInPieces(c, "ZADD", key, n, func(i int) []string { return []string{fmt.Sprint(float64(i%100) * 1.25), elementOf(i, n)} })
		},
	}
	readers = map[string]string{"hash": "HGETALL {k}", "set": "SMEMBERS {k}", "list": "LRANGE {k} 0 -1", "zset": "ZRANGE {k} 0 -1 WITHSCORES"}
)

func fillInPieces(c *client, verb, key string, n int, of func(i int) []string) {
	for i := 0; i < n; {
		args := [][]byte{[]byte(verb), []byte(key)}
		for end := min(n, i+500); i < end; i++ {
			for _, s := range of(i) {
				args = append(args, []byte(s))
			}
		}
		c.sendArgs(args...)
		c.read()
	}
}

// contentOf is a value in an order of its own.
func contentOf(c *client, typ, key string) []string {
	c.send(strings.Replace(readers[typ], "{k}", key, 1))
	all := stringsOf(c.t.(*testing.T), c.read())
	if typ == "hash" || typ == "zset" {
		for i := 0; i < len(all); i += 2 {
			all[i/2] = all[i] + "=" + all[i+1]
		}
		all = all[:len(all)/2]
	}
	if typ == "hash" || typ == "set" {
		slices.Sort(all)
	}
	return all
}

// TestCorridor has values of all types copied, renamed, dumped and restored, small and big.
func TestCorridor(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, typ := range slices.Sorted(maps.Keys(makers)) {
		for _, size := range []int{1, 50, 1000, 30_000} {
			t.Run(fmt.Sprint(typ, size), func(t *testing.T) {
				c.t = t
				c.want("FLUSHALL", "OK")
				makers[typ](c, "{k}a", size)
				want := contentOf(c, typ, "{k}a")
				same := func(key string) {
					t.Helper()
					if got := contentOf(c, typ, key); !slices.Equal(got, want) || len(want) != size {
						t.Errorf("%s has %d elements, or others; want %d", key, len(got), size)
					}
					c.want("TYPE "+key, typ)
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
				c.want("EXISTS {k}b", "(integer) 0")
				c.want("RENAMENX {k}c {k}c", "(integer) 0")
				c.send("DUMP {k}c")
				payload, _ := resp.DecodeArgument(append([]byte("*1\r\n"), c.read()...), len("*1\r\n"))
				c.sendArgs([]byte("RESTORE"), []byte("{k}d"), []byte("0"), payload)
				if got := c.next(); got != "OK" {
					t.Fatalf("RESTORE answers %s", got)
				}
				same("{k}d")
				c.sendArgs([]byte("RESTORE"), []byte("{k}d"), []byte("3600000"), payload, []byte("REPLACE"))
				if got := c.next(); got != "OK" {
					t.Fatalf("RESTORE answers %s", got)
				}
				same("{k}d")
				payload[len(payload)/2] ^= 1
				c.sendArgs([]byte("RESTORE"), []byte("{k}d"), []byte("0"), payload, []byte("REPLACE"))
				if got := c.next(); got != "(error) ERR DUMP payload version or checksum are wrong" {
					t.Errorf("RESTORE answers %s", got)
				}
				same("{k}d")
				c.send("MULTI")
				c.send("COPY {k}d {k}e")
				c.send("RENAME {k}e {k}f")
				c.send("DUMP {k}f")
				c.send("EXEC")
				for range 5 {
					c.read()
				}
				same("{k}f")
			})
		}
	}
	n.engine.Sweep(1, n.engine.Pages())
}

// TestCorridorWithRedis restores ours in redis-server, and its payloads here.
func TestCorridorWithRedis(t *testing.T) {
	forOneClient(t)
	c, theirs := dial(t, startLeveled(t).Addr()), dial(t, redistest.Start(t))
	restore := func(to *client, payload []byte) {
		t.Helper()
		to.sendArgs([]byte("RESTORE"), []byte("back"), []byte("0"), payload, []byte("REPLACE"))
		if got := to.next(); got != "OK" {
			t.Fatalf("RESTORE answers %s", got)
		}
	}
	dump := func(of *client) []byte {
		of.send("DUMP k")
		payload, _ := resp.DecodeArgument(append([]byte("*1\r\n"), of.read()...), len("*1\r\n"))
		return payload
	}
	for typ, make := range maps.All(makers) {
		for _, size := range []int{3, 100, 1000, 20_000} {
			for _, of := range []*client{c, theirs} {
				of.want("FLUSHALL", "OK")
				make(of, "k", size)
			}
			want := contentOf(theirs, typ, "k")
			restore(c, dump(theirs))
			restore(theirs, dump(c))
			for _, of := range []*client{c, theirs} {
				if got := contentOf(of, typ, "back"); !slices.Equal(got, want) {
					t.Errorf("%s of %d elements: %d came back", typ, size, len(got))
				}
			}
			if typ == "hash" { // Redis 7.0 has no listpacks of sets
				theirs.send("OBJECT ENCODING back")
				c.want("OBJECT ENCODING back", theirs.next())
			}
		}
	}
}

// TestRestoreRefuses has payloads that are wrong in what they contain.
func TestRestoreRefuses(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	f := func(want string, form rdb.Form, all ...rdb.Element) {
		t.Helper()
		w := rdb.Writer{Form: form}
		out := w.AppendHead(nil, len(all))
		for _, x := range all {
			out = w.AppendElement(out, x)
		}
		c.sendArgs([]byte("RESTORE"), []byte("k"), []byte("0"), w.AppendFoot(out))
		if got := c.next(); got != want {
			t.Errorf("%d elements: %s, want %s", len(all), got, want)
		}
		c.want("EXISTS k", "(integer) 0")
	}
	const malformed = "(error) ERR Bad data format"
	var many []rdb.Element
	for i := range 1000 {
		many = append(many, rdb.Element{First: strconv.AppendInt(nil, int64(i), 10)})
	}
	twice := append(slices.Clone(many), many[500])
	a := rdb.Element{First: []byte("a")}
	f(malformed, rdb.FormSet, a, a)
	f(malformed, rdb.FormSet, twice...)
	f(malformed, rdb.FormHash, a, a)
	f(malformed, rdb.FormHash, twice...)
	f(malformed, rdb.FormSet)
	f(malformed, rdb.FormSortedSet, a, a)
	f(malformed, rdb.FormSortedSet, twice...)
	expired := rdb.Element{First: []byte("a"), Second: []byte("b"), ExpireAt: 1000}
	f("OK", rdb.FormHashValkey, expired)
	stream := rdb.AppendFoot([]byte{26, 1}, rdb.Sum(0, []byte{26, 1}))
	c.want("RESTORE k 0 "+conversation.Quote(stream), malformed+": payloads of type 26 (stream, version 10) are not supported")
}
