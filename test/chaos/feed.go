package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
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
type Feed struct {
	key       string
	partition uint16

	mu     sync.Mutex
	next   int64           // number of the next item
	items  map[int64]*item // all but those that were taken or refused long ago
	open   int             // items that nobody has taken
	forgot time.Time       // when some were dropped last
}

// item is what is known of one. Times that are zero have not come yet.
type item struct {
	sent, acked  time.Time
	asked, taken time.Time // when the command was sent that took it, and when its reply came
	refused      bool      // the push was not executed
	left         bool      // the last read has shown it
}

// feeding is the feeds that some sessions share. After a division they are new ones.
type feeding struct {
	x   *Rig
	mu  sync.Mutex
	era uint64
	all []*Feed

	taken, left, lost int // items; consumers that left while they waited
	slowest           time.Duration
}

const (
	feeds = 3
	// feedersPerProxy fill the feeds, and eatersPerProxy empty them.
	feedersPerProxy, eatersPerProxy = 1, 3
	// feedAhead is how many items a feed has at most that nobody has taken.
	feedAhead = 200
	// mostTaken is how many items a command takes.
	mostTaken = 3
	// keptItems is how many items of a feed are remembered for keptTime, by when all its losses have shown.
	keptItems, keptTime = 8192, time.Minute
	// feedTime bounds how long an item lies in a feed, beside the time for which the machine stands still. A fault
	// may take most of AnswerTime, and be followed by another.
	feedTime = 2 * harness.AnswerTime
)

func newFeed(key string) *Feed {
	return &Feed{key: key, partition: ring.PartitionOf([]byte(key)), next: 1, items: map[int64]*item{}}
}

// startFeeds has sessions fill and empty feeds, as soon as the cluster's level allows that.
func (x *Rig) startFeeds() {
	g := &feeding{x: x}
	g.renew()
	x.feeding = g
	for _, p := range x.C.ByRole("proxy") {
		for i := range feedersPerProxy {
			s := x.NewSession(p, fmt.Sprintf("feeder %d at %s", i, p.ID))
			x.Running.Go(func() { g.run(s, g.push, 10*time.Millisecond) })
		}
		for i := range eatersPerProxy {
			s := x.NewSession(p, fmt.Sprintf("eater %d at %s", i, p.ID))
			x.Running.Go(func() { g.run(s, g.pop, 2*time.Millisecond) })
		}
	}
}

// renew makes new feeds.
func (g *feeding) renew() {
	g.all = nil
	for i := range feeds {
		g.all = append(g.all, newFeed(fmt.Sprintf("feed:%d:%d", g.era, i)))
	}
}

// current returns the feeds, none while the cluster is divided.
func (g *feeding) current() []*Feed {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.x.Divided.Load() {
		return nil
	}
	if era := g.x.Era.Load(); g.era != era {
		g.era = era
		g.renew()
	}
	return g.all
}

// run calls do until the clients stop, with pauses of up to rest.
func (g *feeding) run(s *Session, do func(*Session, []*Feed) bool, rest time.Duration) {
	defer func() { s.Link.Conn.Close() }()
	for !g.x.Stopped() {
		ok := g.x.Unpaused(func() bool {
			all := g.current()
			return all == nil || !g.x.Tables.atLevel(ring.ClaimLevel) || do(s, all)
		})
		if !ok {
			return
		}
		harness.SleepUpTo(rest, s.Rng)
	}
}

// push adds some items to a feed.
func (g *feeding) push(s *Session, all []*Feed) bool {
	f := all[s.Rng.IntN(len(all))]
	if f.isFull() {
		return true
	}
	switch s.Rng.IntN(4) {
	case 0:
		s.feed(f, "LPUSH", 1)
	case 1:
		numbers, texts := f.fresh(2)
		s.execute(func(_ [][]byte, o outcome) { f.answered(numbers, o) }, []string{"RPUSH", f.key, texts[0]}, []string{"RPUSH", f.key, texts[1]})
	default:
		s.feed(f, "RPUSH", 1+s.Rng.IntN(4))
	}
	return s.Exchange()
}

// feed adds a command that pushes n items.
func (s *Session) feed(f *Feed, command string, n int) {
	numbers, texts := f.fresh(n)
	s.Add(func(reply []byte) {
		o := Executed
		if _, ok := resp.DecodeInt(reply); !ok {
			o = s.X.Outcome(s, reply, "")
		}
		f.answered(numbers, o)
	}, append([]string{command, f.key}, texts...)...)
}

