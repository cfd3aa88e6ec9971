package load

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// keyDigits is how many digits follow the prefix of a key.
const keyDigits = 12

// KeyName returns the name of key n.
func KeyName(prefix string, n int) string { return fmt.Sprintf("%s%0*d", prefix, keyDigits, n) }

// template is a command whose keys have the number 0.
type template struct {
	text []byte
	keys []int // positions at which the digits of each key begin
}

// writer makes requests.
type writer struct {
	set, get   template
	sets, turn int // how many of a turn's commands are SET
	position   int // in the turn
	random     *rand.PCG
	hotBelow   uint64 // of 2^32: a random number below it is for key 0
	keys       uint64
	next, last int // range of the keys that are set in order; last 0: keys are random
	asked      int // keys that GETs have requested
}

func newWriter(c *Config, number, inOrder int) *writer {
	value := strings.Repeat("x", c.ValueBytes)
	key := KeyName(c.Prefix, 0)
	w := &writer{sets: c.Sets, turn: c.Sets + c.Gets, random: rand.NewPCG(1, uint64(number)),
		hotBelow: uint64(c.Hot * (1 << 32)), keys: uint64(c.Keys), last: inOrder}
	get := append([]string{"GET"}, strings.Fields(strings.Repeat(key+" ", c.KeysPerGet))...)
	if c.KeysPerGet > 1 {
		get[0] = "MGET"
	}
	if c.Protocol == Memcached {
		get[0] = "get"
		w.set.text = fmt.Appendf(nil, "set %s 0 0 %d\r\n%s\r\n", key, len(value), value)
		w.get.text = fmt.Appendf(nil, "%s\r\n", strings.Join(get, " "))
	} else {
		w.set.text = appendRequest("SET", key, value)
		w.get.text = appendRequest(get...)
	}
	w.set.findKeys(key)
	w.get.findKeys(key)
	return w
}

func appendRequest(words ...string) []byte {
	dst := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(w), w)
	}
	return dst
}

func (t *template) findKeys(key string) {
	for from := 0; ; {
		i := bytes.Index(t.text[from:], []byte(key))
		if i < 0 {
			return
		}
		from += i + len(key)
		t.keys = append(t.keys, from-keyDigits)
	}
}

// appendBatch appends up to n commands and returns how many: fewer at the end of the keys that are
// set in order.
func (w *writer) appendBatch(dst []byte, n int) ([]byte, int) {
	if w.last > 0 {
		n = min(n, w.last-w.next)
	}
	for range n {
		t := &w.get
		if w.position < w.sets {
			t = &w.set
		} else {
			w.asked += len(t.keys)
		}
		if w.position++; w.position == w.turn {
			w.position = 0
		}
		at := len(dst)
		dst = append(dst, t.text...)
		for _, digits := range t.keys {
			putNumber(dst[at+digits:], w.key())
		}
	}
	return dst, n
}

func (w *writer) key() uint64 {
	if w.last > 0 {
		w.next++
		return uint64(w.next - 1)
	}
	r := w.random.Uint64()
	if r&(1<<32-1) < w.hotBelow {
		return 0
	}
	return r >> 32 * w.keys >> 32
}

// putNumber writes n over the zeros of a key.
func putNumber(digits []byte, n uint64) {
	for i := keyDigits - 1; n > 0; i-- {
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
}

// ended reports whether all keys that are set in order have been set.
func (w *writer) ended() bool { return w.last > 0 && w.next == w.last }
