package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// refusalSchedule is a receiver that refuses partitions, and their sender, which feeds anew what it
// hears of. Their connection breaks at times, and loses answers; batches are sent again.
type refusalSchedule struct {
	rng      *rand.Rand
	refusals Refusals
	vain     [4]bool    // the sender feeds these, and the receiver has no copy
	batches  []uint16   // on their way: the beginnings of copies
	answers  [][]uint16 // on their way
}

func (s *refusalSchedule) step(calm bool) {
	switch x := s.rng.IntN(10); {
	case x < 2 && !calm:
		p := s.rng.IntN(len(s.vain))
		s.vain[p] = true
		s.refusals.Refuse(uint16(p))
	case x < 3 && !calm:
		s.answers = nil
		s.refusals.Reopened()
	case x < 5:
		s.answers = append(s.answers, s.refusals.Tell(nil))
	case x < 8 && len(s.answers) > 0:
		s.batches = append(s.batches, s.answers[0]...)
		s.answers = s.answers[1:]
	case len(s.batches) > 0:
		s.refusals.Accept(s.batches[0])
		s.vain[s.batches[0]] = false
		s.batches = s.batches[1:]
	}
}

// firstVain is the first schedule at whose end a partition is fed in vain, for ever.
func firstVain(schedules int, broken *Broken) (seed uint64, fault string) {
	for seed = 1; seed <= uint64(schedules); seed++ {
		s := &refusalSchedule{rng: rand.New(rand.NewPCG(seed, 1)), refusals: Refusals{Broken: broken}}
		for range 50 {
			s.step(false)
		}
		for range 200 {
			s.step(true)
		}
		for p, vain := range s.vain {
			if vain {
				return seed, fmt.Sprintf("schedule %d: %d is fed in vain", seed, p)
			}
		}
	}
	return 0, ""
}

// Whatever answers are lost, in the end the receiver has a copy of everything that it is fed.
func TestNothingIsFedInVain(t *testing.T) {
	if _, fault := firstVain(1000, nil); fault != "" {
		t.Error(fault)
	}
	_, fault := firstVain(100, &Broken{ForgetRefusals: true})
	if fault == "" {
		t.Error("do not repeat a refusal that was lost: not noticed in 100 schedules")
	}
	t.Logf("do not repeat a refusal that was lost: %s", fault)
}
