package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// An element that stays is seen by a scan, also if the collection is so small in between that it is packed,
// and has another order afterwards.
func TestScanOfRemade(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	many := func(command, key, each string, from, to int) {
		line := command + " " + key
		for i := from; i < to; i++ {
			line += " " + strings.ReplaceAll(each, "#", fmt.Sprint(i))
		}
		c.do(line)
	}
	for _, x := range []struct{ add, remove, scan, each string }{
		{"HSET", "HDEL", "HSCAN", "e# v"}, {"SADD", "SREM", "SSCAN", "e#"}, {"ZADD", "ZREM", "ZSCAN", "# e#"},
	} {
		const stay, all = 30, 900
		many(x.add, x.add, x.each, 0, all)
		seen := map[string]bool{}
		scan := func(cursor string) (next string) {
			c.send(x.scan + " " + x.add + " " + cursor + " COUNT 100")
			reply := c.read()
			_, at, _ := resp.DecodeArray(reply)
			word, at := resp.DecodeArgument(reply, at)
			for _, s := range stringsOf(t, reply[at:]) {
				seen[s] = true
			}
			return string(word)
		}
		cursor := "0"
		for range 5 {
			cursor = scan(cursor)
		}
		many(x.remove, x.add, "e#", stay, all)
		c.want("OBJECT ENCODING "+x.add, `"listpack"`)
		many(x.add, x.add, x.each, stay, all)
		for cursor != "0" {
			cursor = scan(cursor)
		}
		for i := range stay {
			if !seen[fmt.Sprint("e", i)] {
				t.Errorf("%s has not seen element %d", x.scan, i)
			}
		}
	}
}

// TestScanMatchesLong: where elements are parts of their own, a scan with a pattern takes as many calls as
// one without.
func TestScanMatchesLong(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	text := strings.Repeat("v", 250)
	for _, x := range []struct{ add, scan, each string }{
		{"HSET", "HSCAN", "e# " + text}, {"SADD", "SSCAN", "e#" + text}, {"ZADD", "ZSCAN", "# e#" + text},
	} {
		const all = 1000
		for from := 0; from < all; from += 100 {
			line := x.add + " " + x.add
			for i := from; i < from+100; i++ {
				line += " " + strings.ReplaceAll(x.each, "#", fmt.Sprint(i))
			}
			c.do(line)
		}
		calls := func(options string) (calls, found int) {
			for cursor := "0"; calls == 0 || cursor != "0"; calls++ {
				c.send(x.scan + " " + x.add + " " + cursor + " COUNT 1000" + options)
				reply := c.read()
				_, at, _ := resp.DecodeArray(reply)
				word, at := resp.DecodeArgument(reply, at)
				cursor, found = string(word), found+len(stringsOf(t, reply[at:]))
			}
			return calls, found
		}
		plain, found := calls("")
		if found < all || plain > 10 {
			t.Errorf("%s returns %d strings in %d calls", x.scan, found, plain)
		}
		for _, pattern := range []string{"x*", "e12*", "*none*"} {
			if matching, found := calls(" MATCH " + pattern); matching != plain {
				t.Errorf("%s MATCH %s returns %d strings in %d calls, and all in %d", x.scan, pattern, found, matching, plain)
			}
		}
	}
}
