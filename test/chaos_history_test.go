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
type history struct {
	key       string
	partition uint16

	mu      sync.Mutex
	sent    []time.Time // of the latest writes; the first write is number 1
	dropped uint64      // writes before those
	settled uint64      // writes up to this one have been answered
	acked   uint64      // the last one answered with OK; the writer's own, changed by it only
	floor   uint64      // the newest write known to have been executed last
	gone    uint64      // writes up to this one were executed and lost
	refused map[uint64]bool
	deletes map[uint64]bool // which writes are deletions
}

func newHistory(key string) *history {
	return &history{key: key, partition: ring.PartitionOf([]byte(key)), refused: map[uint64]bool{}, deletes: map[uint64]bool{}}
}

// sight is what was known of a key when a read of it was sent.
type sight struct{ floor, gone, settled, issued uint64 }

// absence is a read that found nothing though something had been written: right
// only if the partition's data began anew between the two times.
type absence struct {
	key       string
	partition uint16
	from, to  time.Time
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
		h.dropped += keptWrites
		old := func(seq uint64, _ bool) bool { return seq <= h.dropped && seq < h.floor }
		maps.DeleteFunc(h.refused, old)
		maps.DeleteFunc(h.deletes, old)
	}
	h.sent = append(h.sent, now)
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
	return absence{h.key, h.partition, h.sentLocked(h.acked), now}
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
func (h *history) answered(seq uint64, o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = seq
	switch o {
	case executed:
		h.acked = seq
		h.floor = max(h.floor, seq)
	case notExecuted:
		h.refused[seq] = true
	}
}

func (h *history) look() sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	return sight{h.floor, h.gone, h.settled, h.issuedLocked()}
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
// the tables are known.
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
	case seq < s.floor:
		return nil, fmt.Errorf("%s shows write %d, older than write %d, which was acknowledged or seen before", h.key, seq, s.floor)
	case seq <= s.gone:
		return nil, fmt.Errorf("%s shows write %d again, after it was missing", h.key, seq)
	}
	// An older write without an answer may be sent once more, after this one was
	// seen and before it is sent once more itself.
	if seq <= h.settled+1 {
		h.floor = max(h.floor, seq)
	}
	return nil, nil
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
	// A write that is in flight still may be sent again after the loss.
	h.gone = max(h.gone, min(s.floor, s.settled))
	return &absence{h.key, h.partition, h.sentLocked(s.floor), now}
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

// counter is a key that one session increments: no INCR may be executed twice.
type counter struct {
	key       string
	partition uint16
	sent      time.Time // of the last acknowledged INCR
	last      int64     // its reply
	unknown   int64     // INCRs since then that may have been executed
}

// incremented judges the reply to an INCR that was sent at the time.
func (c *counter) incremented(n int64, sent, now time.Time) (*absence, error) {
	last, unknown, since := c.last, c.unknown, c.sent
	c.last, c.unknown, c.sent = n, 0, sent
	switch {
	case n > last && n <= last+1+unknown:
		return nil, nil
	case n >= 1 && n <= 1+unknown:
		return &absence{c.key, c.partition, since, now}, nil
	}
	return nil, fmt.Errorf("INCR %s answers %d after %d and %d unknown outcomes: one was executed twice or lost", c.key, n, last, unknown)
}
