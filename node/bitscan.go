package node

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// bitCount: BITCOUNT key [start end [BYTE | BIT]]
func bitCount(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	if !ok {
		return
	}
	if !found {
		r.replyInt(0) // whatever the range is
		return
	}
	value := item.Value()
	from, to := int64(0), int64(len(value))*8
	switch len(r.args) {
	case 2:
	case 4, 5:
		if from, to, ok = r.bitRange(2, int64(len(value))); !ok {
			return
		}
	default:
		r.fail(errSyntax)
		return
	}
	r.scan(t, item, bitScan{count: true, from: from, to: to})
}

// bitPos: BITPOS key bit [start [end [BYTE | BIT]]]
func bitPos(r *request) {
	bit, ok := r.intArg(2)
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		r.fail(errBitArgument)
		return
	}
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	if !ok {
		return
	}
	if !found {
		r.replyInt(-bit)
		return
	}
	value := item.Value()
	from, to := int64(0), int64(len(value))*8
	switch len(r.args) {
	case 3:
	case 4, 5, 6:
		if from, to, ok = r.bitRange(3, int64(len(value))); !ok {
			return
		}
	default:
		r.fail(errSyntax)
		return
	}
	scan := bitScan{from: from, to: to, set: bit == 1, nowhere: -1}
	if bit == 0 && len(r.args) < 5 && from < to {
		scan.nowhere = to // without an end, zeros follow the value
	}
	r.scan(t, item, scan)
}

// bitScan is a look at the bits [from, to) of a value.
type bitScan struct {
	from, to int64
	count    bool  // how many are set; otherwise:
	set      bool  // where is the first that is, or is not, set?
	nowhere  int64 // the answer if there is none
}

func (s bitScan) of(value []byte) int64 {
	if s.count {
		return int64(countBitsIn(value, s.from, s.to))
	}
	if at := findBit(value, s.set, s.from, s.to); at >= 0 {
		return at
	}
	return s.nowhere
}

// scan answers what is found in the item. A goroutine looks where there is much to look through.
func (r *request) scan(t engine.Txn, item engine.Item, s bitScan) {
	if s.to-s.from > scanFrom*8 && !r.holding {
		if pin, ok := t.Pin(item); ok {
			r.answerLater(func() []byte {
				defer pin.Release()
				return resp.AppendInt(nil, s.of(pin.Value()))
			})
			return
		}
	}
	r.replyInt(s.of(item.Value()))
}
