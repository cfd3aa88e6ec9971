package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestDestinationOutlivesOOM: a command that stores a result and finds no memory for it leaves the
// destination as it was, and no memory taken.
func TestDestinationOutlivesOOM(t *testing.T) {
	n := startLeveled(t, func(c *Config) {
		c.Group, c.Memory, c.Shards, c.Eviction = newGroup(t, 1), 16<<20, 1, "noeviction"
	})
	c := dial(t, n.Addr())
	name := func(i int) string { return fmt.Sprintf("%0100d", i) }
	const members = 1000
	for from := 0; from < members; from += 500 {
		zadd, push, geo := []string{"ZADD", "{k}z"}, []string{"RPUSH", "{k}l"}, []string{"GEOADD", "{k}g"}
		for i := from; i < from+500; i++ {
			zadd = append(zadd, fmt.Sprint(i), name(i))
			push = append(push, name(i))
			geo = append(geo, fmt.Sprint(float64(i)/1000), "1", name(i))
		}
		for _, args := range [][]string{zadd, push, geo} {
			c.send(strings.Join(args, " "))
			c.next()
		}
	}
	c.want("SET {k}d old", "OK")
	lines := []string{
		"ZUNIONSTORE {k}d 1 {k}z", "ZINTERSTORE {k}d 2 {k}z {k}z", "ZDIFFSTORE {k}d 2 {k}z {k}none",
		"ZRANGESTORE {k}d {k}z 0 -1", "GEOSEARCHSTORE {k}d {k}g FROMLONLAT 1 1 BYRADIUS 5000 km",
		"SORT {k}l ALPHA STORE {k}d",
	}
	for _, line := range lines {
		c.want(line, fmt.Sprintf("(integer) %d", members))
		c.want("SET {k}d old", "OK")
	}
	fill := 0
	for size := 10_000; size >= 1000; size /= 10 {
		for put(n, fmt.Sprint("fill", fill), string(make([]byte, size)), engine.TypeString) == nil {
			fill++
		}
	}
	for _, line := range lines {
		// With a little more memory each time, the command comes farther.
		for free := 0; ; free++ {
			got := c.do(line)
			if got != "(error) "+exec.ErrOOM {
				if free == 0 {
					t.Errorf("%s answers %s though there is no memory", line, got)
				}
				break
			}
			c.want("GET {k}d", `"old"`)
			c.want("DBSIZE", fmt.Sprintf("(integer) %d", fill+4))
			for range 20 {
				fill--
				c.want(fmt.Sprint("DEL fill", fill), "(integer) 1")
			}
		}
		c.want("SET {k}d old", "OK")
		for put(n, fmt.Sprint("fill", fill), string(make([]byte, 1000)), engine.TypeString) == nil {
			fill++
		}
	}
}
