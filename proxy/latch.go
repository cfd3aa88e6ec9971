package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// latch mirrors what the node refuses on a pipe: after it refused a command it refuses the later ones for the same
// partitions too, until DUNLIN RETRY. RETRY is said only when everything that was on its way at the last refusal has come
// back, whoever's it is, and until then nothing new is sent for those partitions:
//
//	wrong  B1 RETRY A1' B2    B1 is refused, B2 is not: B's commands change places
//	right  B1 ... RETRY A1' B1' B2
//
// RETRY repeats the epoch that the node named. What this proxy gave up before, and what may still be on its way to the node
// over an older connection, cannot name it, and is not executed late.
type latch struct {
	on         bool
	partitions ring.PartitionSet
	epoch      uint64        // the newest that the node named
	until      uint64        // stream offset: what was sent by then must be answered before RETRY
	rounds     int           // RETRYs in a row since the epoch, that were refused again
	spoken     time.Duration // when RETRY was said last
}

const (
	maxRetryPause = 100 * time.Millisecond
	calm          = time.Second // without a refusal for that long, pauses begin small again
)

// add notes that a request was refused while the pipe's stream ended at tail, and tells whether it was the first in an epoch. raw
// is the request's bytes.
func (l *latch) add(r *request, raw []byte, tail, epoch uint64) (anew bool) {
	if anew = epoch > l.epoch; anew { // what this table takes away has nothing to do with what the last one did
		l.rounds = 0
	}
	l.on, l.until, l.epoch = true, tail, max(l.epoch, epoch)
	switch r.part.(type) {
	case *census:
		return anew
	case *fan: // of several partitions
	default:
		l.partitions.Add(r.partition)
		return anew
	}
	var p resp.Parser
	if p.Parse(raw) != resp.Done {
		panic("BUG: a request made by the proxy does not parse")
	}
	if cmd := command.Row(p.Args()); cmd != nil {
		keys, _ := cmd.AppendKeys(nil, p.Args())
		for _, k := range keys {
			l.partitions.Add(ring.PartitionOf(p.Args()[k]))
		}
	}
	return anew
}

// refuses reports whether the node would refuse a request for the partition.
func (l *latch) refuses(partition uint16) bool {
	return l.on && l.partitions.Has(partition)
}

// unlatch says DUNLIN RETRY if that is needed. False: not yet.
func (p *pipe) unlatch() bool {
	l := &p.latch
	if !l.on {
		return true
	}
	now := p.w.loop.Now()
	pause := min(retryFirst<<min(l.rounds, 8), maxRetryPause)
	if p.acked < l.until || now-l.spoken < pause {
		return false
	}
	if l.rounds++; now-l.spoken > calm {
		l.rounds = 0
	}
	l.on, l.partitions, l.spoken = false, ring.PartitionSet{}, now
	p.send(request{}, member.AppendRetry(nil, l.epoch), nil)
	return true
}
