package test

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// history is what the tests know of one key. One session alone writes it, with
// values that count up and name the key; anybody may read it. A read is judged by
// what was known when it was sent:
//
//	writes  1 acked   2 acked   3 unknown   4 in flight
//	floor       ────────┘ 2                 issued = 4, settled = 3
//	a read may show   2, 3 or 4; or nothing, if the data may have been lost after
//	                  write 2 was sent. Then 1 and 2 never show again (gone = 2).
//
// A write may also be a deletion, which shows as nothing.
//
// After the death of an owner its follower may lack the last writes: a read may then
// show an older write, 1 here, and whether that is right is judged by when the lost
// ones were acknowledged. Write 2 is undone then, and never shows again.
type history struct {
	key       string
	partition uint16

	mu      sync.Mutex
	sent    []time.Time // of the latest writes; the first write is number 1
	acks    []time.Time // of the same writes, zero for those not known to be executed
	dropped uint64      // writes before those
	settled uint64      // writes up to this one have been answered
	acked   uint64      // the last one answered with OK; the writer's own, changed by it only
	floor   uint64      // the newest write known to have been executed last
	gone    uint64      // writes up to this one were executed and lost
	undone  span        // these too, of the latest time that an older write showed
	refused map[uint64]bool
	deletes map[uint64]bool // which writes are deletions
}

func newHistory(key string) *history {
	return &history{key: key, partition: ring.PartitionOf([]byte(key)), refused: map[uint64]bool{}, deletes: map[uint64]bool{}}
}

// span is the writes after one and up to another.
type span struct{ after, upTo uint64 }

func (s span) has(seq uint64) bool { return seq > s.after && seq <= s.upTo }

// sight is what was known of a key when a read of it was sent.
type sight struct {
	floor, gone, settled, issued uint64
	undone                       span
}

// absence is a read that did not find what had been written, but nothing or an older
// write: right only if the partition's data began anew between the two times, or
// its owner died right after the lost writes (chaos_losses_test.go).
type absence struct {
	key       string
	partition uint16
	from, to  time.Time // when the latest lost write was sent, and when it was missed
	floor     uint64    // the latest lost write
	shown     uint64    // the write that was found, 0: nothing was
	lost      int       // how many acknowledged writes
	acked     time.Time // when the first of them was
}

func (a absence) String() string {
	if a.shown == 0 {
		return a.key + " is missing"
	}
	return fmt.Sprintf("%s shows write %d, older than write %d, which was acknowledged or seen before", a.key, a.shown, a.floor)
}

// keptWrites of a key are remembered, so that a run of hours fits into memory: it takes a
// session most of a minute to send so many, and no reply is on its way for that long.
const keptWrites = 8192

// write numbers the next write.
func (h *history) write(now time.Time) (seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.issueLocked(now)
}

func (h *history) issueLocked(now time.Time) (seq uint64) {
	if len(h.sent) == 2*keptWrites {
		h.sent = append(h.sent[:0], h.sent[keptWrites:]...)
		h.acks = append(h.acks[:0], h.acks[keptWrites:]...)
		h.dropped += keptWrites
		old := func(seq uint64, _ bool) bool { return seq <= h.dropped && seq < h.floor }
		maps.DeleteFunc(h.refused, old)
		maps.DeleteFunc(h.deletes, old)
	}
	h.sent = append(h.sent, now)
	h.acks = append(h.acks, time.Time{})
	return h.issuedLocked()
}

// issuedLocked is the number of the last write.
func (h *history) issuedLocked() uint64 { return h.dropped + uint64(len(h.sent)) }

// sentLocked is when a write was sent, or the first one that is remembered.
func (h *history) sentLocked(seq uint64) time.Time {
	return h.sent[max(seq, h.dropped+1)-h.dropped-1]
}

// remove numbers the next write, which is a deletion.
func (h *history) remove(now time.Time) (seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq = h.issueLocked(now)
	h.deletes[seq] = true
	return seq
}

// presence tells the writer, who has read all replies before, whether the key may be there
// after its writes up to one, and whether it must be unless it was lost.
func (h *history) presence(upTo uint64) (may, must bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	must = h.acked > h.gone
	for seq := max(h.acked, 1); seq <= upTo; seq++ {
		switch {
		case h.refused[seq]:
		case h.deletes[seq]:
			must = false
		default:
			may = true
		}
	}
	return may, must
}

// lost is the absence of the writer's last acknowledged write.
func (h *history) lost(now time.Time) absence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return absence{key: h.key, partition: h.partition, from: h.sentLocked(h.acked), to: now, floor: h.acked}
}

// newest tells whether what the writer's own read shows, nil for nothing, is its last
// write before that. Where a pipe broke it may be a later one, if the read was sent again.
func (h *history) newest(s sight, value []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.issued == 0 || h.acked != s.issued {
		return true // not known, or the last write has failed
	}
	if value == nil {
		return h.deletes[s.issued]
	}
	seq, err := parseValue(h.key, value)
	return err == nil && seq == s.issued
}

// outcome is what the reply to a command says of its execution.
type outcome uint8

const (
	executed outcome = iota
	notExecuted
	unknown
)

// answered settles a write. Replies come in the order of the writes.
func (h *history) answered(seq uint64, o outcome) { h.answeredAt(seq, o, time.Now()) }

