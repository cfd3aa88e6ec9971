package rdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stream returns what a key's stream has, as XINFO STREAM FULL and XRANGE say it. The first ID is in the
// second; in the first one it is undefined if Redis has read an empty stream of type 15.
func (c *redisConn) stream(key string) string {
	c.t.Helper()
	all := c.do("XINFO", "STREAM", key, "FULL", "COUNT", "0")
	for i := 0; i < len(all); i++ {
		if strings.HasPrefix(all[i], "radix-tree-") || all[i] == "recorded-first-entry-id" {
			all = slices.Delete(all, i, i+2)
			i--
		}
	}
	return fmt.Sprintf("%.40q %.40q", all, c.do("XRANGE", key, "-", "+"))
}

// fillStream makes a random stream with commands.
func (c *redisConn) fillStream(r *rand.Rand, key string, deletes bool) {
	c.do("DEL", key)
	ms, groups := 1000, 1+r.IntN(3)
	for g := range groups {
		c.do("XGROUP", "CREATE", key, strconv.Itoa(g), "0", "MKSTREAM")
	}
	var ids []string
	for range r.IntN(500) {
		ms += r.IntN(5)
		args := []string{"XADD", key, fmt.Sprintf("%d-%d", ms, len(ids)+1)}
		for f := range 1 + r.IntN(3)*r.IntN(2) {
			value := strconv.Itoa(r.IntN(1<<r.IntN(31)) - 5000)
			switch r.IntN(20) {
			case 0:
				value = strings.Repeat("long ", r.IntN(3000))
			case 1, 2, 3:
				value = strings.Repeat("v", r.IntN(90))
			}
			args = append(args, "field"+strconv.Itoa(f+r.IntN(10)/9), value)
		}
		ids = append(ids, c.do(args...)[0])
		group, consumer := strconv.Itoa(r.IntN(groups)), "consumer"+strconv.Itoa(r.IntN(5))
		id := ids[r.IntN(len(ids))]
		switch r.IntN(12) {
		case 0, 1, 2:
			c.do("XREADGROUP", "GROUP", group, consumer, "COUNT", strconv.Itoa(1+r.IntN(9)), "STREAMS", key, ">")
		case 3:
			c.do("XACK", key, group, id)
		case 4:
			c.do("XCLAIM", key, group, consumer, "0", id, "TIME", strconv.Itoa(r.IntN(1<<30)), "RETRYCOUNT", strconv.Itoa(r.IntN(1<<20)))
		case 5:
			c.do("XGROUP", "CREATECONSUMER", key, group, strconv.Itoa(r.IntN(9)))
		case 6:
			if deletes {
				c.do("XDEL", key, id)
			}
		case 7:
			if deletes && r.IntN(20) == 0 {
				c.do("XTRIM", key, "MAXLEN", strconv.Itoa(r.IntN(200)))
			}
		}
	}
	if r.IntN(3) == 0 {
		c.do("XSETID", key, "999999-5", "ENTRIESADDED", "5000", "MAXDELETEDID", "77-7")
	}
}

// TestStreamWithRedis compares redis-server's payloads with its streams, and gives it ours.
func TestStreamWithRedis(t *testing.T) {
	c := dialRedis(t)
	c.do("CONFIG", "SET", "sanitize-dump-payload", "yes")
	for i, x := range streamPayloads {
		if !x.knows {
			continue
		}
		payload := withVersion(x.head, min(x.version, 10))
		c.do("RESTORE", "theirs", "0", string(payload), "REPLACE")
		m, err := readModel(payload)
		if err != nil {
			t.Fatal(err)
		}
		c.do("RESTORE", "ours", "0", string(m.write(t, false)), "REPLACE")
		if got, want := c.stream("ours"), c.stream("theirs"); got != want {
			t.Errorf("%d: Redis reads ours as %s, want %s", i, got, want)
		}
	}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		deletes, compresses := r.IntN(2) == 0, r.IntN(2) == 0
		c.do("CONFIG", "SET", "rdbcompression", map[bool]string{true: "yes", false: "no"}[compresses])
		c.fillStream(r, "theirs", deletes)
		theirs := c.do("DUMP", "theirs")[0]
		m, err := readModel([]byte(theirs))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var entries []string
		for _, x := range m.entries {
			entries = append(entries, fmt.Sprintf("%d-%d", x.ID.Ms, x.ID.Seq))
			for _, s := range x.Strings {
				entries = append(entries, string(s))
			}
		}
		if want := c.do("XRANGE", "theirs", "-", "+"); !slices.Equal(entries, want) {
			t.Errorf("seed %d: read %.300q, Redis has %.300q", seed, entries, want)
		}
		ours := m.write(t, false)
		if !deletes && !compresses && string(ours) != theirs {
			t.Errorf("seed %d: payload %.200q, want %.200q", seed, ours, theirs)
		}
		c.do("RESTORE", "ours", "0", string(ours), "REPLACE")
		if got, want := c.stream("ours"), c.stream("theirs"); got != want {
			t.Errorf("seed %d: Redis reads ours as %.1000s\nwant %.1000s", seed, got, want)
		}
	}
}

// TestStreamToRedis has redis-server read random streams of ours.
func TestStreamToRedis(t *testing.T) {
	c := dialRedis(t)
	c.do("CONFIG", "SET", "sanitize-dump-payload", "yes")
	for seed := range uint64(40) {
		m := randomStream(rand.New(rand.NewPCG(seed, 3)))
		c.do("RESTORE", "ours", "0", string(m.write(t, false)), "REPLACE")
		got, err := readModel([]byte(c.do("DUMP", "ours")[0]))
		for _, g := range m.groups {
			for i := range g.consumers {
				g.consumers[i].Active = g.consumers[i].Seen
			}
		}
		if err != nil || got.String() != m.String() {
			t.Fatalf("seed %d: %v, got\n%s\nwant\n%s", seed, err, got.String(), m.String())
		}
	}
}
