package scenarios

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// clockOff is the largest offset of a clock in TestScenarioClocks.
const clockOff = time.Hour

// TestScenarioClocks runs members whose clocks are up to two hours apart. Nodes join, leave, die,
// and return with another clock, even an earlier one, as on another machine.
func TestScenarioClocks(t *testing.T) {
	s := startScenario(t, chaos.Options{Copies: 2, Clocks: []time.Duration{-clockOff, 0, clockOff, clockOff, -clockOff}})
	for _, m := range s.C.Members {
		s.tellsItsTime(m)
	}
	s.AwaitCollections()
	n4 := s.add("n4")
	s.rounds(func(i int) {
		d := s.newDated(i)
		n4.Clock = []time.Duration{clockOff, -clockOff, 0}[i%3]
		s.leaves("join", nil, n4.Launch)
		d.check()
		victim := s.C.Node((i + 2) % 3)
		s.breaks("SIGKILL, back by another clock", victim, true, func() {
			s.Kill(victim)
			victim.Clock = []time.Duration{0, clockOff, -clockOff}[i%3]
			victim.Launch()
		})
		d.check()
		if *scenarioFull {
			victim := s.C.Node(i % 3)
			s.breaks("SIGKILL", victim, true, func() { s.Kill(victim) })
			s.comesBack(victim)
		}
		s.leaves("leave", nil, func() { n4.Term(drainTime) })
		harness.Eventually(t, chaos.SettleTime, "what expires is gone", func() bool { return d.check() == 0 }, s.Shown)
	})
}

// tellsItsTime checks that a member's clock has its offset.
func (s *scenario) tellsItsTime(m *harness.Member) {
	s.T.Helper()
	asked := s.NewSession(m, m.ID)
	defer asked.Link.Conn.Close()
	asked.Add(func(reply []byte) {
		_, header, _ := resp.DecodeArray(reply)
		text, _ := resp.DecodeBulk(reply[header:]) // the first of two
		seconds, err := strconv.ParseInt(string(text), 10, 64)
		off := time.Until(time.Unix(seconds, 0)) - m.Clock
		if err != nil || off.Abs() > time.Minute {
			s.T.Fatalf("TIME at %s answers %q, which is off by %v, not by %v", m.ID, reply, off+m.Clock, m.Clock)
		}
	}, "TIME")
	asked.Exchange()
}

// dated is a set of keys, and fields of hashes, whose expiry the test knows.
type dated struct {
	s      *scenario
	keys   []*datedKey
	stored time.Time
}

type datedKey struct {
	name      string
	field     string // "" for a key
	partition uint16
	fleeting  bool // expires soon
	// It expires between these times, by the machine's clock.
	first, last time.Time
}

const (
	datedKeys = 600
	// fleetingFrom and fleetingTo are the times to live of every third key, so that
	// some expire meanwhile; longTTL is that of the others.
	fleetingFrom, fleetingTo = time.Second, 4 * time.Second
	longTTL                  = 2 * clockOff
	// lateLimit is how much longer a key may live. A key lives longer by the time that each of its
	// copies is on the way, up to 2.3 s on a machine with a load average of 40. No key lives
	// shorter, except that nodes read their clocks only now and then.
	lateLimit, earlyLimit = 10 * time.Second, 100 * time.Millisecond
	datedBatch            = 50
	// datedHashes share out every second one among them: each has more fields than a small hash.
	datedHashes = 2
)

// expiring is a request that stores it with an expiry.
func (k *datedKey) expiring(option string, millis int64) []string {
	n := strconv.FormatInt(millis, 10)
	if k.field == "" {
		return []string{"SET", k.name, "value", option, n}
	}
	return []string{"HSETEX", k.name, option, n, "FIELDS", "1", k.field, "value"}
}

func (k *datedKey) String() string { return k.name + " " + k.field }

// stored is the reply to that.
func (k *datedKey) stored() string {
	if k.field == "" {
		return "+OK\r\n"
	}
	return ":1\r\n"
}

// ask is a request for a time, PTTL or PEXPIRETIME.
func (k *datedKey) ask(command string) []string {
	if k.field == "" {
		return []string{command, k.name}
	}
	return []string{"H" + command, k.name, "FIELDS", "1", k.field}
}

