package node

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// CLIENT TRACKING with BCAST. Every change of a key looks for the prefixes of its name while a shard is locked, and
// without another lock. So the prefixes lie in many small maps that do not change. Whoever follows a prefix, or ends
// that, has one of them built anew.
//
// A prefix has a follower for each loop and each pipe, however many clients of it follow.

const (
	// maxFollowed is how many prefixes all clients of a node follow together.
	maxFollowed = 4096
	// maxLengths is how many lengths these have, each of which costs every change of a key.
	maxLengths = 256
	// followedSets is in how many maps the prefixes lie; a power of two.
	followedSets = 256
	// leaveAtOnce is how many prefixes of a watcher that has ended go at once. If it has more, so many sets lose them
	// in each turn.
	leaveAtOnce = 16
)

// followedPrefixes says who wants word of keys that begin with which prefixes.
type followedPrefixes struct {
	lengths atomic.Pointer[[]int] // of the prefixes, ascending; nil: there are none
	sets    [followedSets]atomic.Pointer[followedSet]

	// watchers.mu protects these.
	count    int
	ofLength map[int]int // how many prefixes have a length
	tells    bool        // the engine tells changes
	ended    []*watcher  // whose prefixes are removed in turns
	next     int         // in sets: what comes next, for the first of these
}

// followedSet has some of the prefixes. It does not change.
type followedSet map[string][]*watcher

var followedSeed = maphash.MakeSeed()

func (f *followedPrefixes) setOf(prefix []byte) *atomic.Pointer[followedSet] {
	return &f.sets[maphash.Bytes(followedSeed, prefix)%followedSets]
}

func (f *followedPrefixes) of(prefix []byte) []*watcher {
	if set := f.setOf(prefix).Load(); set != nil {
		return (*set)[string(prefix)]
	}
	return nil
}

// changed is engine.Config.Changed.
func (ws *watchers) changed(key []byte, actor uint64) {
	lengths := ws.followed.lengths.Load()
	if lengths == nil {
		return
	}
	name := ""
	for _, n := range *lengths {
		if n > len(key) {
			return
		}
		for _, w := range ws.followed.of(key[:n]) {
			if name == "" {
				name = string(key)
			}
			w.add(gone{key: name, actor: actor, byPrefix: true})
		}
	}
}

// prefixes returns how many prefixes are followed.
func (ws *watchers) prefixes() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.followed.count
}

// follow has a watcher follow prefixes too. It reports false, and changes nothing, if these would be too many, or of
// too many lengths. A watcher's loop calls it.
func (n *Node) follow(w *watcher, prefixes []string) (ok bool) {
	n.watchers.mu.Lock()
	defer n.watchers.mu.Unlock()
	f := &n.watchers.followed
	defer f.obey(n.engine)
	var joined []string
	for _, p := range prefixes {
		if w.follows[p] {
			continue
		}
		for ok = f.join(p, w); !ok && len(f.ended) > 0; ok = f.join(p, w) {
			f.leaveSome(n.engine) // it has the place of those who have gone
		}
		if !ok {
			for _, p := range joined {
				f.leave(p, w)
			}
			return false
		}
		joined = append(joined, p)
	}
	return true
}

// unfollow has a watcher follow prefixes no more.
func (n *Node) unfollow(w *watcher, prefixes []string) {
	n.watchers.mu.Lock()
	defer n.watchers.mu.Unlock()
	f := &n.watchers.followed
	for _, p := range prefixes {
		f.leave(p, w)
	}
	f.obey(n.engine)
}

// obey has the engine tell changes while there are prefixes.
func (f *followedPrefixes) obey(e *engine.Engine) {
	var lengths *[]int
	if f.count > 0 {
		all := slices.Sorted(maps.Keys(f.ofLength))
		lengths = &all
	}
	f.lengths.Store(lengths)
	if has := f.count > 0; has != f.tells {
		f.tells = has
		e.TellChanges(has)
	}
}

func (f *followedPrefixes) join(p string, w *watcher) (ok bool) {
	at := f.setOf([]byte(p))
	next := at.Load().clone()
	if len(next[p]) == 0 {
		if f.count == maxFollowed || f.ofLength[len(p)] == 0 && len(f.ofLength) == maxLengths {
			return false
		}
		if f.ofLength == nil {
			f.ofLength = make(map[int]int)
		}
		f.count++
		f.ofLength[len(p)]++
	}
	next[p] = append(slices.Clone(next[p]), w)
	at.Store(&next)
	if w.follows == nil {
		w.follows = make(map[string]bool)
	}
	w.follows[p] = true
	return true
}

