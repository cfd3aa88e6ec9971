package main

import (
	"encoding/binary"
	"sync"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// digits is how many bytes of a key distinguish it from others: its number in hexadecimal.
const digits = 8

// newKey returns a buffer for keys of n bytes, which all begin alike, as real keys do. putKey turns
// the buffer into one of them.
func newKey(n int) []byte {
	const words = "session:customer:profile:account:"
	key := make([]byte, n)
	copy(key[:n-digits], words)
	for i := len(words); i < n-digits; i++ {
		key[i] = ':'
	}
	return key
}

// putKey writes number i to the end of key: about a nanosecond, so that making keys does not hide
// what is measured.
func putKey(key []byte, i uint32) {
	v := uint64(i) // to be spread to one nibble per byte
	v = (v<<16 | v) & 0x0000ffff0000ffff
	v = (v<<8 | v) & 0x00ff00ff00ff00ff
	v = (v<<4 | v) & 0x0f0f0f0f0f0f0f0f
	letters := (v + 0x0606060606060606) >> 4 & 0x0101010101010101
	binary.BigEndian.PutUint64(key[len(key)-digits:], v+0x3030303030303030+letters*('a'-'0'-10))
}

// split calls f in n goroutines at once, each with its part of 0..count, and returns one of their
// errors.
func split(n, count int, f func(worker, from, to int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() { errs[w] = f(w, count*w/n, count*(w+1)/n) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sumCounts returns how many keys the engine has.
func sumCounts(e *engine.Engine) (keys int) {
	for p := range uint16(engine.Partitions) {
		keys += e.Count(p)
	}
	return keys
}
