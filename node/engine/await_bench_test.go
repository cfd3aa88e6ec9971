package engine

import (
	"fmt"
	"testing"
)

// BenchmarkAwait/Served has a command wait for a key, among very many that wait for others, and a push serve it.
func BenchmarkAwait(b *testing.B) {
	b.Run("Served", func(b *testing.B) {
		served := 0
		e := open(b, Config{MaxBytes: 16 << 20, Shards: 2, Servers: Servers{
			Serves: func(uint16) bool { return true },
			Serve: func(t Txn, _ *Waiter) (func(), bool, int) {
				t.Delete([]byte("k"))
				return func() { served++ }, true, 0
			},
			End: func(Txn, Item) Position { return End },
		}})
		wait := func(key string) {
			t := e.Lock(2, 1)
			t.Await(new(Waiter), Wish{Type: TypeString, Keys: [][]byte{[]byte(key)}}, key, []Part{{Len: uint16(len(key))}})
			t.Unlock()
		}
		for i := range 10_000 {
			wait(fmt.Sprint("other", i))
		}
		b.ReportAllocs()
		for b.Loop() {
			wait("k")
			t := e.Lock(2, 1)
			if err := t.Set([]byte("k"), []byte("v"), TypeString, 0); err != nil {
				b.Fatal(err)
			}
			t.Unlock()
		}
		if served == 0 {
			b.Error("nobody was served")
		}
	})
}
