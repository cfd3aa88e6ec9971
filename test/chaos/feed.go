package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Feed is a list that sessions fill with numbered items, and that others empty by blocking commands. Each item
// goes to one of them, and soon:
//
//	RPUSH 7 8 ─▶ feed ─▶ BLPOP of this key: 7
//	                  └▶ BLPOP of keys of three slots, by claims: 8
//
// Some consumers leave while they wait. They send no more, and read on until the connection ends: what the proxy
// has sent is theirs, and anything else must go to somebody else.
//
// A fault may lose what was pushed or popped just before (lossLimit), and what a pop has taken when its pipe breaks.
type Feed struct{ ledger }

// feeding is the feeds that some sessions share.
type feeding struct {
	sharing[*Feed]
	taken, left, lost int // items; consumers that left while they waited
	slowest           time.Duration
}

const (
	// feedersPerProxy fill the feeds, and eatersPerProxy empty them.
	feedersPerProxy, eatersPerProxy = 1, 3
	// feedAhead is how many items a feed has at most that nobody has taken.
	feedAhead = 200
	// mostTaken is how many items a command takes.
	mostTaken = 3
	// feedTime bounds how long an item lies in a feed, beside the time for which the machine stands still. A fault
	// may take most of AnswerTime, and be followed by another.
	feedTime = 2 * harness.AnswerTime
)

func newFeed(key string) *Feed { return &Feed{newLedger(key)} }

// startFeeds has sessions fill and empty feeds, as soon as the cluster's level allows that.
func (x *Rig) startFeeds() {
	g := &feeding{sharing: sharing[*Feed]{x: x, level: ring.ClaimLevel, kind: "feed", make: newFeed}}
	x.feeding = g
	g.start(feedersPerProxy, "feeder", g.push, 10*time.Millisecond)
	g.start(eatersPerProxy, "eater", g.pop, 2*time.Millisecond)
}

// push adds some items to a feed.
func (g *feeding) push(s *Session, all []*Feed) bool {
	f := all[s.Rng.IntN(len(all))]
	if f.isFull(feedAhead) {
		return true
	}
	switch s.Rng.IntN(4) {
	case 0:
		s.feed(f, "LPUSH", 1)
	case 1:
		numbers, texts := f.several(2)
		s.execute(func(_ [][]byte, o outcome) { f.pushed(numbers, o) },
			[]string{"RPUSH", f.key, texts[0]}, []string{"RPUSH", f.key, texts[1]})
	default:
		s.feed(f, "RPUSH", 1+s.Rng.IntN(4))
	}
	return s.Exchange()
}

// feed adds a command that pushes n items.
func (s *Session) feed(f *Feed, command string, n int) {
	numbers, texts := f.several(n)
	s.Add(func(reply []byte) {
		o := Executed
		if _, ok := resp.DecodeInt(reply); !ok {
			o = s.X.Outcome(s, reply, "")
		}
		f.pushed(numbers, o)
	}, append([]string{command, f.key}, texts...)...)
}

// several returns items that are about to be sent.
func (f *Feed) several(count int) (numbers []int64, texts []string) {
	for range count {
		n, text := f.fresh()
		numbers, texts = append(numbers, n), append(texts, text)
	}
	return numbers, texts
}

// pushed notes the outcome of a push.
func (f *Feed) pushed(numbers []int64, o outcome) {
	for _, n := range numbers {
		f.answered(n, o)
	}
}

// pop waits for an item, and leaves meanwhile now and then.
func (g *feeding) pop(s *Session, all []*Feed) bool {
	s.busy.Lock()
	defer s.busy.Unlock()
	begin := time.Now()
	leaves := s.Rng.IntN(10) == 0
	if err := s.Link.Send([]byte(popping(s, all) + "\r\n")); err != nil {
		g.x.Violate("%s: cannot send: %v", s.name, err)
		return false
	}
	if leaves {
		harness.SleepUpTo(5*time.Millisecond, s.Rng)
		_ = s.Link.Conn.(*net.TCPConn).CloseWrite()
	}
	reply, err := s.receive(begin)
	switch {
	case err != nil && leaves && !errors.Is(err, os.ErrDeadlineExceeded):
		g.note(func() { g.left++ })
	case err != nil:
		g.x.Violate("%s: no reply after %v: %v", s.name, time.Since(begin), hung(err))
		return false
	case resp.IsError(reply):
		g.x.Outcome(s, reply, "")
	default:
		g.takes(s, all, begin, reply)
	}
	return !leaves || g.again(s)
}

