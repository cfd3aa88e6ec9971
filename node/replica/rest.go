package replica

import "time"

// Rest keeps snapshots from taking what clients need of this node and of the receiver. While loops
// are strained, work on snapshots may take a small share of the time only, and the sender rests for
// the others; while they are not, it need not rest.
type Rest struct {
	share  float64 // of the time, leastShare to 1
	looked time.Duration
	until  time.Duration // rests so long

	begun, deadline time.Duration // see Hurry; 0: no hurry
}

const (
	// leastShare is what snapshots have of one processor however busy loops are, so that every move
	// ends. Of 1 kB values it moves 7 MB a second.
	leastShare = 0.02
	// restLook is how often strain is looked at.
	restLook = 10 * time.Millisecond
	// longestWork is the most of a piece of work that is rested for. What took longer was
	// interrupted.
	longestWork = 2 * time.Millisecond
	// longestRest bounds what is saved up.
	longestRest = time.Second
)

// NewRest returns a Rest that has seen no strain.
func NewRest() Rest { return Rest{share: 1} }

// Look notes whether loops are strained. It has no effect within 10 ms of the last one.
func (r *Rest) Look(now time.Duration, strained func() bool) {
	if now-r.looked < restLook {
		return
	}
	r.looked = now
	if strained() {
		r.share /= 2
	} else {
		r.share = r.share*1.25 + 0.01
	}
	r.share = min(1, max(r.share, r.least(now)))
}

// least is the least share. For a node that leaves it grows until the deadline, by which everything
// is lost that has not moved.
func (r *Rest) least(now time.Duration) float64 {
	if r.deadline <= r.begun {
		return leastShare
	}
	return max(leastShare, float64(now-r.begun)/float64(r.deadline-r.begun))
}

// Hurry has the least share grow to all of the time until the deadline.
func (r *Rest) Hurry(now, deadline time.Duration) { r.begun, r.deadline = now, deadline }

// Rests reports whether work is rested for at present.
func (r *Rest) Rests() bool { return r.share < 1 }

// Wait returns how long the caller must wait before it goes on with a snapshot.
func (r *Rest) Wait(now time.Duration) time.Duration {
	if r.share == 1 {
		return 0
	}
	return max(0, r.until-now)
}

// Work notes that work on snapshots took d until now, by one of so many senders of this node.
func (r *Rest) Work(now, d time.Duration, senders int) {
	if r.share == 1 {
		return
	}
	rest := min(d, longestWork).Seconds() * (float64(max(1, senders))/r.share - 1)
	r.until = min(max(r.until, now)+time.Duration(rest*float64(time.Second)), now+longestRest)
}
