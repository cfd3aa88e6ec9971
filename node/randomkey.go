package node

import (
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// randomStep is among how many neighbours in the order of SCAN a random key is chosen, at least: keys behind a gap in that
	// order would be chosen more often otherwise.
	randomStep = 32
	// randomSteps is for how many steps a key is looked for that is not expired. Expired ones are swept away in seconds.
	randomSteps = 20_000
)

// randomKey: RANDOMKEY
func randomKey(r *request) {
	wanted := served(r.view, &allPartitions)
	if key, _ := r.someKey(&wanted); key != nil {
		r.replyBulk(key)
		return
	}
	r.replyNull()
}

// eachRandomKey answers EACH RANDOMKEY: how many keys there are and one of them, or an empty array.
func (r *request) eachRandomKey(wanted *ring.PartitionSet) {
	_, covered := r.node.coverage(wanted)
	r.out = member.AppendCovered(r.out, &covered)
	key, count := r.someKey(&covered)
	if key == nil {
		r.out = resp.AppendArray(r.out, 0)
		return
	}
	r.out = resp.AppendArray(r.out, 2)
	r.replyInt(count)
	r.replyBulk(key)
}

// someKey chooses a key of the partitions, each about as probable as the other, and says how many there are. nil: there is none.
func (r *request) someKey(wanted *ring.PartitionSet) (key []byte, count int64) {
	n := r.node
	if count = n.countKeys(wanted); count == 0 {
		return nil, 0
	}
	at, first := rand.Int64N(count), 0
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
			if at -= int64(n.engine.Count(p)); at < 0 {
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
		if key = r.someKeyOf(p, &steps); key != nil || steps == 0 {
			break
		}
	}
	return key, count
}

// someKeyOf chooses a key of a partition, among those behind a place by chance. What is behind the end is at the beginning.
func (r *request) someKeyOf(p uint16, steps *int) (key []byte) {
	met, start := 0, uint64(0)
	if r.node.engine.Count(p) > randomStep {
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
			cursor, done = r.node.engine.Walk(p, cursor, randomStep-met, r.now, visit)
		}
	}
	return key
}
