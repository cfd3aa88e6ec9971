package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// rig drives a Sender with one shard, and notes its actions in words.
type rig struct {
	*Sender
	t   *testing.T
	now time.Duration
}

func newRig(t *testing.T) *rig { return &rig{Sender: NewSender(1, 1, nil), t: t, now: time.Hour} }

// said returns the actions since the last call but SendRouse.
func (r *rig) said() string {
	var words []string
	for _, a := range r.Actions() {
		switch a.Do {
		case SendFeed:
			words = append(words, fmt.Sprintf("feed %d %s", a.Partition, markWord(a.Mark)))
		case SendUnfeed:
			words = append(words, fmt.Sprintf("unfeed %d %s", a.Partition, markWord(a.Mark)))
		case SendMark:
			words = append(words, fmt.Sprintf("mark %d %s", a.Partition, markWord(a.Mark)))
		case SendReopen:
			words = append(words, "reopen")
		case SendRelieved:
			words = append(words, "relieved")
		case SendPassed:
			words = append(words, fmt.Sprintf("passed %d %v", a.Barrier, a.Err))
		case SendRouse, SendOwed:
		}
	}
	return strings.Join(words, ", ")
}

func markWord(m Mark) string {
	switch m.Kind {
	case MarkBegin:
		return fmt.Sprint("begin ", m.Arg)
	case MarkSynced:
		return "synced"
	case MarkContinue:
		return fmt.Sprint("continue ", m.Arg)
	case MarkHanded:
		return fmt.Sprint("handed ", m.Arg)
	}
	return "-"
}

func (r *rig) want(want string) {
	r.t.Helper()
	if got := r.said(); got != want {
		r.t.Fatalf("the actions are %q, want %q", got, want)
	}
}

// round empties the log into a batch and returns the batch's number.
func (r *rig) round() uint64 {
	r.Emptied(0, r.Collect())
	seq := r.Batch()
	r.Collected(false, nil)
	return seq
}

// fill logs the whole snapshot whose turn it is.
func (r *rig) fill(want uint16) {
	r.t.Helper()
	next, wait, ok := r.Next(r.now)
	if !ok || next.Partition != want {
		r.t.Fatalf("the next snapshot is of %d, %t, in %v, want %d now", next.Partition, ok, wait, want)
	}
	r.Filled(1, true)
}

// whole has p's snapshot sent and acknowledged.
func (r *rig) whole(partitions ...uint16) {
	r.t.Helper()
	for _, p := range partitions {
		r.Sync(p, 1)
		r.fill(p)
	}
	r.Acknowledged(r.round(), nil, r.now)
	r.Actions()
}

func TestSenderFeedsInOrder(t *testing.T) {
	r := newRig(t)
	r.Sync(7, 3)
	r.Sync(5, 4)
	r.Sync(7, 3) // it waits already
	r.want("")
	r.fill(7)
	r.want("feed 7 begin 3, mark 7 synced")
	r.fill(5)
	r.want("feed 5 begin 4, mark 5 synced")
	if _, wait, ok := r.Next(r.now); ok || wait != Heartbeat {
		t.Errorf("there is a snapshot to take, or none for %v", wait)
	}
	r.Sync(7, 3) // whole: a snapshot anew, and the receiver is told at once
	r.want("feed 7 begin 3, unfeed 7 -")
	r.Stop(7)
	r.want("unfeed 7 -")
	if _, _, ok := r.Next(r.now); ok {
		t.Error("a snapshot is taken of what is not fed")
	}
	r.Resume(7, 3, 99)
	r.want("feed 7 continue 99")
	if r.Resyncs() != 1 || r.Unfinished() != 0 {
		t.Errorf("%d were sent again, %d are unfinished", r.Resyncs(), r.Unfinished())
	}
}

// A partition that was refused has its turn again a moment later, before those that were behind it.
// What is to be handed over comes before all.
func TestSenderQueue(t *testing.T) {
	r := newRig(t)
	for _, p := range []uint16{13, 11, 12, 10, 14} {
		r.Sync(p, 1)
	}
	r.fill(13)
	r.fill(11)
	r.Refused(1, []uint16{13, 11, 14}, r.now) // nothing of 14 was sent yet
	r.fill(12)
	r.now += deniedPeriod
	r.fill(13)
	r.Hand(14, 77, true)
	if next, _, _ := r.Next(r.now); !next.Urgent {
		t.Error("what is to be handed over is not urgent")
	}
	r.fill(14)
	r.fill(11)
	r.fill(10)
	r.Refused(1, []uint16{10}, r.now)
	if next, wait, ok := r.Next(r.now); ok || wait <= 0 || wait > deniedPeriod {
		t.Errorf("the next is %v, %t, in %v, though it was just refused", next, ok, wait)
	}
}

