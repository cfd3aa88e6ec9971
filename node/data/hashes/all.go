package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hGetAll: HGETALL key
func hGetAll(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := read(r, t)
	switch {
	case !ok:
	case !found:
		r.Out = resp.AppendMap(r.Out, r.Version(), 0)
	default:
		replyAll(r, t, item)
	}
}

func replyAll(r *exec.Request, t engine.Txn, item engine.Item) {
	v, big := t.Parts(item)
	if !big {
		p := shape.ReadPacked(&shape.PackedHash, item.Value())
		if !r.Room(exec.LineRoom + 2*shape.MaxPacked + 16*p.Len()) {
			return
		}
		r.Out = appendPacked(resp.AppendMap(r.Out, r.Version(), p.Len()), &p)
		return
	}
	table := tableOf(v, r.Now)
	if exec.IsLong(2*table.Len(), v.Bytes()) {
		replyPinned(r, &table)
		return
	}
	r.Out = resp.AppendMap(r.Out, r.Version(), table.Len())
	for number := range v.Len(blocks) {
		table.Each(number, func(e shape.Element) {
			r.ReplyElement(e.Key)
			r.ReplyElement(e.Value)
		})
	}
}

func appendPacked(dst []byte, p *shape.Packed) []byte {
	p.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
		dst = appendElement(appendElement(dst, field), value)
		return true
	})
	return dst
}

func appendElement(dst []byte, i shape.Item) []byte {
	var number shape.Decimal
	return resp.AppendBulk(dst, i.Text(&number))
}

// replyPinned answers all of a long hash in slices.
func replyPinned(r *exec.Request, table *shape.Table) {
	t, number := *table, 0
	head := resp.AppendMap(nil, r.Version(), t.Len())
	r.ReplyPinned(t.V, head, func(pin *engine.ValuePin, dst []byte) ([]byte, bool) {
		for t.Pin = pin; number < pin.Len(blocks) && !exec.SliceIsFull(dst); number++ {
			t.Each(number, func(e shape.Element) {
				dst = appendElement(appendElement(dst, e.Key), e.Value)
			})
		}
		return dst, number == pin.Len(blocks)
	})
}
