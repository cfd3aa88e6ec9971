package engine

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// forge is the key of 8 bytes that has the hash h. XXH64 can be run backwards, a step at a time.
func forge(seed, h uint64) string {
	h ^= h >> 32
	h *= inverse(prime3)
	h ^= h>>29 ^ h>>58
	h *= inverse(prime2)
	h ^= h >> 33
	h = bits.RotateLeft64((h-prime4)*inverse(prime1), -27)
	h = (h ^ (seed + prime5 + 8)) * inverse(prime1)
	return string(binary.LittleEndian.AppendUint64(nil, bits.RotateLeft64(h, -31)*inverse(prime2)))
}

// inverse is 1/x modulo 2⁶⁴, for odd x: each of Newton's steps doubles the number of right bits.
func inverse(x uint64) uint64 {
	y := x
	for range 6 {
		y *= 2 - x*y
	}
	return y
}

// sameTag and sameLowBits are floods: keys with equal tags, and with tags that are equal in their
// low 20 bits.
func sameTag(seed uint64, i int) string { return forge(seed, uint64(i)<<32|0xF00D) }
func sameLowBits(seed uint64, i int) string {
	return forge(seed, uint64(i)*0x9E3779B97F4A7C15<<20|0xF00D)
}

func TestForge(t *testing.T) {
	for range 1000 {
		seed, h := rand.Uint64(), rand.Uint64()
		if got := hash(seed, []byte(forge(seed, h))); got != h {
			t.Fatalf("the forged key has the hash %x, want %x", got, h)
		}
	}
}

// TestCollisionsNeedNoSeed shows why floods must be borne: under every seed at once, two keys have
// one hash, and such pairs can be put behind each other.
func TestCollisionsNeedNoSeed(t *testing.T) {
	// The first words differ by one bit where the first multiplication is over; it lies where the
	// rotation makes it the highest, which a multiplication by an odd number leaves alone. The
	// second words take it away again.
	word := func(x uint64) uint64 { return bits.RotateLeft64(x*inverse(prime1), -31) * inverse(prime2) }
	key := func(flip uint64) []byte {
		k := binary.LittleEndian.AppendUint64(nil, word(12345^flip<<36))
		return binary.LittleEndian.AppendUint64(k, word(6789^flip<<63))
	}
	for range 1000 {
		if seed := rand.Uint64(); hash(seed, key(0)) != hash(seed, key(1)) {
			t.Fatal("no collision")
		}
	}
}

// longestChains are those of a partition's index and of its crowd.
func (s *shard) longestChains(p *partition) (main, crowd int) {
	longest := func(p *partition) (n int) {
		for i := range p.buckets {
			_, length := s.cells.chainEnd(s.cells.bucketAt(p, i))
			n = max(n, length)
		}
		return n
	}
	if c := s.cells.crowd(p); c != nil {
		crowd = longest(c)
	}
	return longest(p), crowd
}

