package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestFieldsExpire: an expired field is absent for every command, and the key goes with the last
// one.
func TestFieldsExpire(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("HSET h a 1 b 2 c 3", "(integer) 3")
	c.want("HTTL h FIELDS 2 a nothing", "1) (integer) -1\n2) (integer) -2")
	c.want("HPEXPIRE h 20 FIELDS 2 a nothing", "1) (integer) 1\n2) (integer) -2")
	c.want("OBJECT ENCODING h", `"listpackex"`)
	c.want("HEXPIRE h 1000 FIELDS 1 b", "1) (integer) 1")
	wantTTL(t, c, "HTTL h FIELDS 1 b", 1000)
	c.want("HTTL h FIELDS 1 c", "1) (integer) -1")
	eventually(t, "the field expires", func() bool { return c.do("HLEN h") == "(integer) 2" })
	for line, want := range map[string]string{
		"HGET h a": "(nil)", "HEXISTS h a": "(integer) 0", "HSTRLEN h a": "(integer) 0", "HDEL h a": "(integer) 0",
		"HMGET h a b": "1) (nil)\n2) \"2\"", "HPERSIST h FIELDS 1 a": "1) (integer) -2",
		"HEXPIRE h 10 FIELDS 1 a": "1) (integer) -2", "HGETEX h EX 10 FIELDS 1 a": "1) (nil)", "HGETDEL h FIELDS 1 a": "1) (nil)",
		"HSETEX h FXX EX 10 FIELDS 1 a x": "(integer) 0",
	} {
		c.want(line, want)
	}
	c.want("HPERSIST h FIELDS 1 b", "1) (integer) 1")
	c.want("OBJECT ENCODING h", `"listpack"`)
	c.want("HINCRBY h a 5", "(integer) 5")
	c.want("HDEL h a b c", "(integer) 3")

	c.want("HSETEX h PX 20 FIELDS 2 a 1 b 2", "(integer) 1")
	eventually(t, "the key goes with its last fields", func() bool { return c.do("EXISTS h") == "(integer) 0" })
	c.want("HGETALL h", "(empty array)")
	c.want("SET h string", "OK")
}

// wantTTL checks the answer for one field, which may be up to a minute less.
func wantTTL(t *testing.T, c *client, line string, want int) {
	t.Helper()
	got := -1
	if _, _ = fmt.Sscanf(c.do(line), "1) (integer) %d", &got); got < want-60 || got > want {
		t.Errorf("%s answers %d, want %d or a little less", line, got, want)
	}
}

// TestManyFieldsExpire: what depends on the number of fields waits until all that have expired are
// removed.
func TestManyFieldsExpire(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	args := [][]byte{[]byte("HSET"), []byte("h")}
	expire := [][]byte{[]byte("HPEXPIREAT"), []byte("h"), nil, []byte("FIELDS"), []byte("9000")}
	for i := range 10_000 {
		args = append(args, fmt.Append(nil, i), []byte("v"))
		if i >= 1000 {
			expire = append(expire, fmt.Append(nil, i))
		}
	}
	c.sendArgs(args...)
	if got := c.next(); got != "(integer) 10000" {
		t.Fatal(got)
	}
	expire[2] = strconv.AppendInt(nil, n.cfg.Group.UnixMilli()+700, 10)
	c.sendArgs(expire...)
	if got := c.next(); strings.Count(got, "(integer) 1") != 9000 {
		t.Fatalf("HPEXPIREAT answers %.100s", got)
	}
	eventually(t, "the fields expire", func() bool { return c.do("HGET h 1000") == "(nil)" })
	c.want("HLEN h", "(integer) 1000")
	c.send("HKEYS h")
	if got := strings.Count(c.next(), "\n") + 1; got != 1000 {
		t.Errorf("HKEYS has %d fields, want 1000", got)
	}
}

