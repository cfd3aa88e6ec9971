package rdb

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// redisConn talks to a redis-server.
type redisConn struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialRedis(t *testing.T) *redisConn {
	conn, err := net.Dial("tcp", redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &redisConn{t, conn, bufio.NewReader(conn)}
}

// do sends a command and returns the strings of its reply.
func (c *redisConn) do(args ...string) (all []string) {
	c.t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	c.Write(b.Bytes())
	for left := 1; left > 0; left-- {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		switch kind := line[0]; {
		case n < 0 && kind != ':':
			all = append(all, "(nil)")
		case kind == '*':
			left += n
		case kind == '$':
			s := make([]byte, n+2)
			if _, err := io.ReadFull(c.in, s); err != nil {
				c.t.Fatal(err)
			}
			all = append(all, string(s[:n]))
		case kind == '-':
			c.t.Fatalf("%.100q: %s", args, line)
		default:
			all = append(all, strings.TrimSpace(line[1:]))
		}
	}
	return all
}

// content returns what a key has, as describe does.
func (c *redisConn) content(key string) string {
	c.t.Helper()
	var all []string
	pairs := func(flat []string, format string) {
		for i := 0; i < len(flat); i += 2 {
			second := flat[i+1]
			if format == "%.40q=%s" {
				f, _ := strconv.ParseFloat(second, 64)
				second = fmt.Sprint(f)
			}
			all = append(all, fmt.Sprintf(format, flat[i], second))
		}
		slices.Sort(all)
	}
	switch c.do("TYPE", key)[0] {
	case "list":
		for _, s := range c.do("LRANGE", key, "0", "-1") {
			all = append(all, fmt.Sprintf("%.40q", s))
		}
	case "set":
		for _, s := range c.do("SMEMBERS", key) {
			all = append(all, fmt.Sprintf("%.40q", s))
		}
		slices.Sort(all)
	case "zset":
		pairs(c.do("ZRANGE", key, "0", "-1", "WITHSCORES"), "%.40q=%s")
	case "hash":
		pairs(c.do("HGETALL", key), "%.40q=%.40q")
	}
	return strings.Join(all, " ")
}

// sorted is what describe says of a payload, in the order of content.
func sorted(t *testing.T, payload []byte) string {
	t.Helper()
	e, err := ReadElements(payload)
	if err != nil {
		t.Fatal(err)
	}
	got, err := describe(payload)
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind() != KindList {
		all := strings.Split(got, " ")
		slices.Sort(all)
		got = strings.Join(all, " ")
	}
	return got
}

// TestElementsWithRedis compares redis-server's payloads with the values, and gives it ours.
func TestElementsWithRedis(t *testing.T) {
	c := dialRedis(t)
	c.do("CONFIG", "SET", "sanitize-dump-payload", "yes")
	for _, x := range encoded {
		if !x.knows {
			continue
		}
		payload := withVersion(x.head, min(x.version, 10))
		c.do("RESTORE", "k", "0", string(payload), "REPLACE")
		if got, want := sorted(t, payload), c.content("k"); got != want {
			t.Errorf("type %d: read %s, Redis has %s", x.head[0], got, want)
		}
	}
	long := strings.Repeat("abc", 3000)
	small := []string{"a", "0", "127", "128", "-1", "4095", "-4096", "-4097", "32768", "-8388608", "2147483648", "-9223372036854775808",
		"9223372036854775807", "007", "", strings.Repeat("x", 63), strings.Repeat("y", 64)}
	big := slices.Clone(small)
	for i := range 700 {
		big = append(big, fmt.Sprintf("element:%d", i), strconv.Itoa(i*i*37+1000))
	}
	fill := func(elements []string) {
		c.do("FLUSHALL")
		c.do(append([]string{"RPUSH", "list"}, elements...)...)
		c.do(append([]string{"SADD", "set"}, elements...)...)
		hash, zset := []string{"HSET", "hash"}, []string{"ZADD", "zset"}
		scores := []float64{0, 1, -1, 0.1, 1e300, math.Inf(1), math.Inf(-1), 1 << 53, 3.5}
		for i, s := range elements {
			hash = append(hash, s, strings.Repeat(strconv.Itoa(i), i%7))
			zset = append(zset, strconv.FormatFloat(scores[i%len(scores)], 'g', 17, 64), s)
		}
		c.do(hash...)
		c.do(zset...)
		c.do("SADD", "ints", "1", "2", "3", "-32768")
		c.do("SADD", "longints", "1", "70000", "-5000000000")
	}
	check := func(name string) {
		for _, key := range []string{"list", "set", "hash", "zset", "ints", "longints"} {
			theirs := []byte(c.do("DUMP", key)[0])
			want := c.content(key)
			if got := sorted(t, theirs); got != want {
				t.Errorf("%s: read %.300s, Redis has %.300s", name+" "+key, got, want)
			}
			e, _ := ReadElements(theirs)
			form := map[Kind]Form{KindList: FormList, KindSet: FormSet, KindSortedSet: FormSortedSet, KindHash: FormHash}[e.Kind()]
			var all []Element
			for x, ok := e.Next(); ok; x, ok = e.Next() {
				x.First, x.Second = slices.Clone(x.First), slices.Clone(x.Second)
				all = append(all, x)
			}
			c.do("RESTORE", "ours", "0", string(write(form, all)), "REPLACE")
			if got := c.content("ours"); got != want {
				t.Errorf("%s: Redis reads ours as %.300s, want %.300s", name+" "+key, got, want)
			}
		}
	}
	for _, compression := range []string{"yes", "no"} {
		c.do("CONFIG", "SET", "rdbcompression", compression)
		for name, elements := range map[string][]string{"small": small, "big": big, "long": append([]string{long}, small...)} {
			fill(elements)
			check(name + " " + compression)
		}
	}
}