// fresh returns items that are about to be sent.
func (f *Feed) fresh(n int) (numbers []int64, texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.items[f.next] = &item{sent: time.Now()}
		f.open++
		numbers, texts = append(numbers, f.next), append(texts, f.key+"="+strconv.FormatInt(f.next, 10))
		f.next++
	}
	return numbers, texts
}

// answered notes the outcome of a push.
func (f *Feed) answered(numbers []int64, o outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range numbers {
		i := f.items[n]
		switch {
		case i == nil: // it was taken, and that was long ago
		case o == Executed:
			i.acked = time.Now()
		case o == notExecuted:
			i.refused = true
			f.open--
		}
	}
}

// isFull reports whether the feed has enough items.
func (f *Feed) isFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open > feedAhead
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

func (g *feeding) note(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
}

// takes judges the reply to a pop that was sent at begin.
func (g *feeding) takes(s *Session, all []*Feed, begin time.Time, reply []byte) {
	texts, err := flat(reply)
	if err != nil {
		g.x.Violate("%s: a pop answers %.80q: %v", s.name, reply, err)
		return
	}
	if len(texts) == 0 || all[0] != g.current0() {
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

// current0 is the first of the current feeds, nil if there are none.
func (g *feeding) current0() *Feed {
	if all := g.current(); all != nil {
		return all[0]
	}
	return nil
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
	i.asked, i.taken = asked, now
	f.forget(now)
	return lay, lost, nil
}

// find returns the item that a reply shows.
func (f *Feed) find(text string) (*item, error) {
	number, ok := strings.CutPrefix(text, f.key+"=")
	n, err := strconv.ParseInt(number, 10, 64)
	switch i := f.items[n]; {
	case !ok || err != nil:
		return nil, fmt.Errorf("%s has %.80q, which is no item of it", f.key, text)
	case n < 1 || n >= f.next:
		return nil, fmt.Errorf("%s was never sent", text)
	case i == nil:
		return nil, fmt.Errorf("%s was taken more than %v ago", text, keptTime)
	case i.refused:
		return nil, fmt.Errorf("%s shows, though its push was not executed", text)
	default:
		return i, nil
	}
}

// revived returns that the pop of an item was lost, if somebody has taken it.
func (f *Feed) revived(text string, i *item, now time.Time) *absence {
	if i.taken.IsZero() {
		return nil
	}
	return &absence{
		key: f.key, partition: f.partition, from: i.asked, to: now, lost: 1, acked: i.taken, shown: 1,
		what: text + " is there, though it was taken at " + Clock(i.taken),
	}
}

// forget drops what was taken or refused long ago, in rounds: keptItems are sent in about keptTime.
func (f *Feed) forget(now time.Time) {
	if len(f.items) < keptItems || now.Before(f.forgot.Add(keptTime/4)) {
		return
	}
	f.forgot = now
	for n, i := range f.items {
		if (i.refused || !i.taken.IsZero()) && now.Sub(i.sent) > keptTime && now.Sub(i.taken) > keptTime {
			delete(f.items, n)
		}
	}
}

// readFeeds reads what is left in the feeds.
func (s *Session) readFeeds() {
	if s.X.feeding == nil || !s.X.Tables.atLevel(ring.ClaimLevel) {
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

// missing returns the items that were pushed, and that nobody has.
func (f *Feed) missing(now time.Time) (all []absence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, i := range f.items {
		if !i.acked.IsZero() && i.taken.IsZero() && !i.left {
			all = append(all, absence{
				key: f.key, partition: f.partition, from: i.sent, to: now, lost: 1, acked: i.acked,
				what: fmt.Sprintf("%s=%d is lost", f.key, n),
			})
		}
	}
	return all
}

// hurt reports whether pipes may have broken since then.
func (x *Rig) hurt(since time.Time) bool {
	return (x.relayed || x.Network != nil || x.Pulse.Missed(since, time.Now()) >= MachineLimit || x.diedSince(since) || x.gaveUpSince(since)) &&
		x.poppedWithPipes() > 0
}

// gaveUpSince reports whether a member's log says since then that a node was given up because it was silent, or that it
// stood still: on a busy machine.
func (x *Rig) gaveUpSince(since time.Time) bool {
	for _, m := range x.C.Members {
		log, err := os.ReadFile(m.Logged)
		if err != nil {
			return true
		}
		for line := range strings.Lines(string(log)) {
			if !strings.Contains(line, "sent nothing for too long") && !strings.Contains(line, "msg=fenced") {
				continue
			}
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			if at, err := time.Parse(time.RFC3339, stamp); err != nil || at.After(since) {
				return true
			}
		}
	}
	return false
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
