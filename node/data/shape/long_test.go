package shape

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// TestLend: a long element that was lent is taken over without a copy, or given back, also while the
// list is pinned.
func TestLend(t *testing.T) {
	f := newListFeed(t, 1)
	long := bytes.Repeat([]byte("long"), 50_000)
	var pin *engine.ValuePin
	f.with(f.owner, func(txn engine.Txn) {
		l := f.listOf(txn)
		l.w = &f.w
		if err := l.Insert(0, [][]byte{[]byte("short"), long, []byte("last")}, false); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := l.Lend(0); ok {
			t.Error("a short element was lent")
		}
		before := l.V.Bytes()
		var err error
		if pin, err = l.V.PinValue(); err != nil {
			t.Fatal(err)
		}
		lent, element, ok := l.Lend(1)
		if !ok || !bytes.Equal(element, long) || l.V.Bytes() >= before-int64(len(long)) {
			t.Fatalf("lent %v, %d bytes, and the list has %d of %d", ok, len(element), l.V.Bytes(), before)
		}
		l.Return(1, &lent)
		if got := l.At(1).First.Long(); lent.Live() || &got[0] != &element[0] || l.V.Bytes() != before {
			t.Errorf("given back: live %v, the list has %d bytes of %d", lent.Live(), l.V.Bytes(), before)
		}
		lent, element, _ = l.Lend(1)
		txn.Offer(&lent)
		if err := l.Insert(3, [][]byte{element}, false); err != nil {
			t.Fatal(err)
		}
		got := l.At(3).First.Long()
		if lent.Live() || &got[0] != &element[0] || !bytes.Equal(got, long) {
			t.Error("the element was copied")
		}
		l.Remove(1, 1)
		if err := l.Check(); err != nil || l.Len() != 3 {
			t.Errorf("%d elements: %v", l.Len(), err)
		}
	})
	if !pin.Lock() {
		t.Fatal("the pin has broken")
	}
	seen := PinnedList(pin)
	if got := seen.At(1).First.Long(); !bytes.Equal(got, long) {
		t.Errorf("the pin has %d bytes", len(got))
	}
	pin.Unlock()
	pin.Release()
}

// TestOffersEnd: what was offered under one lock is not taken over under the next one, when its owner
// may be changing it.
func TestOffersEnd(t *testing.T) {
	for _, fed := range []bool{false, true} {
		f := newListFeed(t, 1)
		if fed {
			f.owner.Feed(listPartition, listReceiver, engine.Mark{})
		}
		text := bytes.Repeat([]byte("long"), 50_000)
		head := AwayHead(len(text))
		st, err := f.owner.StagePart(len(head) + len(text))
		if err = errors.Join(err, st.Write(head[:]), st.Write(text)); err != nil {
			t.Fatal(err)
		}
		view := st.Value()[len(head):]
		f.with(f.owner, func(txn engine.Txn) {
			txn.Offer(&st)
			if l := f.listOf(txn); l.V.Offered(view, awayHead) != &st || l.V.Offered(view[1:], awayHead) != nil {
				t.Error("what was offered is not found, or something else is")
			}
		})
		f.with(f.owner, func(txn engine.Txn) {
			if l := f.listOf(txn); l.V.Offered(view, awayHead) != nil {
				t.Error("an offer outlives its lock")
			}
		})
		st.Discard()
	}
}
