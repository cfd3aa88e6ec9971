package chaos

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// History is what the tests know of one key. One session alone writes the key, with values that
// name it and count up; any session may read it. A read is judged by what was known when it was
// sent:
//
//	writes  1 acked   2 acked   3 unknown   4 in flight
//	floor       ────────┘ 2                 issued = 4, settled = 3
//	a read may show   2, 3 or 4; or nothing, if the data may have been lost after
//	                  write 2 was sent. Then 1 and 2 never show again (gone = 2).
//
// A write may also be a deletion, which shows as nothing.
//
// After the death of an owner, its follower may lack the last writes. A read may then show an older
// write, 1 in this picture; the times at which the lost writes were acknowledged decide whether
// that is right. Write 2 is then undone, and never shows again.
type History struct {
	Key       string // for an element of a collection: key and element
	partition uint16
	form      form

	Mu      sync.Mutex
	Sent    []time.Time // of the latest writes; the first write is number 1
	Acks    []time.Time // of the same writes; zero if not known to be executed
	Dropped uint64      // how many earlier writes are no longer in Sent and Acks
	settled uint64      // writes up to this one have been answered
	acked   uint64      // the last write answered with OK; only the writer changes it
	floor   uint64      // the newest write that is known to be executed
	gone    uint64      // writes up to this one were executed and lost
	undone  span        // writes lost when an older write showed, the latest time
	refused map[uint64]bool
	deletes map[uint64]bool // which writes are deletions
	lives   map[uint64]life // of writes that expire (fading.go)
}

// NewHistory returns the history of a key that nobody has written yet.
func NewHistory(key string) *History {
	return &History{Key: key, partition: ring.PartitionOf([]byte(key)), refused: map[uint64]bool{}, deletes: map[uint64]bool{}, lives: map[uint64]life{}}
}

// span is a range of writes, without the first and with the last.
type span struct{ after, upTo uint64 }

func (s span) has(seq uint64) bool { return seq > s.after && seq <= s.upTo }

// sight is what was known of a key when a read of it was sent.
type sight struct {
	Floor, Gone, settled, issued uint64
	undone                       span
	at                           time.Time
}

// absence is a read that found nothing, or an older write than it should have. It is right only if
// the partition's data began anew between the two times, or if its owner died right after the lost
// writes (losses.go).
type absence struct {
	key       string
	partition uint16
	from, to  time.Time // when the latest lost write was sent, and when a read missed it
	floor     uint64    // the latest lost write
	shown     uint64    // the write that was found; 0: none
	lost      int       // how many acknowledged writes are lost
	acked     time.Time // when the first of these was acknowledged
	what      string    // for a list: how it shows
}

func (a absence) String() string {
	if a.what != "" {
		return a.what
	}
	if a.shown == 0 {
		return a.key + " is missing"
	}
	return fmt.Sprintf("%s shows write %d, older than write %d, which was acknowledged or seen before", a.key, a.shown, a.floor)
}

// keptWrites is how many writes of a key are remembered, so that a run of hours fits into memory. A
// session takes most of a minute to send this many, and no reply is in flight for that long.
const keptWrites = 8192

// Write returns the number of a write that is about to be sent.
func (h *History) Write(now time.Time) (seq uint64) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.issueLocked(now)
}

func (h *History) issueLocked(now time.Time) (seq uint64) {
	if len(h.Sent) == 2*keptWrites {
		h.Sent = append(h.Sent[:0], h.Sent[keptWrites:]...)
		h.Acks = append(h.Acks[:0], h.Acks[keptWrites:]...)
		h.Dropped += keptWrites
		old := func(seq uint64, _ bool) bool { return seq <= h.Dropped && seq < h.floor }
		maps.DeleteFunc(h.refused, old)
		maps.DeleteFunc(h.deletes, old)
		maps.DeleteFunc(h.lives, func(seq uint64, _ life) bool { return old(seq, true) })
	}
	h.Sent = append(h.Sent, now)
	h.Acks = append(h.Acks, time.Time{})
	return h.issuedLocked()
}

// issuedLocked returns the number of the last write.
func (h *History) issuedLocked() uint64 { return h.Dropped + uint64(len(h.Sent)) }

// sentLocked returns when a write was sent; for a forgotten one, when the first remembered was.
func (h *History) sentLocked(seq uint64) time.Time {
	return h.Sent[max(seq, h.Dropped+1)-h.Dropped-1]
}

// remove returns the number of a write that is a deletion and is about to be sent.
func (h *History) remove(now time.Time) (seq uint64) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	seq = h.issueLocked(now)
	h.deletes[seq] = true
	return seq
}

// presence is for the writer, once it has read all earlier replies. It reports whether the key may
// exist after the writes up to upTo, and whether it must exist unless it was lost.
func (h *History) presence(upTo uint64) (may, must bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	now := time.Now()
	must = h.acked > h.gone && !h.mayBeDeadLocked(h.acked, now)
	for seq := max(h.acked, 1); seq <= upTo; seq++ {
		switch {
		case h.refused[seq]:
		case h.deletes[seq]:
			must = false
		default:
			may, must = true, must && !h.mayBeDeadLocked(seq, now)
		}
	}
	return may, must
}

// lost returns the absence of the last acknowledged write.
func (h *History) lost(now time.Time) absence {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return absence{key: h.Key, partition: h.partition, from: h.sentLocked(h.acked), to: now, floor: h.acked}
}

// revived returns the absence of the last acknowledged write, a deletion: the key shows an older
// one.
func (h *History) revived(now time.Time) absence {
	a := h.lost(now)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	a.shown = 1
	if h.acked > h.Dropped {
		a.lost, a.acked = 1, h.Acks[h.acked-h.Dropped-1]
	}
	return a
}

