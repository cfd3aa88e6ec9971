package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// A value that gets shorter can always be stored, even without memory for a cell of its length.
func TestShorterValueNeedsNoMemory(t *testing.T) {
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 1, Policy: NoEviction})
	with(e, 1, 1, func(x Txn) {
		key, value := []byte("shrinks"), bytes.Repeat([]byte("v"), 3000)
		if err := x.Set(key, value, TypeString, 0); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		for i := 0; err == nil; i++ {
			err = x.Set(fmt.Append(nil, i), value, TypeString, 0)
		}
		if !errors.Is(err, ErrMemory) {
			t.Fatal(err)
		}
		for n := len(value); n >= 0; n -= 7 {
			if err := x.Set(key, value[:n], TypeString, 0); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if item, found := x.Find(key); !found || len(item.Value()) != n {
				t.Fatalf("%d bytes are not stored", n)
			}
		}
	})
	e.checkSums(t)
}
