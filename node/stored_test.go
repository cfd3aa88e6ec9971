package node

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestDestinationOutlivesOOM: a command that stores a result and finds no memory for it leaves the
// destination as it was, and no memory taken.
func TestDestinationOutlivesOOM(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t, func(c *Config) {
		c.Group, c.Memory, c.Shards, c.Eviction = newGroup(t, 1), 16<<20, 1, "noeviction"
	})
	c := dial(t, n.Addr())
	name := func(i int) string { return fmt.Sprintf("%0100d", i) }
	const members = 1000
	for from := 0; from < members; from += 500 {
		zadd, push, geo := []string{"ZADD", "{k}z"}, []string{"RPUSH", "{k}l"}, []string{"GEOADD", "{k}g"}
		sadd := []string{"SADD", "{k}s"}
		for i := from; i < from+500; i++ {
			zadd = append(zadd, fmt.Sprint(i), name(i))
			push, sadd = append(push, name(i)), append(sadd, name(i))
			geo = append(geo, fmt.Sprint(float64(i)/1000), "1", name(i))
		}
		for _, args := range [][]string{zadd, push, geo, sadd} {
			c.send(strings.Join(args, " "))
			c.next()
		}
	}
	c.want("SET {k}d old", "OK")
	lines := []string{
		"ZUNIONSTORE {k}d 1 {k}z", "ZINTERSTORE {k}d 2 {k}z {k}z", "ZDIFFSTORE {k}d 2 {k}z {k}none",
		"ZRANGESTORE {k}d {k}z 0 -1", "GEOSEARCHSTORE {k}d {k}g FROMLONLAT 1 1 BYRADIUS 5000 km",
		"SORT {k}l ALPHA STORE {k}d", "SUNIONSTORE {k}d {k}s {k}none", "SINTERSTORE {k}d {k}s {k}s",
		"SDIFFSTORE {k}d {k}s {k}none",
	}
	stored := fmt.Sprintf("(integer) %d", members)
	for _, line := range lines {
		c.want(line, stored)
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
			if free > 0 && got == stored {
				break
			}
			if got != "(error) "+exec.ErrOOM && got != "(error) "+exec.Unbuilt([]byte("{k}d")) {
				t.Fatalf("%s answers %s in step %d", line, got, free)
			}
			c.want("GET {k}d", `"old"`)
			c.want("DBSIZE", fmt.Sprintf("(integer) %d", fill+5))
			if fill < 20 {
				t.Fatalf("%s finds no memory in a node that is nearly empty", line)
			}
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

// TestLongPopNeedsNoRoom: a long element is popped when there is no memory for a copy of it.
func TestLongPopNeedsNoRoom(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Eviction = 32<<20, "noeviction" })
	c, big := dial(t, n.Addr()), bigValue(2<<20, 1)
	for range 3 {
		c.sendArgs([]byte("RPUSH"), []byte("l"), big)
		c.read()
	}
	c.wantBig("HSET h f BIG", big, "(integer) 1")
	c.fillWith(1000, 40_000)
	for _, line := range []string{"LPOP l", "RPOP l 1", "LMPOP 1 l LEFT", "HGETDEL h FIELDS 1 f"} {
		c.send(line)
		if got := c.read(); !bytes.Contains(got, big) {
			t.Errorf("%.20s answers %.100q", line, got)
		}
	}
	c.want("EXISTS l h", "(integer) 0")
}

// TestHGetDelIsTooLarge: if the reply would be too large, no field is deleted.
func TestHGetDelIsTooLarge(t *testing.T) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = 300 << 20 }).Addr())
	line := "HGETDEL h FIELDS 300"
	for i := range 300 {
		c.sendArgs([]byte("HSET"), []byte("h"), fmt.Append(nil, i), make([]byte, exec.MaxReply/290))
		line += fmt.Sprint(" ", i)
	}
	for range 300 {
		c.next()
	}
	if got := c.do(line); !strings.HasPrefix(got, "(error) ERR the reply would be too large") {
		t.Errorf("HGETDEL answers %.100s", got)
	}
	c.want("HLEN h", "(integer) 300")
	c.want("HDEL h 0", "(integer) 1")
	long := "HGETDEL i FIELDS 1000"
	for i := range 1000 {
		c.do(fmt.Sprint("HSET i ", i, " v"))
		long += fmt.Sprint(" ", i)
	}
	c.send(long)
	if got, want := c.next(), fmt.Sprintf("1000) %q", "v"); !strings.HasSuffix(got, want) {
		t.Errorf("HGETDEL answers %.100s", got)
	}
	c.want("EXISTS i", "(integer) 0")
}