// newest reports whether a read of the writer's own shows the last write before it. value is nil
// for a missing key. If a pipe broke and the read was sent again, it may rightly show a later
// write.
func (h *History) newest(s sight, value []byte) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if s.issued == 0 || h.acked != s.issued {
		return true // there is no write, or the last one has failed
	}
	if value == nil {
		return h.deletes[s.issued] || h.mayBeDeadLocked(s.issued, time.Now())
	}
	if h.form == present {
		return !h.deletes[s.issued]
	}
	seq, err := h.parseLocked(s, value)
	return err == nil && seq == s.issued
}

// outcome is what a reply says about the execution of its command.
type outcome uint8

const (
	Executed outcome = iota
	notExecuted
	unknown
)

// Answered notes the outcome of a write. It is called in the order of the writes.
func (h *History) Answered(seq uint64, o outcome) { h.answeredAt(seq, o, time.Now()) }

func (h *History) answeredAt(seq uint64, o outcome, now time.Time) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.settled = seq
	switch o {
	case Executed:
		h.acked = seq
		if seq > h.Dropped {
			h.Acks[seq-h.Dropped-1] = now
		}
		h.floor = max(h.floor, seq)
	case notExecuted:
		h.refused[seq] = true
	}
}

// Look returns what is known when a read is sent.
func (h *History) Look() sight {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.lookLocked()
}

func (h *History) lookLocked() sight {
	return sight{h.floor, h.gone, h.settled, h.issuedLocked(), h.undone, time.Now()}
}

// lookOwn adds to s what is known when the reply to the writer's own read arrives: the read was
// executed after all writes that were answered before.
func (h *History) lookOwn(s sight) sight {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	s.Floor = max(s.Floor, h.acked)
	return s
}

// read judges the value that a read showed, nil for none. The caller judges the absence, if any,
// once tables and deaths are known.
func (h *History) read(s sight, value []byte, now time.Time) (*absence, error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if value == nil {
		if h.mayBeDeletedLocked(s, now) {
			return nil, nil
		}
		return h.missingLocked(s, now), nil
	}
	seq, err := h.parseLocked(s, value)
	switch {
	case err != nil:
		return nil, err
	case seq > h.issuedLocked():
		return nil, fmt.Errorf("%s shows write %d, which was never sent", h.Key, seq)
	case h.deletes[seq]:
		return nil, fmt.Errorf("%s shows write %d, which is a deletion", h.Key, seq)
	case h.refused[seq]:
		return nil, fmt.Errorf("%s shows write %d, whose reply said that it was not executed", h.Key, seq)
	case seq <= s.Gone, s.undone.has(seq):
		return nil, fmt.Errorf("%s shows write %d again, after it was missing", h.Key, seq)
	case h.isDeadLocked(s, seq):
		return nil, fmt.Errorf("%s shows write %d, long after it has expired", h.Key, seq)
	case seq < s.Floor:
		return h.olderLocked(s, seq, now), nil
	}
	// A read may show a write that is in flight. If its pipe breaks, it is sent again, and an older
	// write without an answer is sent again before it: that write then shows after this one.
	if seq <= h.settled+1 && h.form != present {
		h.floor = max(h.floor, seq)
	}
	return nil, nil
}

// believe judges a read in a divided cluster: it may show any write that was sent, or nothing.
func (h *History) believe(value []byte) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if value == nil {
		return nil
	}
	seq, err := h.parseLocked(h.lookLocked(), value)
	if err == nil && (seq > h.issuedLocked() || h.deletes[seq] || h.refused[seq]) {
		err = fmt.Errorf("%s shows write %d, which was never sent, or not executed, or a deletion", h.Key, seq)
	}
	return err
}

func (h *History) mayBeDeletedLocked(s sight, now time.Time) bool {
	for seq := max(s.Floor, 1); seq <= h.issuedLocked(); seq++ {
		if (h.deletes[seq] || h.mayBeDeadLocked(seq, now)) && !h.refused[seq] {
			return true
		}
	}
	return false
}

func (h *History) missingLocked(s sight, now time.Time) *absence {
	if s.Floor <= s.Gone {
		return nil
	}
	base := s.Gone // the last state in which the key was missing
	for seq := range h.deletes {
		if seq < s.Floor && !h.refused[seq] {
			base = max(base, seq)
		}
	}
	for seq := range h.lives {
		if seq < s.Floor && !h.refused[seq] && h.mayBeDeadLocked(seq, now) {
			base = max(base, seq)
		}
	}
	lost := h.lossLocked(span{base, s.Floor}, now)
	// A write still in flight may be sent again after the loss.
	h.gone = max(h.gone, min(s.Floor, s.settled))
	return lost
}

// olderLocked notes that a read shows write seq, although a later one is known to be executed.
func (h *History) olderLocked(s sight, seq uint64, now time.Time) *absence {
	lost := h.lossLocked(span{seq, s.Floor}, now)
	lost.shown = seq
	if h.floor == s.Floor { // else another read has learned more meanwhile
		h.floor, h.undone = seq, span{seq, min(s.Floor, s.settled)}
	}
	return lost
}

func (h *History) lossLocked(writes span, now time.Time) *absence {
	a := &absence{key: h.Key, partition: h.partition, from: h.sentLocked(writes.upTo), to: now, floor: writes.upTo}
	for seq := max(writes.after, h.Dropped) + 1; seq <= writes.upTo; seq++ {
		if ack := h.Acks[seq-h.Dropped-1]; !ack.IsZero() {
			a.lost++
			if a.acked.IsZero() {
				a.acked = ack
			}
		}
	}
	return a
}

// Forget begins anew after the cluster was divided: any write may show. No command on the key may
// be in flight.
func (h *History) Forget() {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.acked, h.floor, h.gone, h.undone = 0, 0, 0, span{}
}
