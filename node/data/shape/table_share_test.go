package shape

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A table that has its share of the memory takes no element more. Integers in it get longer, and times
// are set, until it has half as much again.
func TestTableShare(t *testing.T) {
	const memory, parts = 64 << 20, 64
	const share = memory / parts
	e := openShared(t, memory, parts)
	txn := e.Lock(2, 1)
	defer txn.Unlock()
	table, w, count := makeTable(t, txn, "h", 2), new(Work), 0
	key := func(i int) []byte { return fmt.Append(nil, "field:", i) }
	set := func(i int, value string, expireAt int64) error {
		if err := table.Reserve(w, [][]byte{key(i), []byte(value)}, expireAt != 0); err != nil {
			return err
		}
		_, err := table.Set(key(i), []byte(value), expireAt)
		return err
	}
	// untilFull changes elements until one is refused, and checks what the table has then.
	untilFull := func(what string, most int64, change func(i int) error) (done int) {
		for ; ; done++ {
			if done == 500_000 {
				t.Fatalf("%s: none is refused, the table has %d bytes", what, table.V.Bytes())
			}
			if err := change(done); errors.Is(err, engine.ErrTooBig) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if has := table.V.Bytes(); has > most+most/8 {
			t.Errorf("%s: the table has %d bytes, want about %d at most", what, has, most)
		}
		return done
	}
	count = untilFull("elements", share, func(i int) error { return set(i, "0", 0) })
	longer := untilFull("integers", share*3/2, func(i int) error { return set(i%count, "9000000000000000000", 0) })
	if longer < count/10 {
		t.Errorf("only %d of %d integers got longer", longer, count)
	}
	untilFull("times", share*3/2, func(i int) error {
		if err := table.ReserveTimes(w, [][]byte{key(i % count)}); err != nil {
			return err
		}
		_, err := table.SetExpireAt(key(i%count), 1000)
		return err
	})
	if err := set(1, "0", 0); err != nil {
		t.Errorf("an integer does not get shorter: %v", err)
	}
}