// time decodes the reply to that.
func (k *datedKey) time(reply []byte) int64 {
	if _, header, ok := resp.DecodeArray(reply); ok {
		reply = reply[header:]
	}
	millis, _ := resp.DecodeInt(reply)
	return millis
}

// newDated stores keys with short and long times to live, and with absolute times, which each node
// judges by its own clock. The cluster is settled.
func (s *scenario) newDated(round int) *dated {
	d := &dated{s: s, stored: time.Now()}
	table := s.Tables.Table()
	by := s.NewSession(s.C.Proxy(round%2), "writer of dated keys")
	defer by.Link.Conn.Close()
	for i := range datedKeys {
		k := &datedKey{name: fmt.Sprintf("dated:%d:%d", round, i), fleeting: i%3 == 0}
		if i%2 == 0 {
			k.name, k.field = fmt.Sprintf("dated:%d:hash:%d", round, i/2%datedHashes), fmt.Sprint("field", i)
		}
		k.partition = ring.PartitionOf([]byte(k.name))
		ttl := longTTL
		if k.fleeting {
			ttl = fleetingFrom + (fleetingTo-fleetingFrom)*time.Duration(i)/datedKeys
		}
		sent := time.Now()
		request := k.expiring("PX", ttl.Milliseconds())
		if i%3 == 1 {
			request = k.expiring("PXAT", sent.Add(ttl).UnixMilli())
		}
		by.Add(func(reply []byte) {
			if by.X.Outcome(by, reply, k.stored()) != chaos.Executed {
				return
			}
			k.first, k.last = sent.Add(ttl), time.Now().Add(ttl)
			if i%3 == 1 {
				k.first = k.first.Add(-d.clockOf(table, k))
				k.last = k.first
			}
			d.keys = append(d.keys, k)
		}, request...)
		if len(by.Judges) == datedBatch && !by.Exchange() {
			break
		}
	}
	return d
}

// clockOf returns the offset of the clock of a key's owner.
func (d *dated) clockOf(t *ring.Table, k *datedKey) time.Duration {
	owner := t.OwnerOf(k.partition).ID
	for _, m := range d.s.C.Members {
		if m.ID == owner {
			return m.Clock
		}
	}
	panic("BUG: no member " + owner)
}

// check judges the keys that exist, and returns how many of them expire soon. The cluster is
// settled.
func (d *dated) check() (fleeting int) {
	table := d.s.Tables.Table()
	by := d.s.NewSession(d.s.C.Proxy(0), "reader of dated keys")
	defer by.Link.Conn.Close()
	begin, missed := time.Now(), d.s.Pulse.Missed(d.stored, time.Now())
	for _, k := range d.keys {
		left := time.Duration(0)
		by.Add(func(reply []byte) {
			millis := k.time(reply)
			switch left = time.Duration(millis) * time.Millisecond; {
			case millis == -1: // it never expires
				left = math.MaxInt64 / 2
			case millis >= 0 && k.fleeting:
				fleeting++
			}
			d.judge(k, begin, left, lateLimit+missed)
		}, k.ask("PTTL")...)
		by.Add(func(reply []byte) {
			millis := k.time(reply)
			// The time at its owner, in the end.
			off := time.UnixMilli(millis).Add(-left).Sub(begin) - d.clockOf(table, k)
			if millis >= 0 && (off < -earlyLimit || off > time.Since(begin)+earlyLimit) {
				d.s.Violate("PEXPIRETIME %v at %v, but %v are left: the clock is off by %v more than its owner's", k, millis, left, off)
			}
		}, k.ask("PEXPIRETIME")...)
		if len(by.Judges) >= datedBatch {
			if !by.Exchange() {
				break
			}
			begin = time.Now()
		}
	}
	return fleeting
}

// judge judges a remaining time that was asked for at begin. It is negative if the key was missing.
func (d *dated) judge(k *datedKey, begin time.Time, left, late time.Duration) {
	now := time.Now()
	if left < 0 && now.Before(k.first.Add(-earlyLimit)) {
		d.s.Violate("%v is missing, %v before it expires", k, k.first.Sub(now))
	}
	if left >= 0 && (begin.Add(left).After(k.last.Add(late)) || now.Add(left).Before(k.first.Add(-earlyLimit))) {
		d.s.Violate("%v expires in %v, want %v to %v", k, left, k.first.Sub(now), k.last.Sub(begin))
	}
}
