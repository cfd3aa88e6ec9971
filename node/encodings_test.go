package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// encodingCases are values, and what they are under the limits. Redis 7.0 agrees, which has no listpacks of sets
// and lists, unless a case is of a later one.
var encodingCases = []struct {
	limits string // of CONFIG SET
	fill   string // # is a number from 0 to n-1
	n      int
	want   string
	later  bool
}{
	{"hash-max-listpack-entries 3", "HSET k # v", 3, "listpack", false},
	{"hash-max-listpack-entries 3", "HSET k # v", 4, "hashtable", false},
	{"hash-max-ziplist-entries 2", "HSET k # v", 3, "hashtable", false},
	{"hash-max-listpack-entries 600", "HSET k # v", 600, "listpack", false},
	{"hash-max-listpack-entries 100000", "HSET k # v", 9000, "listpack", false},
	{"hash-max-listpack-value 3", "HSET k # abc", 5, "listpack", false},
	{"hash-max-listpack-value 3", "HSET k # abcd", 5, "hashtable", false},
	{"hash-max-listpack-value 1kb", "HSET k # " + strings.Repeat("x", 1000), 5, "listpack", false},
	{"hash-max-listpack-value 1kb", "HSET k # " + strings.Repeat("x", 1025), 5, "hashtable", false},
	{"zset-max-listpack-entries 3", "ZADD k 1 #", 3, "listpack", false},
	{"zset-max-ziplist-entries 3", "ZADD k 1 #", 4, "skiplist", false},
	{"zset-max-listpack-entries 700", "ZADD k 1 #", 700, "listpack", false},
	{"zset-max-listpack-value 5", "ZADD k 1 m:#", 9, "listpack", false},
	{"zset-max-ziplist-value 2", "ZADD k 1 m:#", 9, "skiplist", false},
	{"set-max-intset-entries 3", "SADD k #", 3, "intset", false},
	{"set-max-intset-entries 700", "SADD k #", 700, "intset", false},
	{"set-max-intset-entries 100", "SADD k #", 200, "hashtable", false},
	{"set-max-listpack-entries 3", "SADD k m#", 3, "listpack", true},
	{"set-max-listpack-entries 3", "SADD k m#", 4, "hashtable", true},
	{"set-max-listpack-entries 1000", "SADD k m#", 1000, "listpack", true},
	{"set-max-listpack-value 5", "SADD k member#", 9, "hashtable", true},
	{"list-max-listpack-size 3", "RPUSH k e#", 3, "listpack", true},
	{"list-max-listpack-size 3", "RPUSH k e#", 4, "quicklist", true},
	{"list-max-ziplist-size 2000", "RPUSH k e#", 1000, "listpack", true},
	{"list-max-ziplist-size 2000", "RPUSH k e#", 2000, "quicklist", true},
	{"list-max-listpack-size -1", "RPUSH k " + strings.Repeat("x", 1000), 3, "listpack", true},
	{"list-max-listpack-size -1", "RPUSH k " + strings.Repeat("x", 1000), 5, "quicklist", true},
	{"list-max-listpack-size -5", "RPUSH k " + strings.Repeat("x", 1000), 60, "listpack", true},
	{"list-max-listpack-size -5", "RPUSH k " + strings.Repeat("x", 1000), 70, "quicklist", true},
}

func playEncodings(t *testing.T, c *client, later bool) {
	t.Helper()
	for _, x := range encodingCases {
		if x.later && !later {
			continue
		}
		name, _, _ := strings.Cut(x.limits, " ")
		before := strings.Fields(c.do("CONFIG GET " + name))
		c.do("DEL k")
		c.want("CONFIG SET "+x.limits, "OK")
		for i := range x.n {
			c.send(strings.ReplaceAll(x.fill, "#", fmt.Sprint(i)))
		}
		for range x.n {
			c.next()
		}
		if got := c.do("OBJECT ENCODING k"); got != bulk(x.want) {
			t.Errorf("with %s, %d times %.20s... makes %s, want %s", x.limits, x.n, x.fill, got, x.want)
		}
		c.want("CONFIG SET "+name+" "+strings.Trim(before[len(before)-1], `"`), "OK")
	}
}

// OBJECT ENCODING answers by the parameters of Redis's encodings, by both of their names.
func TestEncodingLimits(t *testing.T) { playEncodings(t, dial(t, startLeveled(t).Addr()), true) }

func TestEncodingLimitsOfRedis(t *testing.T) {
	forOneClient(t)
	playEncodings(t, dial(t, redistest.Start(t)), redistest.Version(t) >= "7.2")
}