// What is refused over and over loses its place in the end, so that it does not hold up others.
func TestSenderLosesItsPlace(t *testing.T) {
	r := newRig(t)
	r.Sync(1, 1)
	r.Sync(2, 1)
	for range maxPlaceTries {
		r.fill(1)
		r.Refused(r.round(), []uint16{1}, r.now)
		r.now += deniedPeriod
	}
	r.fill(1)
	r.Refused(r.round(), []uint16{1}, r.now)
	r.now += deniedPeriod
	r.fill(2)
}

// A hand-over ends when its word is acknowledged, and the answer that does so refuses nothing.
func TestSenderHandsOver(t *testing.T) {
	r := newRig(t)
	r.whole(7)
	r.Hand(7, 77, true)
	r.want("unfeed 7 handed 77")
	seq := r.round()
	r.Acknowledged(seq-1, nil, r.now)
	if r.Owed() != 1 {
		t.Fatal("it is handed over before its word is acknowledged")
	}
	r.Refused(seq, []uint16{7}, r.now)
	r.Acknowledged(seq, nil, r.now)
	if r.Owed() != 1 {
		t.Fatal("it is handed over though it is refused")
	}
	r.now += deniedPeriod
	r.said()
	r.fill(7)
	r.want("feed 7 begin 1, mark 7 synced, unfeed 7 handed 77")
	r.Acknowledged(r.round(), nil, r.now)
	r.want("relieved")
}

// Who is not the heir learns of the seal if its copy is whole, and nothing waits for it.
func TestSenderSealsCopies(t *testing.T) {
	r := newRig(t)
	r.whole(7)
	r.Sync(8, 1)
	r.Actions()
	r.Hand(7, 77, false)
	r.Hand(8, 78, false)
	r.Hand(9, 79, false)
	r.want("unfeed 7 handed 77, unfeed 8 -")
	if r.Owed() != 0 {
		t.Errorf("%d are to be handed over", r.Owed())
	}
}

// An heir that refuses what it is to own is tried so often, however often it refused that before.
func TestSenderGivesUpHandingOver(t *testing.T) {
	r := newRig(t)
	r.whole(7)
	for range maxHandTries {
		r.Refused(r.round(), []uint16{7}, r.now)
		r.now += deniedPeriod
		r.fill(7)
	}
	r.Hand(7, 77, true)
	for i := range maxHandTries + 1 {
		if r.Owed() != 1 {
			t.Fatalf("it is given up after %d refusals", i)
		}
		r.Refused(r.round(), []uint16{7}, r.now)
		r.now += deniedPeriod
		if i < maxHandTries {
			r.fill(7)
		}
	}
	if r.Owed() != 0 {
		t.Error("it is never given up")
	}
}

// A log that overflows while it is collected is found empty, and has lost what was in it.
func TestSenderOverflowInARound(t *testing.T) {
	r := newRig(t)
	r.whole(6, 7)
	r.Hand(7, 77, true)
	flush := r.Raise()
	r.Actions()
	r.Emptied(0, r.Collect())
	r.Collected(true, []uint16{6})
	r.want(fmt.Sprintf("unfeed 7 -, passed %d %v, feed 6 begin 1, unfeed 6 -", flush, ErrVoid))
	r.Acknowledged(r.Batch(), nil, r.now)
	if r.Owed() != 1 {
		t.Error("what was lost counts as handed over")
	}
	r.fill(7)
	r.fill(6)
}

// A feed that was stopped alone begins again, and nothing else does.
func TestSenderOfAStoppedFeed(t *testing.T) {
	r := newRig(t)
	r.whole(6, 7)
	r.Hand(7, 77, true)
	r.Actions()
	r.Batch() // with the mark
	r.Emptied(0, r.Collect())
	r.Collected(false, []uint16{6})
	r.want("feed 6 begin 1, unfeed 6 -")
	if r.Acknowledged(r.round(), nil, r.now); r.Owed() != 0 {
		t.Error("what was handed over is handed over again")
	}
	r.fill(6)
}

