package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// ledger is what is known of the numbered items that sessions store under one key. The item 7 of the key k is the
// text "k=7".
type ledger struct {
	key       string
	partition uint16

	mu     sync.Mutex
	next   int64           // number of the next item
	items  map[int64]*item // all but those that were refused, or over, long ago
	open   int             // items that are neither
	forgot time.Time       // when some were dropped last
}

// item is what is known of one. Times that are zero have not come yet.
type item struct {
	sent, acked  time.Time
	asked, taken time.Time // when the command was sent that took it, and when its reply came
	over         time.Time // when it was gone for good: taken, or its deletion was acknowledged
	by           string    // who took it
	finishing    bool      // its deletion was sent, and may have been executed
	refused      bool      // it was not stored
	left         bool      // the last read has shown it
}

// keptItems is how many items of a ledger are remembered for keptTime, by when all its losses have shown.
const keptItems, keptTime = 8192, time.Minute

func newLedger(key string) ledger {
	return ledger{key: key, partition: ring.PartitionOf([]byte(key)), next: 1, items: map[int64]*item{}}
}

// fresh returns an item that is about to be sent.
func (l *ledger) fresh() (n int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = l.next
	l.items[n] = &item{sent: time.Now()}
	l.open++
	l.next++
	return n, l.key + "=" + strconv.FormatInt(n, 10)
}

// answered notes the outcome of the command that was to store an item.
func (l *ledger) answered(n int64, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch i := l.items[n]; {
	case i == nil: // it is over, and was so long ago
	case o == Executed:
		i.acked = time.Now()
	case o == notExecuted:
		i.refused = true
		l.open--
	}
}

// isFull reports whether more than most items are open.
func (l *ledger) isFull(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open > most
}

// find returns the item that a reply shows.
func (l *ledger) find(text string) (*item, error) {
	number, ok := strings.CutPrefix(text, l.key+"=")
	n, err := strconv.ParseInt(number, 10, 64)
	switch i := l.items[n]; {
	case !ok || err != nil:
		return nil, fmt.Errorf("%s has %.80q, which is no item of it", l.key, text)
	case n < 1 || n >= l.next:
		return nil, fmt.Errorf("%s was never sent", text)
	case i == nil:
		return nil, fmt.Errorf("%s was over more than %v ago", text, keptTime)
	case i.refused:
		return nil, fmt.Errorf("%s shows, though its command was not executed", text)
	default:
		return i, nil
	}
}

// undone returns that what was asked for last, and acknowledged, did not last.
func (l *ledger) undone(i *item, acked, now time.Time, what string) *absence {
	return &absence{
		key: l.key, partition: l.partition, from: i.asked, to: now, lost: 1, acked: acked, shown: 1, what: what,
	}
}

// forget drops what was over or refused long ago, in rounds: keptItems are sent in about keptTime.
func (l *ledger) forget(now time.Time) {
	if len(l.items) < keptItems || now.Before(l.forgot.Add(keptTime/4)) {
		return
	}
	l.forgot = now
	for n, i := range l.items {
		if (i.refused || !i.over.IsZero()) && now.Sub(i.sent) > keptTime && now.Sub(i.over) > keptTime {
			delete(l.items, n)
		}
	}
}

// missing returns the items that were stored, are not over, and were not left either.
func (l *ledger) missing(now time.Time) (all []absence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, i := range l.items {
		if !i.acked.IsZero() && i.over.IsZero() && !i.left && !i.finishing {
			all = append(all, absence{
				key: l.key, partition: l.partition, from: i.sent, to: now, lost: 1, acked: i.acked,
				what: fmt.Sprintf("%s=%d is lost", l.key, n),
			})
		}
	}
	return all
}

// sharing is the ledgers of one kind that some sessions share. After a division they are new ones.
type sharing[L comparable] struct {
	x     *Rig
	level uint8  // of the cluster, from which on sessions may do what they do
	kind  string // the keys' prefix
	make  func(key string) L

	mu  sync.Mutex
	era uint64
	all []L
}

// shared is how many ledgers of a kind there are.
const shared = 3

// current returns the ledgers, none while the cluster is divided.
func (g *sharing[L]) current() []L {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.x.Divided.Load() {
		return nil
	}
	if era := g.x.Era.Load(); g.all == nil || g.era != era {
		g.era, g.all = era, nil
		for i := range shared {
			g.all = append(g.all, g.make(fmt.Sprintf("%s:%d:%d", g.kind, era, i)))
		}
	}
	return g.all
}

// isCurrent reports whether these ledgers still are the present ones.
func (g *sharing[L]) isCurrent(all []L) bool {
	now := g.current()
	return now != nil && now[0] == all[0]
}

// isReady reports whether the cluster has come to the level.
func (g *sharing[L]) isReady() bool { return g.x.Tables.atLevel(g.level) }

// start has sessions do something with the ledgers at each proxy until the clients stop, with pauses of up to rest.
func (g *sharing[L]) start(sessions int, name string, do func(*Session, []L) bool, rest time.Duration) {
	for _, p := range g.x.C.ByRole("proxy") {
		for i := range sessions {
			s := g.x.NewSession(p, fmt.Sprintf("%s-%d-at-%s", name, i, p.ID))
			g.x.Running.Go(func() { g.run(s, do, rest) })
		}
	}
}

func (g *sharing[L]) run(s *Session, do func(*Session, []L) bool, rest time.Duration) {
	defer func() { s.Link.Conn.Close() }()
	for !g.x.Stopped() {
		ok := g.x.Unpaused(func() bool {
			all := g.current()
			return all == nil || !g.isReady() || do(s, all)
		})
		if !ok {
			return
		}
		harness.SleepUpTo(rest, s.Rng)
	}
}

func (g *sharing[L]) note(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
}
