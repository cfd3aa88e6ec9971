package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestQuarter: a collection gets no bigger than a quarter of the memory limit. What would make it
// bigger is refused before its first change, and the error names the key.
func TestQuarter(t *testing.T) {
	forOneClient(t)
	const limit = 16 << 20
	start := func(memory int64) *client {
		return dial(t, startLeveled(t, func(c *Config) { c.Memory, c.Group = memory, newGroup(t, 1) }).Addr())
	}
	c := start(limit)
	text := strings.Repeat("x", 1000)
	next := 0
	// add returns a command that gives a key n elements with numbers from next on.
	add := func(verb, key string, n int) [][]byte {
		args := [][]byte{[]byte(verb), []byte(key)}
		for range n {
			next++
			switch element := fmt.Appendf(nil, "%06d%s", next, text); verb {
			case "HSET":
				args = append(args, fmt.Append(nil, next), element)
			case "ZADD":
				args = append(args, fmt.Append(nil, next), element)
			case "GEOADD":
				args = append(args, fmt.Append(nil, next%180), []byte("10"), element)
			default:
				args = append(args, element)
			}
		}
		return args
	}
	refused := func(key string) string { return "(error) " + exec.TooBig([]byte(key)) }
	for verb, length := range map[string]string{
		"RPUSH": "LLEN", "LPUSH": "LLEN", "HSET": "HLEN", "SADD": "SCARD", "ZADD": "ZCARD", "GEOADD": "ZCARD",
	} {
		got, n := "", 0
		for ; n < 10_000 && !strings.HasPrefix(got, "(error)"); n += 50 {
			c.sendArgs(add(verb, "{t}k", 50)...)
			got = c.next()
		}
		if got != refused("{t}k") || n < limit/4/1100 {
			t.Errorf("%s of %d elements answers %s", verb, n, got)
		}
		c.want(length+" {t}k", fmt.Sprintf("(integer) %d", n-50))
		c.want("DEL {t}k", "(integer) 1")
		c.sendArgs(add(verb, "{t}k", 4500)...)
		if got := c.next(); got != refused("{t}k") {
			t.Errorf("%s of many elements at once answers %s", verb, got)
		}
		c.want("EXISTS {t}k", "(integer) 0")
	}

	big := bytes.Repeat([]byte("b"), limit/4+1)
	for _, line := range []string{"RPUSH {t}k BIG", "HSET {t}k f BIG", "HSETNX {t}k f BIG"} {
		c.wantBig(line, big, refused("{t}k"))
		c.want("EXISTS {t}k", "(integer) 0")
	}
	c.want("SET {t}d old", "OK")
	// What ZUNIONSTORE and SORT gather first leaves less than a quarter of the limit for the value.
	unbuilt := "(error) " + exec.Unbuilt([]byte("{t}d"))
	for _, x := range []struct {
		verb, line string
		times      int
		want       string
	}{
		{"SADD", "SUNIONSTORE {t}d {t}1 {t}2", 1, refused("{t}d")},
		{"ZADD", "ZUNIONSTORE {t}d 2 {t}1 {t}2", 1, unbuilt},
		{"RPUSH", "SORT {t}1 BY nosort GET # GET # STORE {t}d", 1, unbuilt},
		{"RPUSH", "LMOVE {t}1 {t}2 LEFT LEFT", 2500, refused("{t}2")},
	} {
		for n := 0; n < 5000; n += 50 {
			c.sendArgs(add(x.verb, fmt.Sprintf("{t}%d", 1+n%100/50), 50)...)
			c.next()
		}
		got := ""
		for n := 0; n < x.times && !strings.HasPrefix(got, "(error)"); n++ {
			got = c.do(x.line)
		}
		if got != x.want {
			t.Errorf("%s answers %s, not %s", x.line, got, x.want)
		}
		c.want("GET {t}d", `"old"`)
		c.want("DEL {t}1 {t}2", "(integer) 2")
	}

	wide := start(4 * limit)
	for from := 0; from < 6000; from += 50 {
		wide.sendArgs(add("HSET", "h", 50)...)
		wide.next()
	}
	payload := wide.long("DUMP", "h")
	_, payload, _ = bytes.Cut(payload, []byte("\r\n"))
	c.sendArgs([]byte("RESTORE"), []byte("{t}r"), []byte("0"), payload[:len(payload)-2])
	if got := c.next(); got != refused("{t}r") {
		t.Errorf("RESTORE answers %s", got)
	}
	c.want("EXISTS {t}r", "(integer) 0")
	wide.want("CONFIG SET maxmemory 16mb", "OK")
	wide.want("COPY h {h}2", refused("{h}2"))
	wide.want("EXISTS {h}2", "(integer) 0")
}

// TestQuarterReplaced: a string may replace one that is as long, whatever share of the limit it takes.
func TestQuarterReplaced(t *testing.T) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory, c.Group = 16<<20, newGroup(t, 1) }).Addr())
	big := bytes.Repeat([]byte("b"), 3<<20)
	refused := func(key string) string { return "(error) " + exec.TooBig([]byte(key)) }
	c.wantBig("HSET h f BIG", big, "(integer) 1")
	c.wantBig("HSET h f BIG", big, "(integer) 0")
	c.wantBig("HMSET h f BIG g 1", big, "OK")
	c.wantBig("HSET h g BIG", big, refused("h"))
	c.wantBig("HSET h a 1 g BIG", big, refused("h"))
	c.want("HMGET h a g", "1) (nil)\n2) \"1\"")
	c.wantBig("RPUSH l BIG", big, "(integer) 1")
	c.want("RPUSH l x", "(integer) 2")
	c.wantBig("LSET l 0 BIG", big, "OK")
	c.wantBig("LSET l 1 BIG", big, refused("l"))
	c.want("LINDEX l 1", `"x"`)

	// What HSETEX deletes need not fit.
	args := [][]byte{[]byte("HSETEX"), []byte("h"), []byte("PXAT"), []byte("1"), []byte("FIELDS"), []byte("50")}
	for i := range 50 {
		args = append(args, fmt.Append(nil, "f", i), big[:100_000])
	}
	args[6] = []byte("g")
	c.sendArgs(args...)
	if got := c.next(); got != "(integer) 1" {
		t.Errorf("HSETEX with a time that has passed answers %s", got)
	}
	c.want("HKEYS h", `1) "f"`)
}

