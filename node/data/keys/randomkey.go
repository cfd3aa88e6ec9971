package keys

import (
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/member"
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
// them, or is an empty array. It passes over partitions that are held. If no other one has keys, a
// client waits, and a part of a reply does not cover them.
func randomKey(r *exec.Request) {
	start := len(r.Out)
	covered := r.Keyspace.Cover()
	s := search{steps: randomSteps}
	key, count := s.someKey(r, &covered)
	switch {
	case key == nil && s.hold != nil && !r.Part:
		r.Host.Held(s.hold)
	case key == nil && s.hold != nil:
		covered.RemoveAll(&s.held)
		r.Out = resp.AppendArray(member.AppendCovered(r.Out[:start], &covered), 0)
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

// search looks for a random key.
type search struct {
	steps int               // that are left
	held  ring.PartitionSet // partitions that it has passed over
	hold  *engine.Hold      // one of theirs; nil: there is none
}

// someKey returns a random key of the partitions, all about equally probable, or nil if there is
// none. count is the number of keys. The key is a copy.
func (s *search) someKey(r *exec.Request, wanted *ring.PartitionSet) (key []byte, count int64) {
	var counts [ring.Partitions]uint32
	r.Engine.CountsIn(r.Database, &counts)
	if count = sumOf(&counts, wanted); count == 0 {
		return nil, 0
	}
	at, first := rand.Int64N(count), 0
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
			if at -= int64(counts[p]); at < 0 {
				first = int(p)
				break
			}
		}
	}
	for i := range ring.Partitions {
		p := uint16((first + i) % ring.Partitions)
		if !wanted.Has(p) {
			continue
		}
		if key = s.someKeyOf(r, p); key != nil || s.steps == 0 {
			break
		}
	}
	return key, count
}

// someKeyOf returns a random key of a partition, among those behind a random place. Behind the end
// it continues at the beginning. It finds none while the partition is held.
func (s *search) someKeyOf(r *exec.Request, p uint16) (key []byte) {
	met, start, section := 0, uint64(0), engine.Section(p, r.Database)
	if r.Engine.CountSection(section) > randomStep {
		start = uint64(rand.Uint32())
	}
	visit := func(item engine.Item) bool {
		if met++; rand.IntN(met) == 0 {
			key = append(key[:0], item.Key()...)
		}
		return true
	}
	for _, cursor := range [...]uint64{start, 0} {
		for done := false; !done && met < randomStep && s.steps > 0; s.steps-- {
			var hold *engine.Hold
			cursor, done, hold = r.Engine.WalkUnheld(section, cursor, randomStep-met, r.Now, visit)
			if hold != nil {
				s.hold = hold
				s.held.Add(p)
				return key
			}
		}
	}
	return key
}
