package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// openTracking opens a pipe whose commands are tracked, and never answered later.
func openTracking(t *testing.T, n *Node) *client {
	t.Helper()
	p := dial(t, n.Addr())
	p.do(fmt.Sprint(pipeLine(7, 0, "common-tracks", 1, 3), " ", ring.Level))
	p.want("DUNLIN LEVEL 0", "OK")
	return p
}

// wantGone reads what a pipe is told of a key.
func (c *client) wantGone(key string, actor uint64) {
	c.t.Helper()
	want := string(member.AppendGone(nil, member.Gone{Hash: tracking.Hash([]byte(key)), Actor: actor}))
	if got := string(c.read()); got != want {
		c.t.Errorf("told %q, want %q", got, want)
	}
}

// longReads are reads of {h}… with more words than a parser lists, and the keys that they read.
func longReads() map[string][]string {
	many := strings.Repeat(" x", listFrom+500)
	numbers := strings.Repeat(" 1", 2000)
	return map[string][]string{
		"HMGET {h}hash" + many:                                         {"{h}hash"},
		"SMISMEMBER {h}set" + many:                                     {"{h}set"},
		"EVAL 'return 1' 2 {h}a {h}b" + many:                           {"{h}a", "{h}b"},
		"ZMSCORE {h}zset" + many + many:                                {"{h}zset"},
		"EVAL 'return 1' 500" + strings.Repeat(" {h}k", 500) + numbers: {"{h}k"},
	}
}

// TestTrackedLongReads: the keys of a read that has many words are marked, for a pipe and for a client.
func TestTrackedLongReads(t *testing.T) {
	n := startLeveled(t)
	p, c, w := openTracking(t, n), dial(t, n.Addr()), dial(t, n.Addr())
	c.do("HELLO 3")
	c.want("CLIENT TRACKING ON", "OK")
	for line, keys := range longReads() {
		for _, key := range keys {
			if got := p.do(line); strings.HasPrefix(got, "(error)") {
				t.Fatalf("%.40s answers %.100s", line, got)
			}
			c.do(line)
			w.do("SET " + key + " x")
			p.wantGone(key, 0)
			if got, want := string(c.read()), string(tracking.AppendInvalidate(nil, 3, key, false)); got != want {
				t.Errorf("%.40s: told %q, want %q", line, got, want)
			}
			w.do("FLUSHALL")
			p.read()
			c.read()
		}
	}
}

// TestTrackedReadsOfTooManyKeys: a client that reads more keys than are tracked forgets all at once. Its proxy
// would see to that itself.
func TestTrackedReadsOfTooManyKeys(t *testing.T) {
	n := startLeveled(t)
	p, c := openTracking(t, n), dial(t, n.Addr())
	c.do("HELLO 3")
	c.want("CLIENT TRACKING ON", "OK")
	for _, count := range []int{tracking.MaxKeys + 1, listFrom + 10} {
		for _, line := range []string{
			"MGET" + strings.Repeat(" {h}k", count),
			fmt.Sprint("EVAL 'return 1' ", count, strings.Repeat(" {h}k", count)),
		} {
			p.do(line)
			p.want("PING", "PONG")
			c.do(line)
			if got, want := string(c.read()), string(tracking.AppendInvalidate(nil, 3, "", true)); got != want {
				t.Errorf("%.40s: told %q, want %q", line, got, want)
			}
			c.want("PING", "PONG")
		}
	}
}

// TestActorOfAnotherKey: who has changed another key, of the same tag, is told that the marked one is gone.
func TestActorOfAnotherKey(t *testing.T) {
	w := &watcher{posted: true}
	list := []*watcher{nil, w}
	var ws watchers
	ws.byID.Store(&list)
	watch := engine.Watch{Watcher: 1, Hash: tracking.Hash([]byte("k"))}
	for key, want := range map[string]uint64{"k": 9, "other": 0} {
		w.posted = true
		ws.revoke(watch, []byte(key), 9)
		if told, _, _ := w.take(nil); len(told) != 1 || told[0].actor != want {
			t.Errorf("%s changes: told %v", key, told)
		}
	}
}

// TestActorOfARefusedUpload: DUNLIN AS is about one request, whether that is executed or not.
func TestActorOfARefusedUpload(t *testing.T) {
	n := startLeveled(t)
	giveAway(n, ring.PartitionOf([]byte("away")))
	p := openTracking(t, n)
	p.want("GET k", "(nil)")
	p.want("DUNLIN AS 77", "OK")
	p.sendArgs([]byte("SET"), []byte("away"), bigValue(uploadFrom+1000, 1))
	if got := string(p.read()); !resp.IsError([]byte(got)) {
		t.Fatalf("the request for what is not served answers %.100q", got)
	}
	p.send("SET k 1")
	told, reply := p.read(), p.read()
	if told[0] != '>' {
		told, reply = reply, told
	}
	if want := string(member.AppendGone(nil, member.Gone{Hash: tracking.Hash([]byte("k"))})); string(told) != want || string(reply) != "+OK\r\n" {
		t.Errorf("told %q and answered %q, want %q", told, reply, want)
	}
}