// popping is a random blocking command.
func popping(s *Session, all []*Feed) string {
	limit := []string{"0.02", "0.2", "0.5"}[s.Rng.IntN(3)]
	var keys []string
	for _, i := range s.Rng.Perm(len(all)) {
		keys = append(keys, all[i].key)
	}
	switch s.Rng.IntN(4) {
	case 0:
		return "BLPOP " + keys[0] + " " + limit
	case 1:
		return "BLMPOP " + limit + " 1 " + keys[0] + " LEFT COUNT " + strconv.Itoa(mostTaken)
	case 2:
		return fmt.Sprintf("BLMPOP %s %d %s LEFT COUNT %d", limit, len(keys), strings.Join(keys, " "), mostTaken)
	}
	return "BLPOP " + strings.Join(keys, " ") + " " + limit
}

// again connects a session that has left.
func (g *feeding) again(s *Session) bool {
	s.Link.Conn.Close()
	for !g.x.Stopped() {
		if l, err := g.x.dial(s.at); err == nil {
			s.Link = l
			return true
		}
		time.Sleep(harness.PollInterval)
	}
	return false
}

// takes judges the reply to a pop that was sent at begin.
func (g *feeding) takes(s *Session, all []*Feed, begin time.Time, reply []byte) {
	texts, err := flat(reply)
	if err != nil {
		g.x.Violate("%s: a pop answers %.80q: %v", s.name, reply, err)
		return
	}
	if len(texts) == 0 || !g.isCurrent(all) {
		return
	}
	for _, text := range texts[1:] {
		took, lost, err := take(all, string(texts[0]), string(text), begin, time.Now())
		g.x.judged(s.name, lost, err)
		if limit := feedTime + g.x.Pulse.Missed(time.Now().Add(-took), time.Now()); took > limit {
			g.x.Violate("%s: %s lay in its feed for %v", s.name, text, took)
		}
		g.note(func() { g.taken, g.slowest = g.taken+1, max(g.slowest, took) })
	}
}

// take notes that a pop of the key, sent when asked, has taken an item. It returns for how long that had been there,
// and what was lost if somebody else has it.
func take(all []*Feed, key, text string, asked, now time.Time) (lay time.Duration, lost *absence, err error) {
	for _, f := range all {
		if f.key == key {
			return f.take(text, asked, now)
		}
	}
	return 0, nil, fmt.Errorf("a pop is answered with key %.80q", key)
}

func (f *Feed) take(text string, asked, now time.Time) (lay time.Duration, lost *absence, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.find(text)
	if err != nil {
		return 0, nil, err
	}
	if lost = f.revived(text, i, now); lost == nil {
		f.open--
	}
	if !i.acked.IsZero() && lost == nil {
		lay = now.Sub(i.acked)
	}
	i.asked, i.taken, i.over = asked, now, now
	f.forget(now)
	return lay, lost, nil
}

// revived returns that the pop of an item was lost, if somebody has taken it.
func (f *Feed) revived(text string, i *item, now time.Time) *absence {
	if i.taken.IsZero() {
		return nil
	}
	return f.undone(i, i.taken, now, text+" is there, though it was taken at "+Clock(i.taken))
}

