package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

const (
	noteChannel = "__keyspace@0__:note:"
	notePattern = noteChannel + "*"
	noteLife    = 40 // so many later notes are set before one is deleted
	expired     = "expired"
	expiringOne = 4                      // one note in this many expires instead
	noteTime    = 500 * time.Millisecond // until then
	sweepTime   = 10 * time.Second       // how long an expired key may stay: a node looks at each every 7 s
)

// Announce has nodes publish keyspace notifications, and speakers change keys.
func (x *Rig) Announce() {
	x.T.Helper()
	harness.Eventually(x.T, harness.ReadyTimeout, "the cluster's level allows notifications", func() bool { return x.Tables.atLevel(ring.EventsLevel) })
	s := x.NewSession(x.C.Proxy(0), "who announces")
	s.exactly("+OK\r\n", "CONFIG", "SET", "notify-keyspace-events", "K$gx")
	s.Exchange()
	x.hearing.note(func() { x.hearing.notes = true })
}

// change adds a command that changes a key of its own.
func (g *hearing) change(s *Session, speaker int, event string, n int64) {
	said, args := g.says(message{speaker, event, n}), []string{event, noteKey(g.currentEra(), speaker, n)}
	if event == "set" {
		args = append(args, "x")
	}
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			g.x.Outcome(s, reply, "")
			return
		}
		if string(reply) != ":0\r\n" {
			g.note(func() { said.acked = time.Now() })
		}
	}, args...)
}

func noteKey(era uint64, speaker int, n int64) string {
	return fmt.Sprintf("note:%d:%d:%d", era, speaker, n)
}

// expire adds a command that stores a key which expires.
func (g *hearing) expire(s *Session, speaker int, n int64) {
	var said []*saying
	for _, event := range []string{"set", "expire", expired} {
		said = append(said, g.says(message{speaker, event, n}))
	}
	s.Add(func(reply []byte) {
		if s.X.Outcome(s, reply, "+OK\r\n") != Executed {
			return
		}
		g.note(func() {
			for _, one := range said {
				one.acked = time.Now()
			}
		})
	}, "SET", noteKey(g.currentEra(), speaker, n), "x", "PX", strconv.FormatInt(noteTime.Milliseconds(), 10))
}

// dueBy returns when what is missing must have been heard, if all of it was sent before begin: an expiry takes
// up to sweepTime, from when its key was certainly stored and its partition has moved. settled is false if
// partitions go on moving for so long that nobody waits for that.
func (x *Rig) dueBy(begin time.Time, missing []lostMessage) (due time.Time, settled bool) {
	now, since := time.Now(), begin
	for _, m := range missing {
		since = later(since, m.acked)
	}
	moved := x.Tables.movedUntil(now)
	settled = moved.Before(begin.Add(harness.ReadyTimeout + x.Pulse.Missed(begin, now)))
	since = later(since, moved)
	return since.Add(noteTime + sweepTime + x.Pulse.Missed(since, now)), settled
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// mayExpireUnnoticed reports whether a notification is of a key that has expired while its partition may have moved, or
// of one that may still be there at the end.
func (m lostMessage) mayExpireUnnoticed(x *Rig, era uint64, end time.Time) bool {
	if m.channel != expired {
		return false
	}
	due, found := m.sent.Add(noteTime), m.acked.Add(noteTime+sweepTime)
	if !end.IsZero() && found.After(end) {
		return true
	}
	partition := ring.PartitionOf([]byte(noteKey(era, m.speaker, m.n)))
	for ; !due.After(found); due = due.Add(watchLag) {
		if x.Tables.movingAbout(partition, due) {
			return true
		}
	}
	return false
}

// wentWithItsKey reports whether a notification is of a key that may have been lost before it expired.
func (m lostMessage) wentWithItsKey(x *Rig, era uint64, end time.Time) bool {
	if m.channel != expired || m.mayExpireUnnoticed(x, era, end) {
		return m.channel == expired
	}
	partition := ring.PartitionOf([]byte(noteKey(era, m.speaker, m.n)))
	a := absence{partition: partition, from: m.sent, to: m.acked.Add(noteTime + sweepTime)}
	if x.Tables.judge(a) == nil {
		return true
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return slices.ContainsFunc(x.deaths, func(d death) bool {
		return d.until.After(a.from) && d.at.Before(a.to) && x.Tables.ownedAbout(d.node, a.partition, d.at)
	})
}
