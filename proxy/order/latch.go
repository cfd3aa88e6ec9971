package order

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// latch mirrors what the node refuses on a pipe: after it refused a command it refuses the later
// ones for the same partitions too, until DUNLIN RETRY. RETRY is said only when everything that was
// outstanding at the last refusal has come back, of all sessions. Until then nothing new is sent
// for those partitions:
//
//	wrong  B1 RETRY A1' B2    B1 is refused, B2 is not: B's commands change places
//	right  B1 ... RETRY A1' B1' B2
//
// Between the last refusal and RETRY, requests for other partitions are still sent. The node may
// refuse them as well, and RETRY makes the node forget that before this proxy knows. So behind
// RETRY a session sends nothing for a partition to which it may have sent something ahead of RETRY,
// until everything ahead of RETRY is answered:
//
//	wrong  C1 RETRY C2        C1 is refused, C2 is not
//	right  C1 RETRY ... C1' C2
//
// RETRY repeats the epoch that the node named. Requests that this proxy gave up earlier may still
// be on their way to the node over an older connection. They cannot name that epoch, so they are
// not executed late.
type latch struct {
	on         bool
	partitions ring.PartitionSet
	epoch      uint64        // the newest that the node named
	until      uint64        // stream offset: what was sent by then must be answered before RETRY
	rounds     int           // RETRYs in a row since the epoch that were followed by another refusal, and nothing else
	progress   bool          // a request that was sent again behind RETRY was answered
	spoken     time.Duration // when RETRY was said last

	ahead      ring.PartitionSet // of the requests that were on their way when RETRY was said last
	aheadUntil uint64            // stream offset: they are answered
}

const (
	maxRetryPause = 100 * time.Millisecond
	calm          = time.Second // without a refusal for that long, pauses begin small again
)

// add is the event that a request, whose bytes are raw, was refused while the pipe's stream ended
// at tail. It reports whether it has nothing to do with the last one: it is the first in the epoch,
// or a request was executed in between. So each of the pushes that a client pipelines, and that
// serve more waiters than one lock has time for, does not wait for the longest pause.
func (l *latch) add(r *Request, raw []byte, tail, epoch uint64) (anew bool) {
	if anew = epoch > l.epoch || l.progress; anew {
		l.rounds, l.progress = 0, false
	}
	l.on, l.until, l.epoch = true, tail, max(l.epoch, epoch)
	switch part := r.Part.(type) {
	case Asker: // it asks again by itself
	case Scattered:
		for _, p := range part.Partitions(raw, HugeRequest) {
			l.partitions.Add(p)
		}
	default:
		if !r.Keyless {
			l.partitions.Add(r.Partition)
		}
	}
	return anew
}

// refuses reports whether the node would refuse a request for the partition.
func (l *latch) refuses(partition uint16) bool {
	return l.on && l.partitions.Has(partition)
}

// overtakes reports whether a request for the partition, of a session with others outstanding,
// could be executed before one that the node has refused ahead of RETRY.
func (p *Pipe) overtakes(partition uint16) bool {
	return p.acked < p.latch.aheadUntil && p.latch.ahead.Has(partition)
}

// aheadBytes bounds how much of outstanding requests is parsed for their partitions at a RETRY, and how long the keys
// of one request are whose partitions are looked for because of deferred ones.
const aheadBytes = 64 << 10

// noteAhead remembers the partitions of the requests that are outstanding when RETRY is sent. If
// finding them takes long it remembers all: then more requests wait for that moment.
func (p *Pipe) noteAhead() {
	l := &p.latch
	l.ahead, l.aheadUntil = ring.PartitionSet{}, p.tail()
	begin, parsed := p.acked, 0
	for i := range p.inflight.len() {
		r := p.inflight.at(i)
		raw := r.bare(p.buf[begin-p.base:r.end-p.base], p.body == nil)
		begin = r.end
		switch part := r.Part.(type) {
		case Asker: // see add
		case Scattered:
			if parsed += len(raw); parsed > aheadBytes {
				l.ahead = ring.AllPartitions()
				return
			}
			for _, number := range part.Partitions(raw, HugeRequest) {
				l.ahead.Add(number)
			}
		default:
			if r.Session != nil && !r.Keyless {
				l.ahead.Add(r.Partition)
			}
		}
	}
}

// unlatch sends DUNLIN RETRY if the pipe is latched. It reports whether the pipe may be used: false
// means that it is too early for RETRY.
func (m *Machine) unlatch(p *Pipe, now time.Duration) bool {
	l := &p.latch
	if !l.on {
		return true
	}
	pause := min(retryFirst<<min(l.rounds, 8), maxRetryPause)
	if p.acked < l.until && !m.broken.retriesEarly() || now-l.spoken < pause {
		return false
	}
	if l.rounds++; now-l.spoken > calm {
		l.rounds = 0
	}
	l.on, l.partitions, l.spoken = false, ring.PartitionSet{}, now
	if !m.broken.retriesEarly() {
		p.noteAhead()
	}
	m.Tell(p, member.AppendRetry(nil, l.epoch))
	return true
}
