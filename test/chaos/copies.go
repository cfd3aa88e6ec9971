package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Caches are sessions that keep copies of the mixers' keys, by CLIENT TRACKING:
//
//	cache:  GET k ─▶ write 5    it keeps a copy
//	mixer:  SET k ─▶ OK         write 6: from now on an invalidation of k is on its way to the cache
//	cache:  ECHO  ─▶ …          the invalidation comes before this reply, or soon after it
//
// A copy outlives a write if the write was acknowledged, and a command that the cache sent later than promised is
// answered before the invalidation. This is wrong whatever happens to nodes: a partition that gets another owner has
// its copies dropped, even if the write is lost.
//
// A cache keeps each reply, also one that follows on an invalidation of its key: an invalidation that has overtaken
// the value that it revokes leaves a copy for ever.
type caching struct {
	x   *Rig
	all []*cache

	mu         sync.Mutex
	kept, told int           // copies, invalidations of keys
	flushed    int           // invalidations of everything
	longest    time.Duration // for which a copy has outlived a write
}

// cache is one such session.
type cache struct {
	*Session
	g        *caching
	prefixes []string // whose keys it follows in BCAST mode; nil: in default mode, any

	mu     sync.Mutex
	tracks bool // what the connection reads now is tracked
	copies map[string]*held
	// begun is when the commands were sent whose replies are awaited, answered that of those before: what comes
	// ahead of the replies has not come ahead of theirs.
	begun, answered time.Time
	era             uint64 // see Rig.Era
}

// held is a copy.
type held struct {
	h     *History
	shows uint64 // a write; 0: the key is missing
	// asked is when the read was sent, came when its reply was there, and issued the last write that was sent until
	// then.
	asked, came time.Time
	issued      uint64
}

const (
	// copyTime is how long a copy may outlive the reply to a write while nothing happens. A node that stands still
	// keeps what it has to tell, so a fault may delay an invalidation as long as a reply.
	copyTime = time.Second
	// followedMixers is how many mixers' keys a cache follows in BCAST mode: it is told of every change.
	followedMixers = 2
)

// startCaches has sessions keep copies, as soon as the cluster's level allows that.
func (x *Rig) startCaches() {
	g := &caching{x: x}
	x.caching = g
	for _, p := range x.C.ByRole("proxy") {
		for _, mode := range []string{"cache", "follower"} {
			c := &cache{Session: x.NewSession(p, mode+" at "+p.ID), g: g, copies: map[string]*held{}}
			c.pushed, c.renewed = c.invalidated, c.forgetAll
			if mode == "follower" {
				c.prefixes = x.somePrefixes(c)
			}
			g.all = append(g.all, c)
		}
	}
	for _, c := range g.all {
		x.Running.Go(c.run)
	}
}

// somePrefixes returns the prefixes of the keys of some mixers.
func (x *Rig) somePrefixes(c *cache) []string {
	all := map[string]bool{}
	for _, h := range x.Keys {
		name, _, _ := strings.Cut(h.Key, ":")
		all[name+":"] = true
	}
	sorted := slices.Sorted(maps.Keys(all))
	c.Rng.Shuffle(len(sorted), func(i, j int) { sorted[i], sorted[j] = sorted[j], sorted[i] })
	return sorted[:min(followedMixers, len(sorted))]
}

// run reads and judges until the clients stop.
func (c *cache) run() {
	for !c.X.Stopped() && !c.X.Tables.atLevel(ring.TrackingLevel) {
		time.Sleep(harness.PollInterval)
	}
	c.hello(resp.RESP3)
	for !c.X.Stopped() {
		if !c.X.Unpaused(c.turn) {
			return
		}
		harness.SleepUpTo(15*time.Millisecond, c.Rng)
	}
}

// turn reads some keys and judges all copies. It returns false if the connection has failed.
func (c *cache) turn() bool {
	c.note(func() {
		if era := c.X.Era.Load(); c.era != era {
			c.era = era
			clear(c.copies)
		}
	})
	if c.Rng.IntN(500) == 0 && !c.renew() {
		return false
	}
	c.track()
	if lacks := c.lacks(); len(lacks) > 0 {
		for range 1 + c.Rng.IntN(6) {
			c.look(lacks)
		}
	}
	c.echo()
	begin := c.begins()
	if !c.Exchange() {
		return false
	}
	if !c.X.Divided.Load() {
		c.judge(begin)
	}
	return true
}