// TestFieldExpiryFails has the errors of Redis 8.
func TestFieldExpiryFails(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	const (
		noFields = "(error) ERR Mandatory argument FIELDS is missing or not at the right position"
		badCount = "(error) ERR Number of fields must be a positive integer"
		mismatch = "(error) ERR The `numfields` parameter must match the number of arguments"
		notInt   = "(error) " + exec.ErrNotInteger
		negative = "(error) ERR invalid expire time, must be >= 0"
		oneTime  = "(error) ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
	)
	c.want("SET s v", "OK")
	c.want("HSET h f v", "(integer) 1")
	for line, want := range map[string]string{
		"HEXPIRE s x FIELDS 1 f":                 "(error) " + exec.ErrWrongType,
		"HEXPIRE h x FIELDS 1 f":                 notInt,
		"HEXPIRE h -1 FIELDS 1 f":                negative,
		"HEXPIRE h 70368744178 FIELDS 1 f":       "(error) ERR invalid expire time in 'hexpire' command",
		"HPEXPIREAT h 70368744177664 FIELDS 1 f": "(error) ERR invalid expire time in 'hpexpireat' command",
		"HEXPIRE h 10 FIELD 1 f":                 noFields,
		"HEXPIRE h 10 NX FIELD 1 f":              noFields,
		"HEXPIRE h 10 FIELDS 0 f":                "(error) ERR Parameter `numFields` should be greater than 0",
		"HEXPIRE h 10 FIELDS 2 f":                mismatch,
		"HEXPIRE h 10 FIELDS 1 f g":              mismatch,
		"HEXPIRE nothing 10 FIELDS 1 f":          "1) (integer) -2",
		"HEXPIRE h 10 XX FIELDS 1 f":             "1) (integer) 0",
		"HEXPIRE h 10 GT FIELDS 1 f":             "1) (integer) 0",
		"HTTL h FIELD 1 f":                       noFields,
		"HTTL h FIELDS x f":                      badCount,
		"HTTL h FIELDS 2 f":                      mismatch,
		"HPERSIST h FIELDS 1 f":                  "1) (integer) -1",
		"HGETDEL h FIELDS 0 f":                   badCount,
		"HGETDEL h FIELDS 2 f":                   mismatch,
		"HGETDEL s FIELDS 2 f":                   "(error) " + exec.ErrWrongType,
		"HGETDEL nothing FIELDS 2 f g":           "1) (nil)\n2) (nil)",
		"HGETEX h EX x FIELDS 1 f":               notInt,
		"HGETEX h EX -1 FIELDS 1 f":              negative,
		"HGETEX h KEEPTTL FIELDS 1 f":            noFields,
		"HGETEX h PERSIST FIELDS 1 f":            "1) \"v\"",
		"HSETEX h EX 1 PX 1 FIELDS 1 f v":        oneTime,
		"HSETEX h KEEPTTL PX 1 FIELDS 1 f v":     oneTime,
		"HSETEX h FNX FXX FIELDS 1 f v":          "(error) ERR Only one of FXX or FNX arguments can be specified",
		"HSETEX h FIELDS 0 f v":                  "(error) ERR invalid number of fields",
		"HSETEX h FIELDS 2 f v":                  "(error) ERR wrong number of arguments for 'hsetex' command",
		"HSETEX h NX FIELDS 1 f v":               "(error) ERR unknown argument: NX",
		"HSETEX h FNX FIELDS 1 f v":              "(integer) 0",
		"HSETEX nothing FXX FIELDS 1 f v":        "(integer) 0",
	} {
		c.want(line, want)
	}
	c.want("HLEN h", "(integer) 1")
	c.want("EXISTS nothing", "(integer) 0")
}

// TestFieldsThatExpireAtOnce: a time in the past deletes the field, and the key with the last one.
func TestFieldsThatExpireAtOnce(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("HSET h a 1 b 2 c 3 d 4", "(integer) 4")
	c.want("HEXPIRE h 0 FIELDS 2 a a", "1) (integer) 2\n2) (integer) -2")
	c.want("HPEXPIREAT h 1 GT FIELDS 1 b", "1) (integer) 0")
	c.want("HPEXPIREAT h 1 LT FIELDS 1 b", "1) (integer) 2")
	c.want("HGETEX h PXAT 1 FIELDS 2 c c", "1) \"3\"\n2) (nil)")
	c.want("HSETEX h PXAT 1 FIELDS 1 d 5", "(integer) 1")
	c.want("EXISTS h", "(integer) 0")
	c.want("HSET h a 1", "(integer) 1")
	c.want("HGETDEL h FIELDS 2 a a", "1) \"1\"\n2) (nil)")
	c.want("EXISTS h", "(integer) 0")
}

