package chaos

import (
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// mixer is a client that pipelines batches of all sorts of commands.
type mixer struct {
	*Session
	own         []*History
	collections []*Collection
	queues      []*Queue
	bundles     []*Bundle
	transits    []*Transit
	counter     counter
}

func (x *Rig) newMixer(proxy *harness.Member, name string) *mixer {
	key := "count:" + name
	m := &mixer{Session: x.NewSession(proxy, name)}
	m.acquire(name, true)
	m.counter = counter{key: key, partition: ring.PartitionOf([]byte(key)), sent: time.Now()}
	for i := range keysPerMixer {
		m.own = append(m.own, NewHistory(fmt.Sprintf("%s:%d", name, i)))
	}
	return m
}

// acquire gives the client collections of all sorts, under new keys, and returns the keys of those
// that it had. Where copies must not be lost there are no big ones: a command that writes more than a
// unit has its partition sent anew, which is lost if its owner dies meanwhile.
func (m *mixer) acquire(name string, big bool) (old []string) {
	big = big && m.X.Copies < 2
	old = retired(m.collections, m.queues, m.bundles, m.transits)
	m.collections, m.queues = m.X.newCollections(name, big), m.X.newQueues(name)
	m.bundles, m.transits = m.X.newBundles(name), m.X.newTransits(name, big)
	return old
}

func (m *mixer) run() {
	// Half of the mixers speak RESP3, so that lanes of both versions are in use.
	if m.Rng.IntN(2) == 0 {
		m.hello(resp.RESP3)
	}
	for !m.X.Stopped() {
		if m.X.reaches(m.own[0].Key) && !m.X.Unpaused(m.batch) {
			return
		}
		// A pause leaves processor time for the other processes.
		time.Sleep(time.Duration(m.Rng.Int64N(int64(m.X.Rest))).Truncate(time.Millisecond))
	}
}

// batch sends some commands and judges their replies. It returns false if the connection has
// failed.
func (m *mixer) batch() bool {
	for range 1 + m.Rng.IntN(m.X.Batch) {
		m.addOne()
	}
	return m.Exchange()
}

// addOne adds a random command to the batch, on its own keys or on those of all mixers.
func (m *mixer) addOne() {
	if len(m.collections) > 0 && m.Rng.IntN(collectOneIn) == 0 && m.X.collects() {
		m.addCollected()
		return
	}
	mine := m.own[m.Rng.IntN(len(m.own))]
	m.selects(mine.Key)
	switch m.Rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		m.set(mine)
	case 6, 7, 8:
		m.Get(mine, true)
	case 9, 10, 11, 12:
		if h := m.X.Keys[m.Rng.IntN(len(m.X.Keys))]; m.selects(h.Key) {
			m.Get(h, false)
		}
	case 13:
		m.set(mine)
		m.set(mine)
		m.Get(mine, true)
	case 14:
		m.mset(m.some(m.own))
	case 15:
		if some := m.some(m.X.Keys); m.selects(some[0].Key) {
			m.mget(some)
		}
	case 16, 17:
		m.incr(&m.counter)
	case 18:
		if m.X.Deletes {
			m.del(mine)
		}
		m.echo()
	case 19:
		if m.Rng.IntN(4) == 0 { // each DBSIZE asks all nodes
			m.dbsize()
		}
		if m.X.Tables.atLevel(ring.DatabasesLevel) {
			m.absent(mine)
		}
		m.echo()
	}
}

// collectOneIn is how many commands contain one on a collection.
const collectOneIn = 5

// addCollected adds a random command on an own collection, or reads any.
func (m *mixer) addCollected() {
	m.X.collected.Add(1)
	m.selects(m.own[0].Key)
	switch n := m.Rng.IntN(25); {
	case n == 20 && len(m.bundles) > 0:
		m.bundle(m.bundles[m.Rng.IntN(len(m.bundles))])
	case n > 20 && n < 24 && len(m.transits) > 0:
		m.transit(m.transits[m.Rng.IntN(len(m.transits))])
	case n == 24 && len(m.X.Bundles) > 0 && m.Rng.IntN(2) == 0:
		if b := m.X.Bundles[m.Rng.IntN(len(m.X.Bundles))]; m.selects(b.h.Key) {
			m.readBundle(b, false)
		}
	case n == 24 && len(m.X.Transits) > 0:
		if t := m.X.Transits[m.Rng.IntN(len(m.X.Transits))]; (!t.isBig() || m.Rng.IntN(8) == 0) && m.selects(t.fills.Key) {
			m.readTransit(t, false)
		}
	case n < 4 && len(m.queues) > 0:
		m.queue(m.queues[m.Rng.IntN(len(m.queues))])
	case n == 4 && len(m.X.Queues) > 0:
		if q := m.X.Queues[m.Rng.IntN(len(m.X.Queues))]; m.selects(q.item.Key) {
			m.Range(q, false)
		}
	case n < 8 && len(m.X.Collections) > 0:
		if c := m.X.Collections[m.Rng.IntN(len(m.X.Collections))]; m.selects(c.Key) {
			m.element(c, m.Rng.IntN(len(c.Elements)), false)
		}
	case n < 10 && len(m.X.Collections) > 0:
		if c := m.X.Collections[m.Rng.IntN(len(m.X.Collections))]; (!c.isBig() || m.Rng.IntN(8) == 0) && m.selects(c.Key) {
			m.Whole(c, false)
		}
	default:
		m.collect(m.collections[m.Rng.IntN(len(m.collections))])
	}
}

// some returns two to six different keys of one database.
func (m *mixer) some(from []*History) []*History {
	chosen := make([]*History, 0, 6)
	n := 2 + m.Rng.IntN(5)
	for _, i := range m.Rng.Perm(len(from)) {
		if len(chosen) < n && (len(chosen) == 0 || databaseOf(from[i].Key) == databaseOf(chosen[0].Key)) {
			chosen = append(chosen, from[i])
		}
	}
	return chosen
}

// share lets all mixers read what one has.
func (x *Rig) share(m *mixer) {
	x.Collections, x.Queues = append(x.Collections, m.collections...), append(x.Queues, m.queues...)
	x.Bundles, x.Transits = append(x.Bundles, m.bundles...), append(x.Transits, m.transits...)
}

// readAll reads all keys once more through both proxies.
func (x *Rig) readAll() {
	for _, p := range x.C.ByRole("proxy") {
		s := x.NewSession(p, "last reader at "+p.ID)
		for _, h := range x.Keys {
			if s.selects(h.Key) {
				s.Get(h, false)
			}
		}
		if x.collects() {
			s.readCollected()
		}
		s.use(0)
		s.readFeeds()
		s.readJournals()
		s.Exchange()
	}
	x.judgeFeeds()
	x.judgeJournals()
	x.judgeChannels()
	x.judgeCopies()
	x.judgeLines()
}

// readCollected reads all that mixers have, but for their strings.
func (s *Session) readCollected() {
	for _, c := range s.X.Collections {
		if s.selects(c.Key) {
			s.Whole(c, false)
		}
	}
	for _, q := range s.X.Queues {
		if s.selects(q.item.Key) {
			s.Range(q, true)
		}
	}
	for _, b := range s.X.Bundles {
		if s.selects(b.h.Key) {
			s.readBundle(b, false)
		}
	}
	for _, t := range s.X.Transits {
		if s.selects(t.fills.Key) {
			s.readTransit(t, false)
		}
	}
}
