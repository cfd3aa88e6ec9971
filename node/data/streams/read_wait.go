package streams

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// An XREAD or XREADGROUP that finds nothing waits behind a position in each stream: the ID that it has named, or the
// last ID of the stream, of whose entries its group has none left. Whoever adds entries behind it has the command
// executed again. So $ must not be executed twice: it becomes the ID that it stands for when the wait begins, in the
// command that waits and at its sender.
//
// With CLAIM, the command is also executed again when the next pending entry will have been idle for long enough.

// await has the command wait.
func (x *readRun) await(t engine.Txn) {
	r := x.r
	if r.Executing() || r.Rest != nil || x.partly { // it holds its partition, or has one run and needs more
		r.Out = resp.AppendNullArray(r.Out, r.Version())
		return
	}
	a := exec.Await{Wish: engine.Wish{Type: engine.TypeStream, Keys: x.q.keys}, Limit: x.q.limit, Again: x.again}
	if x.q.grouped {
		a.Group = x.q.group
	}
	for i, key := range x.q.keys {
		v := look(t, key)
		if x.q.grouped {
			a.Positions = append(a.Positions, positionOf(v.meta().last))
			continue
		}
		id := x.q.behind(&v, i)
		a.Positions = append(a.Positions, positionOf(id))
		if isAll(x.q.ids[i], '$') {
			if a.Args == nil {
				a.Args = slices.Clone(r.Args)
			}
			text := appendID(nil, id)
			a.Args[x.q.firstID+i] = text
			a.IDs = member.AppendSettled(a.IDs, text)
		}
	}
	r.Await(t, a)
}

// look returns the stream of a key, which counts as no use; an empty one if it has none.
func look(t engine.Txn, key []byte) (v view) {
	if item, found := t.Peek(key); found && item.Type() == engine.TypeStream {
		v = viewOf(t, item)
	}
	return v
}

func positionOf(id ID) engine.Position { return engine.Position{Hi: id.Ms, Lo: id.Seq} }

// end is exec.Type's End: the last ID of a stream.
func end(t engine.Txn, item engine.Item) engine.Position {
	v := viewOf(t, item)
	return positionOf(v.meta().last)
}

// note notes what a scan has found out about when the command is to be executed again.
func (x *readRun) note(c *idleScan, minIdle int64) {
	if after := c.after(x.r.Now, minIdle); after > 0 && (x.again == 0 || after < x.again) {
		x.again = after
	}
}

// seek is exec.Type's Seek.
func seek(t engine.Txn, key []byte, s exec.Sought) (f exec.Found) {
	v := look(t, key)
	f.Position = positionOf(v.meta().last)
	if s.Group != nil {
		f.Ready, f.Again = v.hasFor(&s, t.Now())
		return f
	}
	q := readArgs{ids: [][]byte{s.ID}}
	if _, ok := parseID(s.ID, 0); !ok && !isAll(s.ID, '$') && !isAll(s.ID, '+') {
		f.Ready = true // the read says what is wrong
		return f
	}
	id := q.behind(&v, 0)
	latest, found := v.latest()
	return exec.Found{Ready: found && id.less(latest), Position: positionOf(id), ID: appendID(nil, id)}
}

// hasFor reports whether the stream has something for a group, or an error because there is no such group. If it has
// more pending entries than one look takes, the command reads them all, and waits only when it has done so.
func (v *view) hasFor(s *exec.Sought, now int64) (ready bool, again time.Duration) {
	g, found := group{}, false
	if v.found {
		g, found = v.group(s.Group)
	}
	if !found {
		return true, 0
	}
	if latest, any := v.latest(); any && g.last.less(latest) {
		return true, 0
	}
	if s.MinIdle < 0 {
		return false, 0
	}
	var c idleScan
	left := scannedAtOnce - *s.Looks
	done := c.scan(v, &g, now, s.MinIdle, 1, &left)
	*s.Looks = scannedAtOnce - left
	switch {
	case len(c.found) > 0, !done && s.Waited == 0:
		return true, 0
	case !done:
		return false, longPause + time.Duration(g.pending/scannedAtOnce)*longPause/100
	}
	return false, c.after(now, s.MinIdle)
}

// longPause is how long a command waits at least that has read very many pending entries in vain: to read them again
// takes a hundredth of the time, about.
const longPause = time.Second
