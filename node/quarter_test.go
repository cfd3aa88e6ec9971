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
	for verb, line := range map[string]string{
		"SADD": "SUNIONSTORE {t}d {t}1 {t}2", "RPUSH": "LMOVE {t}1 {t}2 LEFT LEFT",
	} {
		for n := 0; n < 5000; n += 50 {
			c.sendArgs(add(verb, fmt.Sprintf("{t}%d", 1+n%100/50), 50)...)
			c.next()
		}
		if verb != "RPUSH" {
			c.want(line, refused("{t}d"))
		} else {
			got := ""
			for n := 0; n < 2500 && !strings.HasPrefix(got, "(error)"); n++ {
				got = c.do(line)
			}
			if got != refused("{t}2") {
				t.Errorf("LMOVE answers %s", got)
			}
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