func (c *cache) begins() (now time.Time) {
	c.note(func() {
		now = time.Now()
		c.answered, c.begun = c.begun, now
	})
	return now
}

// renew connects again, as a client does whose connection was closed.
func (c *cache) renew() bool {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.Link.Conn.Close()
	if err := c.reconnect(); err != nil {
		c.X.Violate("%s: cannot connect again: %v", c.name, err)
		return false
	}
	return true
}

// track adds CLIENT TRACKING to a connection that does not track yet.
func (c *cache) track() {
	tracks := false
	if c.note(func() { tracks = c.tracks }); tracks {
		return
	}
	args := []string{"CLIENT", "TRACKING", "ON"}
	if c.prefixes != nil {
		args = append(args, "BCAST")
	}
	for _, p := range c.prefixes {
		args = append(args, "PREFIX", p)
	}
	c.Add(func(reply []byte) {
		if c.X.Outcome(c.Session, reply, "+OK\r\n") == Executed {
			c.note(func() { c.tracks = true })
		}
	}, args...)
}

// lacks returns the keys of which there is no copy. Now and then it drops one first, as a cache that is full.
func (c *cache) lacks() (all []*History) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.copies {
		if c.Rng.IntN(20) == 0 {
			delete(c.copies, key)
		}
		break
	}
	for _, h := range c.X.Keys {
		if c.copies[h.Key] == nil && c.follows(h.Key) && c.X.reaches(h.Key) {
			all = append(all, h)
		}
	}
	return all
}