func (f *followedPrefixes) leave(p string, w *watcher) {
	if w.follows[p] {
		at := f.setOf([]byte(p))
		next := at.Load().clone()
		f.remove(next, p, w)
		at.Store(&next)
		delete(w.follows, p)
	}
}

// end begins to remove the prefixes of a watcher that has ended. It reports whether leaveSome has to go on.
func (f *followedPrefixes) end(w *watcher, e *engine.Engine) (more bool) {
	if len(w.follows) <= leaveAtOnce {
		for p := range w.follows {
			f.leave(p, w)
		}
		f.obey(e)
		return false
	}
	f.ended = append(f.ended, w)
	return f.leaveSome(e)
}

// leaveSome removes some prefixes of watchers that have ended, and reports whether there are more.
func (f *followedPrefixes) leaveSome(e *engine.Engine) (more bool) {
	for left := leaveAtOnce; len(f.ended) > 0 && left > 0; left-- {
		w := f.ended[0]
		f.leaveSet(&f.sets[f.next], w)
		if f.next++; f.next == followedSets || len(w.follows) == 0 {
			w.follows = nil
			f.ended[0], f.next = nil, 0
			f.ended = f.ended[1:]
			f.obey(e)
		}
	}
	return len(f.ended) > 0
}

// leaveSet removes the prefixes of a watcher from a set.
func (f *followedPrefixes) leaveSet(at *atomic.Pointer[followedSet], w *watcher) {
	set := at.Load()
	if set == nil {
		return
	}
	var next followedSet // nil: it has none of them
	for p := range *set {
		if !w.follows[p] {
			continue
		}
		if next == nil {
			next = set.clone()
		}
		f.remove(next, p, w)
		delete(w.follows, p)
	}
	if next != nil {
		at.Store(&next)
	}
}

// remove ends that w follows p, in a set that is not shown yet.
func (f *followedPrefixes) remove(set followedSet, p string, w *watcher) {
	rest := slices.DeleteFunc(slices.Clone(set[p]), func(other *watcher) bool { return other == w })
	if set[p] = rest; len(rest) > 0 {
		return
	}
	delete(set, p)
	f.count--
	if f.ofLength[len(p)]--; f.ofLength[len(p)] == 0 {
		delete(f.ofLength, len(p))
	}
}

func (s *followedSet) clone() followedSet {
	if s == nil {
		return make(followedSet)
	}
	return maps.Clone(*s)
}

// follow has the client's loop follow its prefixes. It returns the error to be answered, "" if there is none.
func (cn *conn) follow(prefixes []string) (refusal string) {
	before, charge := cn.follows, cn.followCharge
	cn.follows, cn.followCharge = prefixes, tracking.PrefixesCost(prefixes)
	switch {
	case !cn.Socket.TrySetOther(cn.otherBytes()):
		refusal = errNoTracking
	case !cn.node.follow(cn.worker.tracking.watcher, prefixes):
		refusal = errManyFollowed
	default:
		return ""
	}
	cn.follows, cn.followCharge = before, charge
	cn.Socket.SetOther(cn.otherBytes()) // no more than before
	return refusal
}

// unfollow ends that, as far as no other client of the loop follows them.
func (cn *conn) unfollow() {
	if len(cn.follows) == 0 {
		return
	}
	here := &cn.worker.tracking
	followed := here.table.Prefixes()
	alone := slices.DeleteFunc(slices.Clone(cn.follows), func(p string) bool { return len(followed[p]) > 0 })
	cn.follows, cn.followCharge = nil, 0
	cn.node.unfollow(here.watcher, alone)
}

// followFor: DUNLIN LISTEN of a prefix. The pipe that listens is told what begins with it.
func (p *pipe) followFor(cn *conn, l *member.Listen) member.Heard {
	name := string(l.Name)
	switch had := p.watcher != nil && p.watcher.follows[name]; {
	case had == (l.Count > 0):
		return member.Noted
	case had:
		cn.followCharge -= tracking.PrefixCost(name)
		cn.node.unfollow(p.watcher, []string{name})
		return member.Noted
	case p.watcher == nil && !p.watch(cn):
		return member.TooMany
	}
	cn.followCharge += tracking.PrefixCost(name)
	if cn.Socket.TrySetOther(cn.otherBytes()) && cn.node.follow(p.watcher, []string{name}) {
		return member.Noted
	}
	cn.followCharge -= tracking.PrefixCost(name)
	cn.Socket.SetOther(cn.otherBytes())
	return member.TooMany
}
