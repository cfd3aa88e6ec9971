package keys

import (
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// randomStep is the number of neighbours, in the order of SCAN, from which a random key is
	// chosen. With fewer, keys behind a gap in that order would be chosen more often.
	randomStep = 32
	// randomSteps bounds the search for a key that has not expired. Expired keys are removed within
	// seconds.
	randomSteps = 20_000
)

// randomKey: RANDOMKEY. A part of a reply says how many keys there are to choose from, and one of
// them, or is an empty array.
func randomKey(r *exec.Request) {
	covered := r.Keyspace.Cover()
	key, count := someKey(r, &covered)
	switch {
	case !r.Part && key == nil:
		r.ReplyNull()
	case !r.Part:
		r.ReplyBulk(key)
	case key == nil:
		r.Out = resp.AppendArray(r.Out, 0)
	default:
		r.Out = resp.AppendArray(r.Out, 2)
		r.ReplyInt(count)
		r.ReplyBulk(key)
	}
}

// someKey returns a random key of the partitions, all about equally probable, or nil if there is
// none. count is the number of keys. The key is a copy.
func someKey(r *exec.Request, wanted *ring.PartitionSet) (key []byte, count int64) {
	if count = Count(r.Engine, wanted); count == 0 {
		return nil, 0
	}
	at, first := rand.Int64N(count), 0
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
			if at -= int64(r.Engine.Count(p)); at < 0 {
				first = int(p)
				break
			}
		}
	}
	steps := randomSteps
	for i := range ring.Partitions {
		p := uint16((first + i) % ring.Partitions)
		if !wanted.Has(p) {
			continue
		}
		if key = someKeyOf(r, p, &steps); key != nil || steps == 0 {
			break
		}
	}
	return key, count
}

// someKeyOf returns a random key of a partition, among those behind a random place. Behind the end
// it continues at the beginning. steps is reduced by the steps taken.
func someKeyOf(r *exec.Request, p uint16, steps *int) (key []byte) {
	met, start := 0, uint64(0)
	if r.Engine.Count(p) > randomStep {
		start = uint64(rand.Uint32())
	}
	visit := func(item engine.Item) bool {
		if met++; rand.IntN(met) == 0 {
			key = append(key[:0], item.Key()...)
		}
		return true
	}
	for _, cursor := range [...]uint64{start, 0} {
		for done := false; !done && met < randomStep && *steps > 0; *steps-- {
			cursor, done = r.Engine.Walk(p, cursor, randomStep-met, r.Now, visit)
		}
	}
	return key
}
