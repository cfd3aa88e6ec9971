package node

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/stream"
)

// TestLongBatch: while a batch is applied that takes long, its loop serves others. A short one that
// comes behind it waits, and both are answered in their order.
func TestLongBatch(t *testing.T) {
	source := startLeveled(t)
	owner := dial(t, source.Addr())
	add := [][]byte{[]byte("HSET"), []byte("h")}
	for i := range 1000 {
		add = append(add, fmt.Append(nil, i), []byte("v"))
	}
	owner.sendArgs(add...)
	owner.wantNext("(integer) 1000")
	p := partitionOf("h")
	effects := func() []byte {
		txn := source.engine.Lock(p, time.Now().UnixMilli())
		defer txn.Unlock()
		return txn.AppendEffect(nil, []byte("h"))
	}
	long := effects()
	owner.want("DEL h", "(integer) 1")
	short := effects()
	if !stream.IsLong(long) || stream.IsLong(short) {
		t.Fatalf("%d bytes are long: %v, and %d bytes: %v", len(long), stream.IsLong(long), len(short), stream.IsLong(short))
	}

	b, copies := startReceiver(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, beside := dial(t, b.Addr()), dial(t, b.Addr())
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN STREAM a 9", "(integer) 0")
	copies.takeAll()
	batch := func(seq int, effects []byte) []byte {
		return resp.AppendRequest(nil, []byte("DUNLIN"), []byte("EFFECTS"), strconv.AppendInt(nil, int64(seq), 10),
			strconv.AppendInt(nil, time.Now().UnixMilli(), 10), effects)
	}
	txn := b.engine.Lock(p, time.Now().UnixMilli())
	unlock := sync.OnceFunc(txn.Unlock)
	defer unlock()
	c.sendRaw(batch(1, long))
	eventually(t, "the long batch waits for its shard", func() bool { return waitsForLock(".applySome(") })
	c.sendRaw(batch(2, short))
	for range 2 { // the loop has looked at what came before each
		beside.want("PING", "PONG")
	}
	unlock()
	c.wantNext("(integer) 1")
	c.wantNext("(integer) 2")
	if n := b.engine.Count(p); n != 0 {
		t.Errorf("the receiver has %d keys, want none", n)
	}
	eventually(t, "nothing is charged for the batch", func() bool { return b.lists.Load() == 0 })
}