func (c *cache) follows(key string) bool {
	return c.prefixes == nil || slices.ContainsFunc(c.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// look adds a command that reads some of the keys.
func (c *cache) look(from []*History) {
	some := []*History{from[c.Rng.IntN(len(from))]}
	c.selects(some[0].Key)
	if c.Rng.IntN(3) > 0 {
		c.get(some[0])
		return
	}
	for range c.Rng.IntN(4) {
		if h := from[c.Rng.IntN(len(from))]; databaseOf(h.Key) == databaseOf(some[0].Key) {
			some = append(some, h)
		}
	}
	asked := time.Now()
	c.mget(some)
	judge := c.Judges[len(c.Judges)-1]
	c.Judges[len(c.Judges)-1] = func(reply []byte) {
		judge(reply)
		if parts, err := split(reply); err == nil && len(parts) == len(some) {
			for i, h := range some {
				c.keep(h, asked, parts[i])
			}
		}
	}
}

func (c *cache) get(h *History) {
	asked := time.Now()
	c.Get(h, false)
	judge := c.Judges[len(c.Judges)-1]
	c.Judges[len(c.Judges)-1] = func(reply []byte) {
		judge(reply)
		c.keep(h, asked, reply)
	}
}

// keep keeps what a read shows.
func (c *cache) keep(h *History, asked time.Time, reply []byte) {
	value, found := resp.DecodeBulk(reply)
	if !found && !c.isNull(reply) {
		return // an error
	}
	k := &held{h: h, asked: asked, came: time.Now(), issued: h.Look().issued}
	if found {
		var err error
		if k.shows, err = h.parseFilled(value); err != nil {
			return // a violation that is noted already
		}
	}
	c.note(func() {
		if c.tracks {
			c.copies[h.Key] = k
		}
	})
	c.g.note(func() { c.g.kept++ })
}

func (c *cache) note(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
}

func (g *caching) note(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
}

// forgetAll drops all copies: the connection has ended.
func (c *cache) forgetAll() {
	c.note(func() {
		clear(c.copies)
		c.tracks = false
	})
}

// invalidated obeys a push.
func (c *cache) invalidated(push []byte) {
	parts, err := split(push)
	if err != nil || len(parts) != 2 || string(bulkShown(parts[0])) != "invalidate" {
		c.X.Violate("%s: a push %.80q: %v", c.name, push, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if string(parts[1]) == "_\r\n" {
		for _, k := range c.copies {
			c.g.ended(k, c.answered)
		}
		clear(c.copies)
		c.g.note(func() { c.g.flushed++ })
		return
	}
	keys, err := flat(parts[1])
	if err != nil || len(keys) != 1 {
		c.X.Violate("%s: an invalidation %.80q: %v", c.name, push, err)
		return
	}
	if k := c.copies[string(keys[0])]; k != nil {
		c.g.ended(k, c.answered)
		delete(c.copies, k.h.Key)
	}
	c.g.note(func() { c.g.told++ })
}

// ended notes for how long a copy has outlived a write, when the last command was sent that was answered before its
// end.
func (g *caching) ended(k *held, answered time.Time) {
	if o := k.outlives(answered); o != nil && o.certain {
		g.note(func() { g.longest = max(g.longest, answered.Sub(o.acked)) })
	}
}

// worst returns the longest time for which a copy has outlived a write.
func (g *caching) worst() (d time.Duration) {
	g.note(func() { d = g.longest })
	return d
}

// outlived is what a copy has outlived.
type outlived struct {
	absence        // of all these writes
	first   uint64 // of them, which was acknowledged at acked
	certain bool   // one was sent after the copy had come; otherwise all may have been lost before the read
}

// outlives returns what a copy outlives of the writes that were acknowledged before a time, nil for nothing. A
// deletion does not count for the copy of a missing key.
func (k *held) outlives(before time.Time) (o *outlived) {
	h := k.h
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for seq := h.issuedLocked(); seq > max(k.shows, h.Dropped); seq-- {
		if k.shows == 0 && h.deletes[seq] && !h.refused[seq] {
			if seq <= k.issued {
				break // the read may have shown this one
			}
			continue
		}
		acked := h.Acks[seq-h.Dropped-1]
		switch {
		case acked.IsZero() || !acked.Before(before):
			continue
		case acked.Before(k.asked): // for those who judge reads
			return o
		}
		if o == nil {
			o = &outlived{absence: absence{key: h.Key, partition: h.partition, from: h.sentLocked(seq), to: k.came, floor: seq, shown: k.shows}}
			o.certain = seq > k.issued
		}
		o.first, o.acked = seq, acked
		o.lost++
	}
	return o
}

// judge judges all copies, when a command is answered that was sent at begin.
func (c *cache) judge(begin time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.copies {
		o := k.outlives(begin.Add(-copyTime))
		if o == nil || c.X.mayDelay(o.acked, begin) {
			continue
		}
		delete(c.copies, key) // to be noted once
		o.what = fmt.Sprintf("%s: a copy of %s that came %s shows write %d, %v after write %d was acknowledged", c.name, key,
			Clock(k.came), k.shows, begin.Sub(o.acked).Round(time.Millisecond), o.first)
		if o.certain {
			c.X.Violate("%s", o.what)
		} else {
			c.X.judged(c.name, &o.absence, nil)
		}
	}
}

// mayDelay reports whether a fault may have delayed until now what was to be told then.
func (x *Rig) mayDelay(then, now time.Time) bool {
	limit := harness.AnswerTime + x.Pulse.Missed(then, now)
	return now.Sub(then) <= limit && x.disturbed(then.Add(-harness.AnswerTime))
}

// judgeCopies waits until no copy is stale, when nobody writes any more.
func (x *Rig) judgeCopies() {
	g := x.caching
	if g == nil || x.Divided.Load() || !x.Tables.atLevel(ring.TrackingLevel) {
		return
	}
	for _, c := range g.all {
		c.settles()
	}
	g.note(func() {
		x.T.Logf("caches: %d copies were kept, %d invalidations of keys and %d of everything; the longest that a copy outlived a write: %v",
			g.kept, g.told, g.flushed, g.longest.Round(time.Millisecond))
	})
}

// settles waits until no copy is stale.
func (c *cache) settles() {
	c.echo()
	open := c.Exchange() // what has come since the cache ended
	for end := time.Now().Add(harness.AnswerTime + copyTime); open && c.isStale() && time.Now().Before(end); {
		c.echo()
		begin := c.begins()
		open = c.Exchange()
		c.judge(begin)
	}
}

// isStale reports whether a copy outlives a write.
func (c *cache) isStale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, k := range c.copies {
		if k.outlives(now) != nil {
			return true
		}
	}
	return false
}
