package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuorum(t *testing.T) {
	const second = time.Second
	q := Quorum{Want: 2, Limit: second}
	others := []string{"b", "c", "d", "e"}
	round := func(now time.Duration, want ...string) {
		t.Helper()
		if ask, _ := q.Round(now, others); !slices.Equal(ask, want) {
			t.Errorf("at %v it asks %q, want %q", now, ask, want)
		}
	}
	until := func(want time.Duration) {
		t.Helper()
		if got := q.Until(); got != want {
			t.Errorf("it serves until %v, want %v", got, want)
		}
	}
	until(-1)
	round(10*second, others...)
	for _, name := range others {
		if q.Heard(10*second+1, 10*second, name) {
			t.Error("a quorum lapses that there never was")
		}
	}
	until(11 * second)
	round(10*second+250, "b", "c", "d") // one more than have to
	q.Heard(10*second+260, 10*second+250, "b")
	q.Heard(10*second+261, 10*second+250, "c")
	until(11*second + 250)
	round(10*second+500, others...) // d is silent
	q.Heard(10*second+510, 10*second+500, "e")
	until(11*second + 250)
	q.Heard(10*second+900, 10*second, "e") // an old word, late
	until(11*second + 250)
	if _, lapsed := q.Round(11*second+250, others); lapsed {
		t.Error("the quorum lapses too early")
	}
	if !q.Heard(11*second+251, 11*second+250, "b") {
		t.Error("the quorum has lapsed, and a word comes: want a doubt")
	}
	if _, lapsed := q.Round(11*second+252, others); lapsed {
		t.Error("the quorum lapses twice")
	}
	if none := (&Quorum{}); none.Until() < 1<<62 {
		t.Errorf("without --min-members it serves until %v", none.Until())
	}
}

// cutSchedule is one node of five, with --min-members 3, behind a network that is cut again and
// again, into random sides. The other four, if at least three of them are together, take over what
// the node has when they have heard nothing of it for takesOver. Meanwhile gossip calls some of them
// alive, or dead, at random. When the node has confirmed its table, it has got everything back.
type cutSchedule struct {
	rng    *rand.Rand
	now    time.Duration
	quorum Quorum
	fence  Fence
	until  time.Duration

	reached   [4]bool          // who is on the node's side
	apart     [4]time.Duration // since when not
	lost      bool             // the others serve what the node had
	confirms  time.Duration    // when the confirmation under way ends; 0: there is none
	inbox     []word
	nextRound time.Duration
	fault     string
}

// takesOver is the least time that others need: to suspect a silent node, to plan, and to wait for
// the stall limit of a node that was dropped as dead.
const takesOver = 1500 * time.Millisecond

type word struct {
	asked, arrives time.Duration
	from           int
}

func (s *cutSchedule) doubt(lapsed bool) {
	if lapsed {
		s.fence.Doubt()
	}
}

// step lets ten milliseconds pass.
func (s *cutSchedule) step() {
	s.now += 10 * time.Millisecond
	if s.rng.IntN(150) == 0 { // the network is cut otherwise, or whole again
		whole := s.rng.IntN(2) == 0
		for i := range s.reached {
			reached := whole || s.rng.IntN(3) == 0
			if s.reached[i] && !reached {
				s.apart[i] = s.now
			}
			s.reached[i] = reached
		}
	}
	silent := 0
	for i, reached := range s.reached {
		if !reached && s.now-s.apart[i] > takesOver {
			silent++
		}
	}
	s.lost = s.lost || silent >= 3

	if s.now >= s.nextRound {
		s.nextRound = s.now + s.quorum.Limit/4 + time.Duration(s.rng.IntN(50))*time.Millisecond
		var others []string
		for i := range s.reached {
			if s.rng.IntN(10) > 0 {
				others = append(others, fmt.Sprint(i))
			}
		}
		ask, lapsed := s.quorum.Round(s.now, others)
		s.doubt(lapsed)
		for _, name := range ask {
			i := int(name[0] - '0')
			if s.reached[i] {
				s.inbox = append(s.inbox, word{s.now, s.now + time.Duration(s.rng.IntN(300))*time.Millisecond, i})
			}
		}
	}
	s.inbox = slices.DeleteFunc(s.inbox, func(w word) bool {
		if s.now < w.arrives {
			return false
		}
		s.doubt(s.quorum.Heard(s.now, w.asked, fmt.Sprint(w.from)))
		s.until = s.quorum.Until()
		return true
	})
	s.confirm()
	if s.now <= s.until && !s.fence.raised && s.lost {
		s.fault = fmt.Sprintf("at %v the node serves what others have taken over", s.now)
	}
}

// confirm has a fenced node ask for the table. Enough others must be there.
func (s *cutSchedule) confirm() {
	there := 0
	for _, reached := range s.reached {
		if reached {
			there++
		}
	}
	switch {
	case !s.fence.raised || there < s.quorum.Want:
		s.confirms = 0
	case s.confirms == 0:
		s.fence.Confirm()
		s.confirms = s.now + time.Duration(s.rng.IntN(100))*time.Millisecond
	case s.now >= s.confirms:
		s.confirms = 0
		if s.fence.Confirmed() {
			s.lost = false
		}
	}
}

// runCuts returns the first fault in so many schedules, and for how much of the time the node served.
func runCuts(schedules int, broken Broken) (fault string, served float64) {
	steps, serving := 0, 0
	for seed := range schedules {
		s := &cutSchedule{
			rng: rand.New(rand.NewPCG(uint64(seed), 9)), now: time.Minute, reached: [4]bool{true, true, true, true},
			quorum: Quorum{Want: 2, Limit: time.Second, Broken: broken},
		}
		for range 1500 {
			s.step()
			if s.fault != "" {
				return fmt.Sprintf("seed %d: %s", seed, s.fault), 0
			}
			if steps++; s.now <= s.until && !s.fence.raised {
				serving++
			}
		}
	}
	return "", float64(serving) / float64(steps)
}

// TestQuorumInCuts: a node that the others have given up serves nothing, however the network is cut,
// and one that the others reach serves.
func TestQuorumInCuts(t *testing.T) {
	fault, served := runCuts(60, Broken{})
	if fault != "" {
		t.Error(fault)
	}
	if served < 0.5 {
		t.Errorf("the node serves for %.2f of the time", served)
	}
	t.Logf("it serves for %.2f of the time", served)
	for name, broken := range map[string]Broken{
		"count words however old":          {CountOldWords: true},
		"serve on after the quorum lapsed": {ForgetLapse: true},
	} {
		if fault, _ := runCuts(60, broken); fault == "" {
			t.Errorf("%s: not caught", name)
		} else {
			t.Logf("%s: %s", name, fault)
		}
	}
}