func (h *history) answeredAt(seq uint64, o outcome, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = seq
	switch o {
	case executed:
		h.acked = seq
		if seq > h.dropped {
			h.acks[seq-h.dropped-1] = now
		}
		h.floor = max(h.floor, seq)
	case notExecuted:
		h.refused[seq] = true
	}
}

func (h *history) look() sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	return sight{h.floor, h.gone, h.settled, h.issuedLocked(), h.undone}
}

// lookOwn is look for the reply of the writer's own read: the replies before it
// have come, and it was executed after all of those.
func (h *history) lookOwn(s sight) sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.floor = max(s.floor, h.acked)
	return s
}

// read judges what a read showed, nil for nothing. An absence is to be judged when
// tables and deaths are known.
func (h *history) read(s sight, value []byte, now time.Time) (*absence, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value == nil {
		if h.mayBeDeletedLocked(s) {
			return nil, nil
		}
		return h.missingLocked(s, now), nil
	}
	seq, err := parseValue(h.key, value)
	switch {
	case err != nil:
		return nil, err
	case seq > h.issuedLocked():
		return nil, fmt.Errorf("%s shows write %d, which was never sent", h.key, seq)
	case h.deletes[seq]:
		return nil, fmt.Errorf("%s shows write %d, which is a deletion", h.key, seq)
	case h.refused[seq]:
		return nil, fmt.Errorf("%s shows write %d, of which was said that it was not executed", h.key, seq)
	case seq <= s.gone, s.undone.has(seq):
		return nil, fmt.Errorf("%s shows write %d again, after it was missing", h.key, seq)
	case seq < s.floor:
		return h.olderLocked(s, seq, now), nil
	}
	// An older write without an answer may be sent once more, after this one was
	// seen and before it is sent once more itself.
	if seq <= h.settled+1 {
		h.floor = max(h.floor, seq)
	}
	return nil, nil
}

// believe judges what a read showed while the cluster is divided: any write, or nothing.
func (h *history) believe(value []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value == nil {
		return nil
	}
	seq, err := parseValue(h.key, value)
	if err == nil && (seq > h.issuedLocked() || h.deletes[seq] || h.refused[seq]) {
		err = fmt.Errorf("%s shows write %d, which was never sent, or not executed, or a deletion", h.key, seq)
	}
	return err
}

func (h *history) mayBeDeletedLocked(s sight) bool {
	for seq := max(s.floor, 1); seq <= h.issuedLocked(); seq++ {
		if h.deletes[seq] && !h.refused[seq] {
			return true
		}
	}
	return false
}

func (h *history) missingLocked(s sight, now time.Time) *absence {
	if s.floor <= s.gone {
		return nil
	}
	base := s.gone // the state that shows as nothing
	for seq := range h.deletes {
		if seq < s.floor && !h.refused[seq] {
			base = max(base, seq)
		}
	}
	lost := h.lossLocked(span{base, s.floor}, now)
	// A write that is in flight still may be sent again after the loss.
	h.gone = max(h.gone, min(s.floor, s.settled))
	return lost
}

// olderLocked notes that write seq shows though a later one was known.
func (h *history) olderLocked(s sight, seq uint64, now time.Time) *absence {
	lost := h.lossLocked(span{seq, s.floor}, now)
	lost.shown = seq
	if h.floor == s.floor { // else others know more than this read did
		h.floor, h.undone = seq, span{seq, min(s.floor, s.settled)}
	}
	return lost
}

func (h *history) lossLocked(writes span, now time.Time) *absence {
	a := &absence{key: h.key, partition: h.partition, from: h.sentLocked(writes.upTo), to: now, floor: writes.upTo}
	for seq := max(writes.after, h.dropped) + 1; seq <= writes.upTo; seq++ {
		if ack := h.acks[seq-h.dropped-1]; !ack.IsZero() {
			a.lost++
			if a.acked.IsZero() {
				a.acked = ack
			}
		}
	}
	return a
}

// forget begins anew after a time in which the cluster was divided: any write may show.
// No command on the key is under way.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked, h.floor, h.gone, h.undone = 0, 0, 0, span{}
}

// Values say which key and write they belong to. Their length differs from write to
// write, so that bytes of another reply never look right.

// largeEvery is how often a value is too large for the pipes that all share.
const largeEvery = 97

func fillerLen(seq uint64) int {
	if seq%largeEvery == 0 {
		return 80 << 10
	}
	return int(seq*31%700) + 1
}

func appendValue(dst []byte, key string, seq uint64) []byte {
	dst = append(dst, key...)
	dst = append(dst, '=')
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, '=')
	return append(dst, bytes.Repeat([]byte{'a' + byte(seq%26)}, fillerLen(seq))...)
}

func parseValue(key string, value []byte) (seq uint64, err error) {
	fields := bytes.SplitN(value, []byte("="), 3)
	if len(fields) != 3 || string(fields[0]) != key {
		return 0, fmt.Errorf("%s shows %.60q, which is no value of it", key, value)
	}
	seq, err = strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil || seq == 0 || !bytes.Equal(value, appendValue(nil, key, seq)) {
		return 0, fmt.Errorf("%s shows %.60q (%d bytes), which was damaged", key, value, len(value))
	}
	return seq, nil
}
