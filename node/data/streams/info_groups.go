package streams

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xInfoGroups: XINFO GROUPS key
func xInfoGroups(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := openInfo(r, t); ok {
		s.reply(&groupsInfo{version: r.Version(), n: s.groups()})
	}
}

// groupsInfo is the reply with the groups of a stream.
type groupsInfo struct {
	version resp.Version
	n       int
	after   []byte // the group where it goes on
}

func (a *groupsInfo) rewind() { a.after = nil }

func (a *groupsInfo) next(v *view, w *slice) (done bool) {
	done = true
	i, length := v.info(), v.len()
	v.eachGroup(a.after, func(g *group) bool {
		if w.full() {
			done = false
			return false
		}
		w.steps -= groupSteps
		a.after = behindName(a.after, g.name)
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 6)
		w.word("name")
		w.bulk(g.name)
		w.word("consumers")
		w.int(int64(g.consumers))
		w.word("pending")
		w.int(int64(g.pending))
		w.progress(i, length, g, a.version)
		return true
	})
	return done
}

func (a *groupsInfo) appendHead(dst []byte) []byte { return resp.AppendArray(dst, a.n) }

// progress appends how far a group has come in a stream of so many entries.
func (w *slice) progress(i info, length int, g *group, v resp.Version) {
	w.word("last-delivered-id")
	w.id(g.last)
	w.word("entries-read")
	w.orNull(g.read, g.read != readUnknown, v)
	w.word("lag")
	lag, known := i.lag(length, g)
	w.orNull(lag, known, v)
}

// xInfoConsumers: XINFO CONSUMERS key group
func xInfoConsumers(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := openInfo(r, t)
	if !ok {
		return
	}
	g, found := s.group(r.Args[3])
	if !found {
		r.Fail(noGroupOfKey(r.Args[2], r.Args[3]))
		return
	}
	group := append([]byte(nil), r.Args[3]...)
	s.reply(&consumersInfo{version: r.Version(), now: r.Now, group: group, n: g.consumers})
}

// consumersInfo is the reply with the consumers of a group.
type consumersInfo struct {
	version resp.Version
	now     int64
	group   []byte
	n       int
	after   []byte // the consumer where it goes on
}

func (a *consumersInfo) rewind() { a.after = nil }

func (a *consumersInfo) next(v *view, w *slice) (done bool) {
	g, found := v.group(a.group)
	if !found {
		return true
	}
	done = true
	v.eachConsumer(&g, a.after, func(c *consumer) bool {
		if w.full() {
			done = false
			return false
		}
		w.steps -= groupSteps
		a.after = behindName(a.after, c.name)
		inactive := int64(never)
		if c.active != never {
			inactive = a.now - c.active
		}
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 4)
		w.word("name")
		w.bulk(c.name)
		w.word("pending")
		w.int(int64(c.pending))
		w.word("idle")
		w.int(max(a.now-c.seen, 0))
		w.word("inactive")
		w.int(inactive)
		return true
	})
	return done
}

func (a *consumersInfo) appendHead(dst []byte) []byte { return resp.AppendArray(dst, a.n) }

// behindName is where a walk over groups or consumers goes on behind a name. It is never nil, from where all are
// walked: a name may be empty.
func behindName(dst, name []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(name))
	}
	return append(dst[:0], name...)
}
