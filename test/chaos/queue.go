package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Queue is a list to which one session appends numbered items, and from whose head it takes them.
// The session knows the list exactly, command by command:
//
//	popped 1 2 3 │ 4 5 6 7 │ 8 9 in flight
//	             └ items ──┘
//
// Other sessions know that numbers ascend. After an error, or when something was lost or overtaken,
// the session is blind until it has read the list with nothing else in flight.
type Queue struct {
	item   History // says how items look
	next   int64   // number of the next item
	items  []queued
	popped []queued  // the latest
	whole  time.Time // when the last command was sent whose reply proves all items; a pop proves those it takes
	flying int       // commands that have no reply yet
	blind  bool
	era    uint64 // see Rig.Era
	most   int    // items to grow to
	drains bool
}

// queued is an item, or that it was taken: when its command was sent, and when its reply came.
type queued struct {
	n          int64
	sent, done time.Time
}

const (
	keptPops = 4096
	// swingItems is more than a packed list can have; largeItems have strings that are parts.
	swingItems, largeItems = 300, 30
)

// NewQueue returns a list that nobody has written yet.
func NewQueue(key string, f form, most int) *Queue {
	return &Queue{item: History{Key: key, partition: ring.PartitionOf([]byte(key)), form: f}, next: 1, most: most}
}

func (x *Rig) newQueues(name string) (all []*Queue) {
	if !x.lists {
		return nil
	}
	for i := range alike {
		all = append(all, NewQueue(fmt.Sprintf("list:%s:swings%d", name, i), brief, swingItems),
			NewQueue(fmt.Sprintf("list:%s:large%d", name, i), long, largeItems))
	}
	return all
}

// queue adds a random command on an own list.
func (s *Session) queue(q *Queue) {
	switch n := len(q.items); {
	case n > q.most:
		q.drains = true
	case n == 0:
		q.drains = false
	}
	switch n := s.Rng.IntN(10); {
	case n == 0:
		s.Range(q, true)
	case (n < 4) != q.drains:
		s.pop(q, 1+s.Rng.IntN(8))
	default:
		s.push(q, s.Rng)
	}
}

// push appends a few items. The reply is the length.
func (s *Session) push(q *Queue, rng *rand.Rand) {
	now, args, fresh := time.Now(), []string{"RPUSH", q.item.Key}, []queued(nil)
	for range 1 + rng.IntN(8) {
		fresh = append(fresh, queued{n: q.next, sent: now})
		args = append(args, string(q.item.value(uint64(q.next))))
		q.next++
	}
	q.flying++
	s.Add(func(reply []byte) {
		q.flying--
		length, ok := resp.DecodeInt(reply)
		if !ok {
			q.blind = s.X.Outcome(s, reply, "") == unknown || q.blind
			return
		}
		done := time.Now()
		for i := range fresh {
			fresh[i].done = done
		}
		if want := int64(len(q.items) + len(fresh)); s.sees(q) && length != want {
			s.queueLost(q, fmt.Sprintf("RPUSH %s answers %d, want %d", q.item.Key, length, want), q.changedTail(want-length))
		}
		q.items = append(q.items, fresh...)
		q.whole = now
	}, args...)
}

// pop takes a few items.
func (s *Session) pop(q *Queue, count int) {
	now := time.Now()
	q.flying++
	s.Add(func(reply []byte) {
		q.flying--
		if resp.IsError(reply) {
			q.blind = s.X.Outcome(s, reply, "") == unknown || q.blind
			return
		}
		taken, err := q.decode(reply)
		if err != nil {
			s.X.Violate("%s: LPOP: %v", s.name, err)
			q.blind = true
			return
		}
		done := time.Now()
		if s.sees(q) {
			want := q.items[:min(count, len(q.items))]
			if why := differ(taken, want); why != "" {
				s.queueLost(q, "LPOP "+q.item.Key+" answers "+why, q.changedHead(taken))
			} else {
				q.items = q.items[len(want):]
			}
		}
		for _, n := range taken {
			q.popped = append(q.popped, queued{n, now, done})
		}
		if len(q.popped) > 2*keptPops {
			q.popped = append(q.popped[:0], q.popped[keptPops:]...)
		}
	}, "LPOP", q.item.Key, strconv.Itoa(count))
}