// readFeeds reads what is left in the feeds.
func (s *Session) readFeeds() {
	if s.X.feeding == nil || !s.X.feeding.isReady() {
		return
	}
	for _, f := range s.X.feeding.current() {
		s.Add(func(reply []byte) {
			if resp.IsError(reply) {
				s.X.Outcome(s, reply, "")
				return
			}
			texts, err := flat(reply)
			if err != nil {
				s.X.Violate("%s: LRANGE: %v", s.name, err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, text := range texts {
				i, err := f.find(string(text))
				if err == nil {
					i.left = true
					s.X.judged(s.name, f.revived(string(text), i, time.Now()), nil)
				} else {
					s.X.Violate("%s: %v", s.name, err)
				}
			}
		}, "LRANGE", f.key, "0", "-1")
	}
}

// judgeFeeds judges what nobody has taken, once the feeds were read.
func (x *Rig) judgeFeeds() {
	g := x.feeding
	if g == nil || x.Evicts {
		return
	}
	for _, f := range g.current() {
		for _, a := range f.missing(time.Now()) {
			if x.judge(a) == nil {
				continue
			}
			if g.lost++; !x.hurt(a.from) {
				x.Violate("%v, though nothing has happened since", a)
			}
		}
	}
	if most := x.poppedWithPipes(); g.lost > most {
		x.Violate("%d items of feeds are lost, of which broken pipes explain %d at most", g.lost, most)
	}
	g.note(func() {
		x.T.Logf("feeds: %d items were taken, the slowest after %v; %d consumers left; %d items went with broken pipes",
			g.taken, g.slowest.Round(time.Millisecond), g.left, g.lost)
	})
}

// hurt reports whether pipes may have broken since then.
func (x *Rig) hurt(since time.Time) bool { return x.disturbed(since) && x.poppedWithPipes() > 0 }

// disturbed reports whether something may have happened to a node since then.
func (x *Rig) disturbed(since time.Time) bool {
	return x.relayed || x.Network != nil || x.Pulse.Missed(since, time.Now()) >= MachineLimit ||
		x.diedSince(since) || x.gaveUpSince(since, nil)
}

// gaveUpSince reports whether a member's log says since then that a node was given up because it
// was silent, or that it stood still: on a busy machine. What is said of the member but does not
// count.
func (x *Rig) gaveUpSince(since time.Time, but *harness.Member) bool {
	return x.gaveUpLast(but).After(since)
}

// gaveUpLast returns when a log has said that last.
func (x *Rig) gaveUpLast(but *harness.Member) time.Time {
	return x.loggedLast(func(m *harness.Member, line string) bool {
		if strings.Contains(line, "sent nothing for too long") {
			return but == nil || !strings.Contains(line, " node="+but.ID+" ")
		}
		return m != but && strings.Contains(line, "msg=fenced")
	})
}

// stumblesSince reports whether a node's log says since then that it stood still, or that others had
// taken it for dead.
func (x *Rig) stumblesSince(since time.Time) bool {
	return x.loggedLast(func(_ *harness.Member, line string) bool {
		return strings.Contains(line, "msg=fenced")
	}).After(since)
}

// loggedLast returns when a member has logged such a line last, now if a log cannot be read.
func (x *Rig) loggedLast(is func(m *harness.Member, line string) bool) (last time.Time) {
	for _, m := range x.C.Members {
		log, err := os.ReadFile(m.Logged)
		if err != nil {
			return time.Now()
		}
		for line := range strings.Lines(string(log)) {
			if !is(m, line) {
				continue
			}
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339, stamp)
			if err != nil {
				return time.Now()
			}
			if at.After(last) {
				last = at
			}
		}
	}
	return last
}

// diedSince reports whether a node has died, or stood still, since then.
func (x *Rig) diedSince(since time.Time) bool {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, d := range x.deaths {
		if d.until.After(since) {
			return true
		}
	}
	return false
}

// poppedWithPipes returns how many items pops may have taken whose pipes have broken: what all consumers wait for, with
// each pipe.
func (x *Rig) poppedWithPipes() int {
	broken := 0.0
	for _, p := range x.C.ByRole("proxy") {
		n, _ := harness.Scrape(x.T, p.Admin).Sum("dunlin_proxy_broken_pipes_total{")
		broken += n
	}
	return int(broken) * eatersPerProxy * mostTaken
}
