package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/ring"
)

// followBy has a new client follow so many prefixes, from number first on.
func followBy(t *testing.T, n *Node, first, count int) (c *client, reply string) {
	t.Helper()
	c = dial(t, n.Addr())
	c.do("HELLO 3")
	var line strings.Builder
	line.WriteString("CLIENT TRACKING ON BCAST")
	for i := range count {
		fmt.Fprintf(&line, " PREFIX p%06d:", first+i)
	}
	return c, c.do(line.String())
}

func wantTold(t *testing.T, c *client, key string) {
	t.Helper()
	if got, want := string(c.read()), string(tracking.AppendInvalidate(nil, 3, key, false)); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestManyPrefixes: a node follows a bounded number of prefixes, and a client that would exceed it keeps what it had.
func TestManyPrefixes(t *testing.T) {
	n := startLeveled(t)
	w := dial(t, n.Addr())
	const each = 64
	var clients []*client
	for i := range maxFollowed / each {
		c, reply := followBy(t, n, i*each, each)
		if reply != "OK" {
			t.Fatalf("client %d: %s", i, reply)
		}
		clients = append(clients, c)
	}
	refusal := "(error) " + errManyFollowed
	if _, reply := followBy(t, n, maxFollowed-1, 2); reply != refusal {
		t.Errorf("one prefix too many: %s", reply)
	}
	pipe := dial(t, n.Addr())
	pipe.do(fmt.Sprint(pipeLine(7, 0, "listen", 1, 3), " ", ring.Level))
	listen := func(prefix string, count int) member.Heard {
		pipe.sendRaw(member.AppendListen(nil, member.Listen{Kind: uint8(pubsub.Prefix), Name: []byte(prefix), Count: count}))
		heard, ok := member.ParseHeard(pipe.read())
		if !ok {
			t.Fatal("LISTEN is answered otherwise")
		}
		return heard
	}
	if heard := listen("another", 1); heard != member.TooMany {
		t.Errorf("one prefix too many, for a pipe: %d", heard)
	}
	if heard := listen("p000000:", 1); heard != member.Noted {
		t.Errorf("a prefix that is followed, for a pipe: %d", heard)
	}
	shared, reply := followBy(t, n, maxFollowed-1, 1)
	if reply != "OK" {
		t.Errorf("a prefix that is followed: %s", reply)
	}
	last := clients[len(clients)-1]
	w.do(fmt.Sprintf("SET p%06d:k 1", maxFollowed-1))
	wantTold(t, shared, fmt.Sprintf("p%06d:k", maxFollowed-1))
	wantTold(t, last, fmt.Sprintf("p%06d:k", maxFollowed-1))
	last.want("CLIENT TRACKING OFF", "OK")
	if heard := listen("another", 1); heard != member.Noted {
		t.Errorf("a prefix in the place of another, for a pipe: %d", heard)
	}
	w.do("SET another1 1")
	if got, want := string(pipe.read()), string(member.AppendGone(nil, member.Gone{ByPrefix: true, Key: []byte("another1")})); got != want {
		t.Errorf("the pipe is told %q, want %q", got, want)
	}
	for _, c := range append(clients, shared) {
		c.want("CLIENT TRACKING OFF", "OK")
	}
	for _, prefix := range []string{"p000000:", "another"} {
		if heard := listen(prefix, 0); heard != member.Noted {
			t.Errorf("the end of a prefix: %d", heard)
		}
	}
	n.watchers.mu.Lock()
	defer n.watchers.mu.Unlock()
	f := &n.watchers.followed
	if f.count != 0 || len(f.ofLength) != 0 || f.lengths.Load() != nil {
		t.Errorf("nobody follows anything, and %d prefixes of %d lengths are left", f.count, len(f.ofLength))
	}
}

// TestSharedPrefixes: a client that follows what another one of its loop follows changes no map.
func TestSharedPrefixes(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	followBy(t, n, 0, 60)
	f := &n.watchers.followed
	var before [followedSets]*followedSet
	for i := range before {
		before[i] = f.sets[i].Load()
	}
	c, _ := followBy(t, n, 10, 40)
	c.want("RESET", "RESET")
	for i := range before {
		if f.sets[i].Load() != before[i] {
			t.Errorf("set %d was built anew", i)
		}
	}
}

// TestPrefixesAreCharged: they take memory of each client that follows them, as long as it does.
func TestPrefixesAreCharged(t *testing.T) {
	n := startLeveled(t)
	const size, count, followers = 4000, 60, 20
	args := words(t, "CLIENT TRACKING ON BCAST")
	for i := range count {
		args = append(args, []byte("PREFIX"), fmt.Appendf(nil, "%04d%s", i, strings.Repeat("x", size)))
	}
	before := n.engine.Outside()
	var clients []*client
	for range followers {
		c := dial(t, n.Addr())
		c.do("HELLO 3")
		c.sendArgs(args...)
		if reply := c.next(); reply != "OK" {
			t.Fatal(reply)
		}
		clients = append(clients, c)
	}
	const least = 2 * size * count * followers
	if took := n.engine.Outside() - before; took < least {
		t.Errorf("%d bytes are charged, want %d", took, least)
	}
	for _, c := range clients {
		c.want("CLIENT TRACKING OFF", "OK")
	}
	eventually(t, "they are not charged any more", func() bool { return n.engine.Outside()-before < least/2 })
}

// TestLengthsOfPrefixes: prefixes have a bounded number of lengths.
func TestLengthsOfPrefixes(t *testing.T) {
	n := startLeveled(t)
	w, other := &watcher{}, &watcher{}
	for i := range maxLengths {
		if !n.follow(w, []string{strings.Repeat("x", i)}) {
			t.Fatalf("length %d is refused", i)
		}
	}
	if n.follow(other, []string{"y", strings.Repeat("y", maxLengths)}) || len(other.follows) != 0 {
		t.Errorf("one length too many: %d prefixes are followed", len(other.follows))
	}
	n.watchers.followed.end(w, n.engine)
	if !n.follow(other, []string{strings.Repeat("y", maxLengths)}) {
		t.Error("the only length is refused")
	}
	f := &n.watchers.followed
	f.end(other, n.engine)
	for f.leaveSome(n.engine) {
	}
	if f.count != 0 || f.tells || len(f.ended) > 0 || len(f.ofLength) > 0 || len(w.follows)+len(other.follows) > 0 {
		t.Errorf("nobody follows anything, and %d prefixes of %d lengths are left", f.count, len(f.ofLength))
	}
}

// TestManyPrefixesLeaveInTurns: what a watcher with many prefixes leaves behind goes in turns, and whoever comes
// meanwhile has its place.
func TestManyPrefixesLeaveInTurns(t *testing.T) {
	n := startLeveled(t)
	f := &n.watchers.followed
	names := func(first string) (all []string) {
		for i := range maxFollowed {
			all = append(all, fmt.Sprint(first, i))
		}
		return all
	}
	w, other := &watcher{}, &watcher{}
	if !n.follow(w, names("w")) || n.follow(other, []string{"o"}) {
		t.Fatal("another number of prefixes is followed than can be")
	}
	turns := 1
	for more := f.end(w, n.engine); more; more = f.leaveSome(n.engine) {
		if turns++; turns == 2 && f.count < maxFollowed/2 {
			t.Errorf("%d prefixes are left behind the first turn", f.count)
		}
	}
	if f.count != 0 || f.tells || turns < followedSets/leaveAtOnce {
		t.Errorf("%d prefixes are left behind %d turns", f.count, turns)
	}
	w = &watcher{}
	if !n.follow(w, names("w")) || !f.end(w, n.engine) || !n.follow(other, names("o")) {
		t.Fatal("those who come do not have the place of those who go")
	}
	if f.count != maxFollowed || !f.tells || len(f.ended) > 0 || len(other.follows) != maxFollowed {
		t.Errorf("%d prefixes are followed, want %d", f.count, maxFollowed)
	}
	f.end(other, n.engine)
	for f.leaveSome(n.engine) {
	}
}

// TestRefusedBesideThoseWhoGo: whoever is refused, when all who have gone have made room, leaves nothing behind that
// each change of a key would be compared with.
func TestRefusedBesideThoseWhoGo(t *testing.T) {
	n := startLeveled(t)
	f := &n.watchers.followed
	ofLength := func(length int) string { return strings.Repeat("x", length) }
	stays, goes, other := &watcher{}, &watcher{}, &watcher{}
	var few, many []string
	for length := range maxLengths - 2 {
		few = append(few, ofLength(1+length))
	}
	for len(few)+len(many) < maxFollowed {
		many = append(many, fmt.Sprintf("%0*d", 2*maxLengths, len(many)))
	}
	if !n.follow(stays, few) || !n.follow(goes, many) || !f.end(goes, n.engine) {
		t.Fatal("what leaves does not leave in turns")
	}
	if n.follow(other, []string{ofLength(maxLengths), ofLength(maxLengths + 1), ofLength(maxLengths + 2)}) {
		t.Fatal("more lengths are followed than can be")
	}
	if got := len(*f.lengths.Load()); got != len(few) || f.count != len(few) || len(other.follows) > 0 {
		t.Errorf("%d prefixes, of %d lengths, are followed, want %d", f.count, got, len(few))
	}
	for more := f.end(stays, n.engine); more; more = f.leaveSome(n.engine) {
	}
}

// TestFlushesAreToldApart: a pipe that listens is told of a FLUSHALL that each node executes in another way than of
// other reasons for which all may have changed, if its proxy understands that.
func TestFlushesAreToldApart(t *testing.T) {
	n := startBare(t)
	table := soleTable(n)
	table.Level = ring.FlushedLevel - 1
	n.SetTable(table)
	admin, direct := dial(t, n.Addr()), dial(t, n.Addr())
	admin.do(fmt.Sprint(pipeLine(9, 0, "large", 1, 2), " ", ring.Level))
	admin.want("DUNLIN LEVEL 0", "OK") // its commands are not answered later
	flushed := string(member.AppendGone(nil, member.Gone{All: true, Flushed: true}))
	gone := string(member.AppendGone(nil, member.Gone{All: true}))
	for level, want := range map[int]string{ring.FlushedLevel: flushed, ring.FlushedLevel - 1: gone} {
		pipe := dial(t, n.Addr())
		pipe.do(fmt.Sprint(pipeLine(level, 0, "listen", 1, 3), " ", level))
		pipe.sendRaw(member.AppendListen(nil, member.Listen{Kind: uint8(pubsub.Prefix), Name: []byte("a"), Count: 1}))
		pipe.read()
		admin.each(&allPartitions, "FLUSHALL")
		if got := string(pipe.read()); got != want {
			t.Errorf("level %d is told %q, want %q", level, got, want)
		}
		direct.want("FLUSHALL", "OK")
		if got := string(pipe.read()); got != gone {
			t.Errorf("level %d is told %q of a FLUSHALL of this node, want %q", level, got, gone)
		}
	}
}

// TestFlushesAreMerged: what is queued as a FLUSHALL of all nodes and for another reason as well is told as the other.
func TestFlushesAreMerged(t *testing.T) {
	f := func(want bool, reasons ...bool) {
		t.Helper()
		w := &watcher{posted: true}
		w.add(gone{hash: 1})
		for _, ofAllNodes := range reasons {
			w.flush(ofAllNodes)
		}
		if list, all, flushed := w.take(nil); len(list) > 0 || !all || flushed != want {
			t.Errorf("%v: %d are gone, all: %v, flushed: %v", reasons, len(list), all, flushed)
		}
		if _, all, flushed := w.take(nil); all || flushed {
			t.Errorf("%v: it is told again", reasons)
		}
	}
	f(true, true)
	f(true, true, true)
	f(false, false)
	f(false, true, false)
	f(false, false, true)
}