// Range reads the list. own says that this session is the writer.
func (s *Session) Range(q *Queue, own bool) {
	if own {
		q.flying++
	}
	now := time.Now()
	s.Add(func(reply []byte) {
		if own {
			q.flying--
		}
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
			return
		}
		shown, err := q.decode(reply)
		if err != nil {
			s.X.Violate("%s: LRANGE: %v", s.name, err)
			return
		}
		if !own {
			return
		}
		sees := s.sees(q)
		switch why := differ(shown, q.items); {
		case !sees && q.flying == 0:
			q.adopt(shown, now)
		case !sees:
		case why == "":
			q.whole = now
		case q.flying > 0: // its pipe may have broken, so that it was sent again
			s.X.overtaken(fmt.Sprintf("%s: LRANGE %s answers %s", s.name, q.item.Key, why))
			q.blind = true
		default:
			s.queueLost(q, "LRANGE "+q.item.Key+" answers "+why, q.changed(shown))
			q.adopt(shown, now)
		}
	}, "LRANGE", q.item.Key, "0", "-1")
}

// decode returns the numbers of the items that a reply has.
func (q *Queue) decode(reply []byte) (numbers []int64, err error) {
	if string(reply) == "_\r\n" || string(reply) == "*-1\r\n" || string(reply) == "$-1\r\n" {
		return nil, nil
	}
	texts, err := flat(reply)
	if err != nil {
		return nil, err
	}
	before := int64(0)
	for _, text := range texts {
		n, err := q.item.parseFilled(text)
		if err != nil {
			return nil, err
		}
		if int64(n) <= before {
			return nil, fmt.Errorf("%s has item %d behind %d", q.item.Key, n, before)
		}
		before = int64(n)
		numbers = append(numbers, before)
	}
	return numbers, nil
}

// sees reports whether the session knows what the list has.
func (s *Session) sees(q *Queue) bool {
	if era := s.X.Era.Load(); q.era != era || s.X.Divided.Load() {
		q.era, q.blind = era, true
	}
	return !q.blind
}

// adopt believes what a read shows.
func (q *Queue) adopt(shown []int64, sent time.Time) {
	q.blind, q.items, q.whole = false, q.items[:0], sent
	now := time.Now()
	for _, n := range shown {
		q.items = append(q.items, queued{n, sent, now})
	}
}

// differ returns how items differ from those wanted, or "".
func differ(got []int64, want []queued) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i == len(want):
			return fmt.Sprintf("%d items, the first too many is %d", len(got), got[i])
		case i == len(got):
			return fmt.Sprintf("%d items, the first missing is %d", len(got), want[i].n)
		case got[i] != want[i].n:
			return fmt.Sprintf("item %d in place of %d", got[i], want[i].n)
		}
	}
	return ""
}

// changedTail returns what was lost if the list is shorter by this number, or longer if it is
// negative.
func (q *Queue) changedTail(shorter int64) []queued {
	if shorter > 0 {
		return q.items[max(0, len(q.items)-int(shorter)):]
	}
	return q.popped[max(0, len(q.popped)+int(shorter)):]
}

// changedHead returns what was lost if these items were at the head: that later ones were taken, or
// that the first ones were there.
func (q *Queue) changedHead(taken []int64) []queued {
	for i, p := range q.popped {
		if len(taken) > 0 && p.n == taken[0] {
			return q.popped[i:]
		}
	}
	return q.items
}

// changed returns what was lost if these are the items.
func (q *Queue) changed(shown []int64) []queued {
	if len(shown) > 0 && (len(q.items) == 0 || shown[0] < q.items[0].n) {
		return q.changedHead(shown)
	}
	for i, item := range q.items {
		if len(shown) > 0 && shown[0] == item.n { // the head is right
			for len(shown) > 0 && i < len(q.items) && q.items[i].n == shown[0] {
				i, shown = i+1, shown[1:]
			}
			return q.items[min(i, len(q.items)-1):]
		}
	}
	return q.items
}

// queueLost notes that the list is not what it should be, and is blind from now on. Only a death of
// its owner, or data that began anew, explains that.
func (s *Session) queueLost(q *Queue, what string, lost []queued) {
	q.blind = true
	a := absence{key: q.item.Key, what: what, partition: q.item.partition, from: q.whole, to: time.Now(), lost: len(lost)}
	if len(lost) > 0 {
		a.acked = lost[0].done
		if lost[0].sent.After(a.from) {
			a.from = lost[0].sent
		}
	}
	if strings.HasPrefix(what, "LRANGE") && len(q.items) == 0 {
		a.shown = 1
	}
	s.X.judged(s.name, &a, nil)
}