// TestFieldsKeepTheirTime: what keeps the expiry of a field, and what ends it.
func TestFieldsKeepTheirTime(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	far := time.Now().Add(1000 * time.Hour).Unix()
	time := fmt.Sprintf("1) (integer) %d", far)
	c.want(fmt.Sprintf("HSETEX h EXAT %d FIELDS 1 n 1", far), "(integer) 1")
	c.want("HEXPIRETIME h FIELDS 1 n", time)
	c.want("HINCRBY h n 2", "(integer) 3")
	c.want("HINCRBYFLOAT h n 0.5", `"3.5"`)
	c.want("HSETEX h KEEPTTL FIELDS 1 n 7", "(integer) 1")
	c.want("HEXPIRETIME h FIELDS 1 n", time)
	c.want("HPEXPIRETIME h FIELDS 1 n", time+"000")
	c.want("HSET h n 8", "(integer) 0")
	c.want("HEXPIRETIME h FIELDS 1 n", "1) (integer) -1")
	c.want(fmt.Sprintf("HEXPIREAT h %d NX FIELDS 1 n", far), "1) (integer) 1")
	c.want(fmt.Sprintf("HEXPIREAT h %d GT FIELDS 1 n", far), "1) (integer) 0")
	c.want(fmt.Sprintf("HEXPIREAT h %d LT FIELDS 1 n", far-5), "1) (integer) 1")
	c.want("HSETEX h FIELDS 1 n 9", "(integer) 1")
	c.want("HGETEX h EX 100 FIELDS 1 n", `1) "9"`)
	wantTTL(t, c, "HTTL h FIELDS 1 n", 100)
	c.want("HGETEX h PERSIST FIELDS 1 n", `1) "9"`)
	c.want("HTTL h FIELDS 1 n", "1) (integer) -1")
	c.want("PEXPIRE h 100000", "(integer) 1")
	c.want("HEXPIRE h 100 FIELDS 1 n", "1) (integer) 1")
	if got := c.do("PTTL h"); got == "(integer) -1" {
		t.Error("the key has lost its expiry with its form")
	}
}

// TestFieldExpiryReachesTheFollower: a follower never removes a field by itself, and has the same
// times when it takes over.
func TestFieldExpiryReachesTheFollower(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	table = altered(table, func(next *ring.Table) { next.Follower[p], next.Level = 1, ring.Level })
	install(t, table, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	c := dial(t, nodes[0].Addr())
	hash := "{" + key + "}h"
	c.want("HSET "+hash+" a 1 b 2 c 3", "(integer) 3")
	c.want("HPEXPIRE "+hash+" 30 FIELDS 1 a", "1) (integer) 1")
	c.want("HEXPIRE "+hash+" 5000 FIELDS 1 b", "1) (integer) 1")
	c.want("HSETEX {"+key+"}gone PX 30 FIELDS 1 a x", "(integer) 1")
	eventually(t, "the fields expire", func() bool { return c.do("HLEN "+hash)+c.do("EXISTS {"+key+"}gone") == "(integer) 2(integer) 0" })
	for _, s := range nodes[0].senders.List() {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	later := nodes[1].cfg.Group.UnixMilli() + 10_000_000
	if n := nodes[1].engine.Sweep(later, nodes[1].engine.Pages()); n != 0 {
		t.Errorf("the follower has removed %d keys by itself", n)
	}
	if err := nodes[0].Close(); err != nil {
		t.Fatal(err)
	}
	install(t, tableWithout(table, 0), nodes[1], nodes[2])
	c = dial(t, nodes[1].Addr())
	c.want("HMGET "+hash+" a b c", "1) (nil)\n2) \"2\"\n3) \"3\"")
	wantTTL(t, c, "HTTL "+hash+" FIELDS 1 b", 5000)
	c.want("HTTL "+hash+" FIELDS 1 c", "1) (integer) -1")
	c.want("EXISTS {"+key+"}gone", "(integer) 0")
}

// TestFieldsTakeMemory has the figures of the doc comment of package hashes.
func TestFieldsTakeMemory(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("HSET h 01234567890123a b12345678901234 01234567890123c d12345678901234", "(integer) 2")
	c.want("MEMORY USAGE h", "(integer) 90")
	c.want("HEXPIRE h 1000 FIELDS 1 01234567890123a", "1) (integer) 1")
	c.want("MEMORY USAGE h", "(integer) 322")
}