// A barrier waits for collections that began after it was raised, in every shard.
func TestSenderBarrier(t *testing.T) {
	s := NewSender(1, 2, nil)
	before := s.Collect()
	id := s.Raise()
	lowered := s.Raise()
	s.Lower(lowered)
	s.Emptied(0, before)
	s.Emptied(1, s.Collect())
	s.Collected(false, nil)
	s.Acknowledged(s.Batch(), nil, 0)
	passed := func() bool {
		return slices.ContainsFunc(s.Actions(), func(a SendAction) bool { return a.Do == SendPassed && a.Barrier == id && a.Err == nil })
	}
	if passed() {
		t.Fatal("it has passed with a collection from before")
	}
	s.Emptied(0, s.Collect())
	seq := s.Batch()
	s.Collected(false, nil)
	if passed() {
		t.Fatal("it has passed before the batch is acknowledged")
	}
	s.Acknowledged(seq, nil, 0)
	if !passed() {
		t.Error("it has not passed")
	}
	if len(s.barriers) != 0 {
		t.Errorf("%d barriers are left", len(s.barriers))
	}
}

// On a new connection nothing is handed over before the first answer there: the receiver may have
// refused it in an answer that was lost.
func TestSenderReopens(t *testing.T) {
	r := newRig(t)
	r.whole(7)
	r.Hand(7, 77, true)
	seq := r.round()
	if r.Opened(seq + 1) {
		t.Error("the stream goes on behind what was sent")
	}
	if !r.Opened(seq) {
		t.Fatal("the stream does not go on")
	}
	r.Collected(false, nil)
	if r.Owed() != 1 {
		t.Fatal("it is handed over before its refusal can be heard")
	}
	r.Acknowledged(r.Batch(), []uint16{7}, r.now)
	if r.Owed() != 1 {
		t.Error("it is handed over though it was refused")
	}
	if r.Opened(0) {
		t.Error("the stream goes on before what was acknowledged")
	}
}

// A new generation sends everything again, in order, and hands over what is to be handed over
// first.
func TestSenderVoid(t *testing.T) {
	r := newRig(t)
	r.whole(3, 7)
	r.Resume(5, 1, 9)
	r.Resume(4, 1, 9)
	r.Hand(7, 77, true)
	flush := r.Raise()
	r.Actions()
	r.Void(2)
	r.want(fmt.Sprintf("unfeed 7 -, passed %d %v, reopen", flush, ErrVoid))
	if r.Generation() != 2 || r.Made() != 0 || r.Owed() != 1 {
		t.Errorf("generation %d, batch %d, %d to be handed over", r.Generation(), r.Made(), r.Owed())
	}
	for _, p := range []uint16{7, 3, 4, 5} {
		r.fill(p)
	}
}

// What was handed over and has come back meanwhile is not handed over.
func TestSenderForgetsHandOver(t *testing.T) {
	r := newRig(t)
	for _, feed := range []func(){func() { r.Resume(7, 1, 5) }, func() { r.Sync(7, 1) }} {
		r.Resume(7, 1, 5)
		r.Hand(7, 77, true)
		feed()
		if r.Owed() != 0 {
			t.Error("it is still to be handed over")
		}
		r.Stop(7)
		r.Collected(true, nil)
		if r.Acknowledged(r.round(), nil, r.now); len(r.fed) > 0 || len(r.barriers) > 0 || r.Owed() != 0 {
			t.Errorf("%d partitions are fed, %d to be handed over, want none", len(r.fed), r.Owed())
		}
	}
}

// A receiver is told that it is fed no longer, until that has arrived: the mark is logged again if it
// was lost with its log, and so is the end of a feed that was handed over.
func TestSenderRevokesWhatItStops(t *testing.T) {
	r := newRig(t)
	r.whole(7, 8)
	r.Sync(9, 1)
	r.said()
	r.Stop(9) // which the receiver has nothing of
	r.want("unfeed 9 -")
	r.Stop(7)
	r.want("feed 7 begin 1, unfeed 7 -")
	r.Hand(8, 88, false)
	r.want("unfeed 8 handed 88")
	for range 2 {
		r.Collected(true, nil)
		r.want("feed 7 begin 1, unfeed 7 -, feed 8 begin 1, unfeed 8 -")
	}
	r.Resume(8, 1, 88) // a new feed, whose beginning is not lost
	r.said()
	r.Collected(true, nil)
	r.want("feed 7 begin 1, unfeed 7 -")
	r.Acknowledged(r.round(), nil, r.now)
	r.said()
	r.Collected(true, nil)
	r.want("")
}

func TestSenderClosed(t *testing.T) {
	r := newRig(t)
	r.whole(7)
	r.Hand(7, 77, true)
	flush := r.Raise()
	r.Actions()
	r.Close()
	r.Sync(8, 1)
	r.Stop(7)
	r.Resume(9, 1, 1)
	r.Closed()
	r.want(fmt.Sprintf("passed %d %v", flush, ErrClosed))
}