// TestFlood stores keys that the index cannot tell apart, among others. Nothing is lost, no chain
// is long, a walk meets every key once, and memory is that of as many other keys; when they go,
// everything goes.
func TestFlood(t *testing.T) {
	oneGoroutine(t)
	const keys, seed = 10_000, 4711
	run := func(name string, p uint16, key func(seed uint64, i int) string) {
		t.Run(name, func(t *testing.T) {
			e := open(t, Config{MaxBytes: 64 << 20, Shards: 16, Seed: seed})
			s, part := e.shardOf(p), e.shardOf(p).partition(p)
			for i := range keys {
				mustSet(t, e, p, key(seed, i), []byte(fmt.Sprint(i)))
				mustSet(t, e, p, fmt.Sprint(i), nil)
			}
			for i := range keys {
				if got := string(get(e, p, key(seed, i))); got != fmt.Sprint(i) {
					t.Fatalf("key %d is %q", i, got)
				}
			}
			if main, crowd := s.longestChains(part); main > maxChain || crowd > maxChain {
				t.Errorf("chains have up to %d buckets, in the crowd up to %d", main, crowd)
			}
			if st := e.Stats(); st.Index > 3*bucketSize*(2*keys)/5 {
				t.Errorf("the index of %d keys has %d bytes", 2*keys, st.Index)
			}
			e.checkSums(t)
			met := map[string]int{}
			for cursor, done := uint64(0), false; !done; {
				cursor, done = e.Walk(p, cursor, 10, 0, func(item Item) bool {
					met[string(item.Key())]++
					return true
				})
			}
			for i := range keys {
				if met[key(seed, i)] != 1 || met[fmt.Sprint(i)] != 1 {
					t.Fatalf("a walk met key %d %d and %d times", i, met[key(seed, i)], met[fmt.Sprint(i)])
				}
			}
			for i := range keys {
				with(e, p, 0, func(x Txn) {
					if !x.Delete([]byte(key(seed, i))) || !x.Delete([]byte(fmt.Sprint(i))) {
						t.Fatalf("key %d is gone", i)
					}
				})
				if i%(keys/3) == 0 {
					e.checkSums(t)
				}
			}
			e.checkSums(t)
			if st := e.Stats(); st.Keys != 0 || st.Index > bucketSize {
				t.Errorf("%+v", st)
			}
		})
	}
	run("equal tags", 11, sameTag)
	run("equal low bits", 11, sameLowBits)
	run("equal tags in another database", Section(11, 5), sameTag)
}

// TestFloodIsDropped drops a flooded partition, in slices, with other work in between.
func TestFloodIsDropped(t *testing.T) {
	oneGoroutine(t)
	floodIsDropped(t, 11)
	floodIsDropped(t, Section(11, Databases-1))
}

func floodIsDropped(t *testing.T, p uint16) {
	const keys, seed = 3000, 4711
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 16, Seed: seed})
	fill := func() {
		for i := range keys {
			mustSet(t, e, p, sameTag(seed, i), nil)
		}
	}
	fill()
	s := e.shardOf(p)
	d, n := s.dropped.doom(p)
	if n != keys {
		t.Errorf("dropped %d keys of %d", n, keys)
	}
	fill()
	for i := 0; !s.dropped.drainSlice(d, 10); i++ {
		if i%100 == 0 {
			e.checkSums(t)
		}
	}
	e.checkSums(t)
	if n := e.Clear(p); n != keys {
		t.Errorf("dropped %d keys of %d", n, keys)
	}
	e.checkSums(t)
	if st := e.Stats(); st.Keys != 0 || st.Values != 0 || st.Index > bucketSize {
		t.Errorf("%+v", st)
	}
}

// TestFloodedWalk holds a walk to its promise while the crowd grows and shrinks, and the walk goes
// on in an engine where other keys are in the crowd.
func TestFloodedWalk(t *testing.T) {
	oneGoroutine(t)
	const p, stay, seed = 11, 2000, 4711
	a := open(t, Config{MaxBytes: 64 << 20, Shards: 4, Seed: seed})
	b := open(t, Config{MaxBytes: 64 << 20, Shards: 16, Seed: seed})
	key := func(i int) string {
		if i%2 == 0 {
			return sameLowBits(seed, i)
		}
		return sameTag(seed, i)
	}
	for i := range stay {
		mustSet(t, a, p, key(i), nil)
		mustSet(t, b, p, key(stay-1-i), nil)
	}
	met := map[string]int{}
	walk := a
	for cursor, done, round := uint64(0), false, 0; !done; round++ {
		cursor, done = walk.Walk(p, cursor, 1, 0, func(item Item) bool {
			met[string(item.Key())]++
			return true
		})
		for i := range 100 {
			other := key(stay + round/20%2*100 + i)
			with(walk, p, 0, func(x Txn) {
				if round%20 < 10 {
					_ = x.Set([]byte(other), nil, TypeString, 0)
				} else {
					x.Delete([]byte(other))
				}
			})
		}
		if round == 5 {
			walk = b
		}
	}
	if walk != b {
		t.Fatal("the walk ended before it moved")
	}
	for i := range stay {
		if met[key(i)] == 0 {
			t.Fatalf("key %d was not met", i)
		}
	}
}
