//go:build linux && !race

package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A string in a value can have 512 MiB. So the law is also looked at with long elements: each command
// is asked all that TestTimeLaw asks it about a hash, a list, a set or a sorted set, of values with
// long strings. An element of a megabyte takes four times lockBound to be copied.

// longNames has the keys that take the place of those of hostile. Members and fields have 64 KiB at
// most, as keys do.
var longNames = map[string][]string{
	"{k}hash": {"{k}hlong", "{k}hwords"}, "{k}few": {"{k}hlong"},
	"{k}list": {"{k}llong", "{k}lwords"}, "{k}dense": {"{k}lwords", "{k}llong"},
	"{k}set": {"{k}swords"}, "{k}members": {"{k}swords"},
	"{k}zset": {"{k}zwords"}, "{k}zfew": {"{k}zwords"}, "{k}places": {"{k}zwords"},
}

// longRequests are asked besides.
var longRequests = map[string]string{
	"copy":       "{k}hlong {k}d REPLACE; {k}llong {k}d REPLACE; {k}swords {k}d REPLACE; {k}zwords {k}d REPLACE",
	"hrandfield": "{k}hnear -256 WITHVALUES; {k}hnear 128 WITHVALUES",
	"hgetall":    "{k}hnear", "hvals": "{k}hnear", "hscan": "{k}hnear 0 COUNT 1000",
	"dump":   "{k}hnear; {k}lnear; {k}hlong; {k}llong; {k}lwords; {k}zwords",
	"lindex": "{k}llong 0", "lmove": "{k}llong {k}llong LEFT LEFT",
	"hset":    "{k}hlong 1 HUGE; {k}hlong 1 HUGE 2 HUGE; {k}new 1 HUGE",
	"hsetex":  "{k}hlong EX 100 FIELDS 1 1 HUGE; {k}new FIELDS 2 1 HUGE 2 HUGE",
	"hsetnx":  "{k}hlong 9 HUGE; {k}new 9 HUGE",
	"hmset":   "{k}hlong 1 HUGE",
	"hgetdel": "{k}hlong FIELDS 2 1 2", "hdel": "{k}hlong 1 2",
	"lpush": "{k}llong HUGE; {k}new HUGE HUGE",
	"rpush": "{k}new HUGE", "lpushx": "{k}llong HUGE", "rpushx": "{k}llong HUGE",
	"linsert": "{k}llong BEFORE 1 HUGE; {k}llong AFTER HUGE x", "lset": "{k}llong 0 HUGE; {k}lwords 0 HUGE",
	"lrem": "{k}llong 0 HUGE; {k}llong -1 HUGE; {k}lwords 0 WORD",
	"lpos": "{k}llong HUGE COUNT 0; {k}lwords WORD COUNT 0; {k}lwords WORD RANK -1 COUNT 0",
	"lpop": "{k}llong 3; {k}lwords 90", "lrange": "{k}llong 0 0; {k}lwords 5 90; {k}lnear 5 250",
	"smove": "{k}swords {k}new WORD",
	"sort": "{k}llong ALPHA; {k}lwords ALPHA STORE {k}new; {k}numbers BY nosort GET {k}v* STORE {k}new; " +
		"{k}numbers BY nosort GET {k}v*; {k}numbers BY {k}v* ALPHA LIMIT 0 1; {k}numbers BY {k}g* ALPHA LIMIT 0 1",
}

var hugeWord = bytes.Repeat([]byte("1"), 4<<20)

// fillLong stores the values of longNames that are not there, or that a pattern which changes them
// names: of a few huge strings, and of many words.
func (rig *lawRig) fillLong(c *client, changes string) {
	c.do("DEL {k}new {k}newz {k}d")
	for _, key := range []string{
		"{k}numbers", "{k}hlong", "{k}llong", "{k}lwords", "{k}hwords", "{k}hnear", "{k}lnear", "{k}swords", "{k}zwords",
	} {
		if !strings.Contains(changes, key) && c.do("EXISTS "+key) == "(integer) 1" {
			continue
		}
		c.do("DEL " + key)
		rig.fillLongKey(c, key)
	}
}

