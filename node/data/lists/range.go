package lists

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lLen: LLEN key
func lLen(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if l, ok := read(r, t, r.Args[1]); ok {
		r.ReplyInt(int64(l.len()))
	}
}

// lIndex: LINDEX key index
func lIndex(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	l, ok := read(r, t, r.Args[1])
	switch {
	case !ok:
	case !l.found:
		r.ReplyNull()
	default:
		index, ok := r.IntArg(2)
		if !ok {
			return
		}
		if i, ok := l.index(index); ok {
			r.ReplyElement(l.at(i))
		} else {
			r.ReplyNull()
		}
	}
}

// index returns the position that an index names, which counts from the end if it is negative.
func (l *list) index(i int64) (position int, ok bool) {
	n := int64(l.len())
	if i < 0 {
		i += n
	}
	return int(i), 0 <= i && i < n
}

// span returns the positions that two indexes name, the last one included: from, and how many.
func (l *list) span(start, stop int64) (from, n int) {
	length := int64(l.len())
	if start < 0 {
		start = max(start+length, 0)
	}
	if stop < 0 {
		stop += length
	}
	stop = min(stop, length-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop - start + 1)
}

// lRange: LRANGE key start stop
func lRange(r *exec.Request) {
	start, ok := r.IntArg(2)
	if !ok {
		return
	}
	stop, ok := r.IntArg(3)
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	l, ok := read(r, t, r.Args[1])
	if !ok {
		return
	}
	from, n := l.span(start, stop)
	if l.big && exec.IsLong(n, l.tree.V.Bytes()*int64(n)/int64(l.len())) {
		replyPinned(r, &l, from, n)
		return
	}
	begun, left, isLong := len(r.Out), n, false
	r.Out = resp.AppendArray(r.Out, n)
	if n == 0 {
		return
	}
	out := r.Out // a copy, which costs less to append to
	most := min(cap(out), begun+exec.LongBytes)
	l.each(from, func(element shape.Item) bool {
		left--
		size := element.Size()
		if len(out)+size+exec.LineRoom <= most && size < exec.LongElement {
			out = appendElement(out, element)
			return left > 0
		}
		if isLong = l.big && len(out)-begun >= exec.LongBytes; isLong { // these are longer than others of the list
			return false
		}
		r.Out = out
		fits := r.ReplyElement(element)
		out = r.Out
		most = min(cap(out), begun+exec.LongBytes)
		return fits && left > 0
	})
	if r.Out = out; isLong {
		r.Undo(begun)
		replyPinned(r, &l, from, n)
	}
}

// replyPinned answers a long range in slices.
func replyPinned(r *exec.Request, l *list, from, n int) {
	end := from + n
	r.ReplyPinnedText(l.tree.V, resp.AppendArray(nil, n), func(pin *engine.ValuePin, t *exec.Text) (done bool) {
		tree := shape.PinnedList(pin)
		from = tree.Walk(from, func(x shape.Entry) bool {
			if from == end || t.IsFull() {
				return false
			}
			t.Element(x.First)
			from++
			return true
		})
		return from == end
	})
}

func appendElement(dst []byte, i shape.Item) []byte {
	var number shape.Decimal
	return resp.AppendBulk(dst, i.Text(&number))
}