// TestKeyGoneBetweenRuns: a command of many runs whose key vanishes between two of them answers an
// error then, or all if it has ended before; never less than its head declares.
func TestKeyGoneBetweenRuns(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	const members = 12_000
	zadd, sadd := []string{"ZADD z"}, []string{"SADD z"}
	for i := range members {
		zadd, sadd = append(zadd, fmt.Sprint(i, " m", i)), append(sadd, fmt.Sprint("m", i))
	}
	for _, x := range []struct {
		make []string
		line string
	}{
		{zadd, "ZPOPMIN z 11000"},
		{zadd, "ZMPOP 1 z MAX COUNT 11000"},
		{zadd, "ZRANDMEMBER z 11000"},
		{zadd, "ZRANDMEMBER z -11000"},
		{zadd, "ZRANGESTORE {z}d z 0 11000"},
		{zadd, "ZUNIONSTORE {z}d 1 z"},
		{sadd, "SPOP z 11000"},
	} {
		c.do("DEL z {z}d")
		c.sendArgs(bytes.Fields([]byte(strings.Join(x.make, " ")))...)
		c.next()
		c.send(x.line)
		replied := make(chan string, 1)
		go func() { replied <- c.next() }()
		got := ""
		for begun := false; got == ""; {
			select {
			case got = <-replied:
			default:
				if begun = begun || len(n.engine.Holds()) == 1; begun {
					lock := n.engine.Lock(partitionOf("z"), time.Now().UnixMilli())
					lock.Delete([]byte("z"))
					lock.Unlock()
				}
				runtime.Gosched()
			}
		}
		if strings.HasPrefix(got, "(error)") && got != "(error) "+exec.ErrGone {
			t.Errorf("%s answers %.100s", x.line, got)
		}
		c.do("DEL z {z}d")
	}
}

// TestRandomFieldOfExpired: while a hash has only fields that have expired, HRANDFIELD answers
// none.
func TestRandomFieldOfExpired(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	setSoonExpired(c, 9000, "v")
	if got := c.next(); got != "(integer) 1" {
		t.Fatalf("HSETEX answers %s", got)
	}
	eventually(t, "the fields expire", func() bool {
		got := c.do("HRANDFIELD h -3")
		if strings.HasPrefix(got, "(error)") {
			t.Errorf("HRANDFIELD answers %s", got)
			return true
		}
		return got == "(empty array)"
	})
}

// setSoonExpired sends a HSETEX of fields of h that expire soon.
func setSoonExpired(c *client, fields int, value string) {
	hset := []string{"HSETEX h PX 300 FIELDS", fmt.Sprint(fields)}
	for i := range fields {
		hset = append(hset, fmt.Sprint(i), value)
	}
	c.sendArgs(bytes.Fields([]byte(strings.Join(hset, " ")))...)
}

// TestRandomFieldAmongExpired: HRANDFIELD finds the only field of a big hash that has not expired.
func TestRandomFieldAmongExpired(t *testing.T) {
	forOneClient(t)
	c := dial(t, startLeveled(t).Addr())
	c.want("HSET h live v", "(integer) 1")
	setSoonExpired(c, 60_000, "v")
	c.next()
	eventually(t, "the fields expire", func() bool {
		got := c.do("HRANDFIELD h")
		if got == "(nil)" {
			t.Error("HRANDFIELD answers null, want the field that is there")
		}
		return got == "(nil)" || got == `"live"`
	})
	for range 20 { // also when the others have been removed
		c.want("HRANDFIELD h", `"live"`)
	}
}
