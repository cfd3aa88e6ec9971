package replica

import (
	"testing"
	"time"
)

// restSchedule works on a snapshot whenever its Rest lets it, a piece of 0.5 ms at a time, and says
// what share of a second it worked.
type restSchedule struct {
	Rest
	now      time.Duration
	strained bool
}

func (s *restSchedule) second(senders int) (share float64) {
	const piece = 500 * time.Microsecond
	var worked time.Duration
	for end := s.now + time.Second; s.now < end; {
		s.Look(s.now, func() bool { return s.strained })
		if wait := s.Wait(s.now); wait > 0 {
			s.now += wait
			continue
		}
		s.now += piece
		worked += piece
		s.Work(s.now, piece, senders)
	}
	return worked.Seconds()
}

// TestRest checks that a snapshot takes all of the time while nothing is strained, and its least
// share while something is, all senders together.
func TestRest(t *testing.T) {
	s := restSchedule{Rest: NewRest(), now: time.Hour}
	want := func(what string, senders int, least, most float64) {
		t.Helper()
		if share := s.second(senders); share < least || share > most {
			t.Errorf("%s: a snapshot took %.3f of the time, want %g to %g", what, share, least, most)
		}
	}
	want("idle", 1, 1, 1)
	s.strained = true
	s.second(1) // it slows down
	want("strained", 1, 0.018, 0.022)
	want("strained, one of five senders", 5, 0.0035, 0.0055)
	s.strained = false
	s.second(1)
	want("idle again", 1, 0.99, 1)
}

// TestRestOfLongWork checks that an interruption, and a value of many megabytes, do not stop a move
// for long.
func TestRestOfLongWork(t *testing.T) {
	r, now := NewRest(), time.Hour
	for range 20 {
		now += restLook
		r.Look(now, func() bool { return true })
	}
	r.Work(now, time.Minute, 1)
	if wait := r.Wait(now); wait > 100*time.Millisecond {
		t.Errorf("after an interruption the wait is %v", wait)
	}
	for range 1000 {
		r.Work(now, time.Millisecond, 100)
	}
	if wait := r.Wait(now); wait > longestRest {
		t.Errorf("the wait is %v, want %v at most", wait, longestRest)
	}
}

// TestRestInAHurry checks that a node that leaves works more and more until its deadline, and in all
// at least half of the time.
func TestRestInAHurry(t *testing.T) {
	s := restSchedule{Rest: NewRest(), now: time.Hour, strained: true}
	s.second(1)
	s.Hurry(s.now, s.now+10*time.Second)
	var worked, before float64
	for range 10 {
		share := s.second(1)
		if share < before-0.02 {
			t.Errorf("it worked %.3f of a second after %.3f of the one before", share, before)
		}
		worked, before = worked+share, share
	}
	if worked < 4.5 || worked > 5.5 {
		t.Errorf("it worked %.2f s of 10, want 5", worked)
	}
}