// TestQuarterExceeded: after the limit got lower, a value that has more than a quarter is refused only
// what makes it bigger.
func TestQuarterExceeded(t *testing.T) {
	forOneClient(t)
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory, c.Group = 32<<20, newGroup(t, 1) }).Addr())
	text := strings.Repeat("x", 990)
	const count = 5000
	// all returns a command with some of the elements.
	all := func(verb, key string, from, to int) [][]byte {
		args := [][]byte{[]byte(verb), []byte(key)}
		if verb == "ZADD" {
			args = append(args, []byte("XX"), []byte("CH"))
		}
		for i := from; i < to; i++ {
			switch element := fmt.Appendf(nil, "%06d%s", i, text); verb {
			case "HSET":
				args = append(args, fmt.Append(nil, i), element)
			case "ZADD":
				args = append(args, fmt.Append(nil, count-i), element)
			default:
				args = append(args, element)
			}
		}
		return args
	}
	big := bytes.Repeat([]byte("b"), 3<<20)
	refused := "(error) " + exec.TooBig([]byte("{k}2"))
	wantAll := func(args [][]byte, want string) {
		t.Helper()
		c.sendArgs(args...)
		if got := c.next(); got != want {
			t.Errorf("%s of %d arguments answers %s, not %s", args[0], len(args), got, want)
		}
	}
	for _, x := range []struct {
		verb    string
		changes func()
	}{
		{"HSET", func() {
			wantAll(all("HSET", "{k}2", 0, 50), "(integer) 0")
			wantAll(all("HSET", "{k}2", 0, count), "(integer) 0")
			wantAll(all("HSET", "{k}2", count, count+1), refused)
			c.want("HSET {k}2 0 short", "(integer) 0")
			c.want("HSET {k}2 1 short 2 7 3 0", "(integer) 0")
			c.want("HINCRBY {k}2 3 1000000000000", "(integer) 1000000000000")
			c.want("HSET {k}2 0 1"+text+text, refused)
			c.want("HPEXPIRE {k}2 100000 FIELDS 2 10 11", "1) (integer) 1\n2) (integer) 1")
			c.want("HDEL {k}2 12", "(integer) 1")
		}},
		{"RPUSH", func() {
			c.want("RPUSH {k}2 1"+text, refused)
			wantAll(all("RPUSH", "{k}2", 0, count), refused)
			for _, ends := range []string{"LEFT RIGHT", "RIGHT LEFT", "LEFT LEFT"} {
				c.want("LMOVE {k}2 {k}2 "+ends, `"000000`+text+`"`)
			}
			c.want("LMOVE {k}3 {k}2 LEFT LEFT", refused)
			c.want("LSET {k}2 0 1"+text, "OK")
			c.want("LSET {k}2 0 12"+text, refused)
			c.want("LLEN {k}2", "(integer) 5000")
		}},
		{"ZADD", func() {
			for from := 0; from < 500; from += 50 {
				wantAll(all("ZADD", "{k}2", from, from+50), "(integer) 50")
			}
			for i := 500; i < 600; i++ {
				wantAll(all("ZADD", "{k}2", i, i+1), "(integer) 1")
			}
			wantAll(all("ZADD", "{k}2", 600, count), "(integer) 4400")
			c.want("ZADD {k}2 1 1"+text, refused)
			c.want("ZADD {k}2 1 000000"+text+" 1 1"+text, refused)
			c.want("ZSCORE {k}2 000000"+text, `"5000"`)
		}},
		{"SADD", func() {
			wantAll(all("SADD", "{k}2", 0, count), "(integer) 0")
			wantAll(all("SADD", "{k}2", count, count+1), refused)
			c.want("SREM {k}2 000000"+text, "(integer) 1")
		}},
	} {
		for from := 0; from < count; from += 500 {
			args := all(x.verb, "k", from, from+500)
			if x.verb == "ZADD" {
				args = append(args[:2], args[4:]...)
				for i := 2; i < len(args); i += 2 {
					args[i] = []byte("0")
				}
			}
			c.sendArgs(args...)
			c.next()
		}
		c.want("RPUSH {k}3 2"+text, "(integer) 1")
		c.want("CONFIG SET maxmemory 16mb", "OK")
		c.want("COPY k {k}2", refused)
		c.want("RENAME k {k}2", "OK")
		x.changes()
		c.want("DEL {k}2 {k}3", "(integer) 2")
		c.want("CONFIG SET maxmemory 32mb", "OK")
	}

	// Strings that are not copied under a lock.
	c.wantBig("RPUSH k BIG", big, "(integer) 1")
	c.wantBig("RPUSH k BIG", big, "(integer) 2")
	c.want("CONFIG SET maxmemory 16mb", "OK")
	c.want("COPY k {k}2", refused)
	for _, ends := range []string{"LEFT RIGHT", "LEFT LEFT"} {
		c.send("LMOVE k k " + ends)
		if got := c.nextBig(big); got != "BIG" {
			t.Errorf("LMOVE %s of a long element answers %s", ends, got)
		}
	}
	c.wantBig("LSET k 1 BIG", big, "OK")
	c.want("LLEN k", "(integer) 2")
}
