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
