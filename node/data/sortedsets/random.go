package sortedsets

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zRandMember: ZRANDMEMBER key [count [WITHSCORES]]
func zRandMember(r *exec.Request) {
	if len(r.Args) == 2 {
		randomMember(r)
		return
	}
	count, withScores, problem := parseRandom(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	randomMembers(r, count, withScores)
}

// parseRandom reads the options of ZRANDMEMBER.
func parseRandom(args [][]byte) (count int64, withScores bool, problem string) {
	count, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return 0, false, exec.ErrNotInteger
	case count == math.MinInt64:
		return 0, false, errCountRange
	case len(args) == 3:
		return count, false, ""
	case len(args) > 4 || !exec.Is(args[3], "WITHSCORES"):
		return 0, false, exec.ErrSyntax
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		return 0, false, errOutOfRange
	}
	return count, true, ""
}

// randomMember answers one member, or null.
func randomMember(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := Read(r, t, r.Args[1])
	switch {
	case !ok:
	case s.Len() == 0:
		r.ReplyNull()
	default:
		member, _ := s.at(rand.IntN(s.Len()))
		r.ReplyElement(member)
	}
}

// randomAtOnce is how many random members are found under one lock: about 0.1 ms.
const randomAtOnce = 256

// randomMembers answers different members, or as many as asked for, in runs. Between them the
// command holds the partition.
func randomMembers(r *exec.Request, count int64, withScores bool) {
	locks := r.LockElements()
	defer locks.Release()
	t, key, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, locks.Sum)
		return
	}
	s, ok := Read(r, t, key)
	if !ok {
		return
	}
	n, size := max(count, -count), int64(s.Len())
	if count > 0 {
		n = min(n, size)
	}
	if size == 0 {
		n = 0
	}
	paired := withScores && r.Version() == resp.RESP3
	now := newOrder(uint64(size))
	if kept, ok := locks.State.(*order); !ok {
		r.Out = appendHead(r.Out, r.Version(), int(n), withScores)
	} else if now = *kept; uint64(size) != now.n {
		r.Fail(exec.ErrGone)
		return
	}
	done, begun := locks.Sum, len(r.Out)
	for end := min(n, done+randomAtOnce); done < end && len(r.Out)-begun < exec.RunBytes; done++ {
		position := uint64(0)
		if count > 0 {
			position = now.at(uint64(done))
		} else {
			position = rand.Uint64N(uint64(size))
		}
		s.replyAt(r, int(position), withScores, paired)
	}
	if done == n {
		locks.Whole()
		return
	}
	kept := now // on the heap, which a short reply does not need
	locks.State = &kept
	locks.Hold()
	locks.Stop(locks.First+1, done)
}

// replyAt answers the member at a position.
func (s *View) replyAt(r *exec.Request, position int, withScore, paired bool) {
	member, rank := s.at(position)
	if paired {
		r.Out = resp.AppendArray(r.Out, 2)
	}
	r.ReplyElement(member)
	if withScore && r.Room(exec.LineRoom) {
		r.Out = resp.AppendDouble(r.Out, r.Version(), scoreOf(rank))
	}
}

// order is a random permutation of the numbers below n, which takes no memory for each: four rounds
// of a Feistel network on the next even number of bits. What is not below n is permuted again.
type order struct {
	n    uint64
	half int // bits
	keys [4]uint64
}

func newOrder(n uint64) (o order) {
	o.n, o.half = n, (bits.Len64(n)+1)/2
	for i := range o.keys {
		o.keys[i] = rand.Uint64()
	}
	return o
}

// at is the i-th number.
func (o *order) at(i uint64) uint64 {
	mask := uint64(1)<<o.half - 1
	for {
		left, right := i>>o.half, i&mask
		for _, key := range o.keys {
			high, low := bits.Mul64(right^key, 0x9E3779B97F4A7C15)
			left, right = right, left^(high^low)&mask
		}
		if i = left<<o.half | right; i < o.n {
			return i
		}
	}
}