func (rig *lawRig) fillLongKey(c *client, key string) {
	send := func(args ...[]byte) {
		c.sendArgs(args...)
		if got := c.next(); strings.HasPrefix(got, "(error)") || got == "" {
			rig.t.Fatalf("%.20q is answered with %s", args, got)
		}
	}
	switch key {
	case "{k}numbers": // of strings
		for i := range 200 {
			send([]byte("RPUSH"), []byte(key), fmt.Append(nil, i))
			send([]byte("SET"), fmt.Append(nil, "{k}v", i), longWord[:16_000])
			if i < 20 {
				send([]byte("SET"), fmt.Append(nil, "{k}g", i), hugeWord[:1<<20])
			}
		}
		return
	case "{k}hnear", "{k}lnear": // as long as strings that are copied can be
		for i := range 256 {
			if key == "{k}lnear" {
				send([]byte("RPUSH"), []byte(key), longWord[:exec.LongElement-1])
			} else {
				send([]byte("HSET"), []byte(key), fmt.Append(nil, i), longWord[:exec.LongElement-1])
			}
		}
		return
	case "{k}hlong":
		for i := range 3 {
			send([]byte("HSET"), []byte(key), fmt.Append(nil, i), hugeWord)
		}
		send([]byte("HSET"), []byte(key), []byte("7"), []byte("v"))
		return
	case "{k}llong":
		for _, s := range [][]byte{hugeWord, []byte("1"), hugeWord} {
			send([]byte("RPUSH"), []byte(key), s)
		}
		return
	}
	for from := range 6 {
		args := map[string][][]byte{
			"{k}lwords": {[]byte("RPUSH")}, "{k}hwords": {[]byte("HSET")},
			"{k}swords": {[]byte("SADD")}, "{k}zwords": {[]byte("ZADD")},
		}[key]
		args = append(args, []byte(key))
		for i := range 10 {
			number := fmt.Append(nil, 10*from+i)
			word := append(bytes.Clone(longWord[:60_000-8]), fmt.Appendf(nil, "%08s", number)...)
			switch key {
			case "{k}lwords":
				args = append(args, longWord[:60_000])
			case "{k}hwords", "{k}zwords":
				args = append(args, number, word)
			default:
				args = append(args, word)
			}
		}
		send(args...)
	}
}

// longPatterns returns what a command is asked.
func longPatterns(row *command.Command) (all []string) {
	ask := func(pattern string) {
		all = append(all, strings.ToUpper(row.Name)+" "+strings.TrimSpace(pattern))
	}
	for pattern := range strings.SplitSeq(hostile[row.Name], ";") {
		for round := range 2 {
			long := pattern
			for name, by := range longNames {
				long = strings.ReplaceAll(long, name+" ", by[round%len(by)]+" ")
				if strings.HasSuffix(long, name) {
					long = strings.TrimSuffix(long, name) + by[round%len(by)]
				}
			}
			if long != pattern && (len(all) == 0 || !strings.HasSuffix(all[len(all)-1], strings.TrimSpace(long))) {
				ask(long)
			}
		}
	}
	if more := longRequests[row.Name]; more != "" {
		for pattern := range strings.SplitSeq(more, ";") {
			ask(pattern)
		}
	}
	return all
}

// TestTimeLawOfLongElements: nor does any command keep a shard locked for an element's length.
func TestTimeLawOfLongElements(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	c := dial(t, rig.node.Addr())
	defer c.conn.Close()
	rig.fillLong(c, "")
	for _, row := range command.All() {
		if row.Subs != nil || !row.Built || leftOut[row.Name] != "" {
			continue
		}
		patterns := longPatterns(row)
		if len(patterns) == 0 {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			rig.t = t
			for _, pattern := range patterns {
				args := requestOf(pattern, 500)
				rig.judge("client: "+pattern, func() cost {
					if row.Flags&command.Write != 0 {
						rig.fillLong(c, pattern)
					}
					return rig.once("client", args)
				})
			}
		})
	}
}
