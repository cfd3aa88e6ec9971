package node

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// A key that moves keeps its time to live, though the clocks of the two nodes differ by an hour.
func TestStreamBetweenClocks(t *testing.T) {
	const left = time.Minute
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		a := startBare(t)
		b, copies := startReceiver(t)
		c := dial(t, b.Addr())
		c.want("DUNLIN PEER 1 \"\"", "OK")
		c.want("DUNLIN STREAM a 9", "(integer) 0")
		copies.takeAll()

		before := time.Now()
		theirs := before.Add(ahead).UnixMilli()
		p := ring.PartitionOf([]byte("key"))
		txn := a.engine.Lock(p, theirs)
		err := txn.Set([]byte("key"), []byte("value"), engine.TypeString, theirs+left.Milliseconds())
		effect := txn.AppendEffect(nil, []byte("key"))
		txn.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		c.sendArgs([]byte("DUNLIN"), []byte("EFFECTS"), []byte("1"), strconv.AppendInt(nil, theirs, 10), effect)
		if got := c.next(); got != "(integer) 1" {
			t.Fatalf("the batch is answered %s", got)
		}

		const clockStep = time.Second // the loops' clock is coarse
		first, last := before.Add(left-clockStep), time.Now().Add(left+clockStep)
		txn = b.engine.Lock(p, before.UnixMilli())
		item, found := txn.Peek([]byte("key"))
		at := time.Time{}
		if found {
			at = time.UnixMilli(item.ExpireAt())
		}
		txn.Unlock()
		if at.Before(first) || at.After(last) {
			t.Errorf("from a clock %v ahead, the key expires at %v, want %v", ahead, at, first.Add(clockStep))
		}
	}
}

// A value with the farthest expiry there is survives a receiver whose clock is ahead, in one piece
// or in several.
func TestStreamShiftsFarExpiries(t *testing.T) {
	b, copies := startReceiver(t)
	c := dial(t, b.Addr())
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN STREAM a 9", "(integer) 0")
	copies.takeAll()
	p := ring.PartitionOf([]byte("key"))
	value := make([]byte, 64<<10)
	c.sendArgs([]byte("DUNLIN"), []byte("VALUE"), []byte("1"), []byte("1"), strconv.AppendInt(nil, int64(p), 10), []byte("key"),
		[]byte("9223372036854775807"), []byte("1"), []byte("0"), strconv.AppendInt(nil, int64(len(value)), 10), []byte("0"), value)
	if got := c.next(); got != "(integer) 1" {
		t.Fatalf("the piece is answered %s", got)
	}
	txn := b.engine.Lock(p, time.Now().UnixMilli())
	defer txn.Unlock()
	if item, found := txn.Peek([]byte("key")); !found || item.ExpireAt() != math.MaxInt64 {
		t.Errorf("the key is there: %t; it expires at %d, want never", found, item.ExpireAt())
	}
}
