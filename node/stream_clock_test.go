package node

import (
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
