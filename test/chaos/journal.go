package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Journal is a stream that sessions append numbered entries to, and the consumers of one group read:
//
//	XADD 7 ─▶ journal ─▶ XREADGROUP of one key, or of keys of three slots: 7 is pending for this consumer
//	                     XACK and XDEL in one transaction: 7 is done
//	                  └▶ a consumer that reads its history has again what it did not finish, and nothing else
//
// Each entry is delivered to one consumer, and none is lost: a consumer whose reply was lost with a
// pipe finds the entry in its history. A fault may undo what was done just before (lossLimit).
type Journal struct {
	key       string
	partition uint16

	mu      sync.Mutex
	next    int64            // number of the next entry
	entries map[int64]*entry // all but those that were done long ago
	open    int              // entries that are not done
	forgot  time.Time        // when some were dropped last
}

// entry is what is known of one. Times that are zero have not come yet.
type entry struct {
	sent, acked  time.Time
	asked, taken time.Time // when the command was sent that delivered it, and when its reply came
	by           string    // the consumer to whom it was delivered
	done         time.Time // when its deletion was acknowledged
	finishing    bool      // its deletion was sent, and may have been executed
	refused      bool      // it was not added
	left         bool      // the last read has shown it
}

// journaling is the journals that some sessions share. After a division they are new ones.
type journaling struct {
	x   *Rig
	mu  sync.Mutex
	era uint64
	all []*Journal

	delivered, again, lost int // entries: by reads of new ones, by histories
}

const (
	journals     = 3
	journalGroup = "group"
	// writersPerProxy append to the journals, and consumersPerProxy read them.
	writersPerProxy, consumersPerProxy = 1, 2
	// journalAhead is how many entries a journal has at most that are not done.
	journalAhead = 200
	// mostDelivered is how many entries a command delivers.
	mostDelivered = 4
)

func newJournal(key string) *Journal {
	return &Journal{key: key, partition: ring.PartitionOf([]byte(key)), next: 1, entries: map[int64]*entry{}}
}

// startJournals has sessions write and read journals, as soon as the cluster's level allows that.
func (x *Rig) startJournals() {
	g := &journaling{x: x}
	g.renew()
	x.journaling = g
	for _, p := range x.C.ByRole("proxy") {
		for i := range writersPerProxy {
			s := x.NewSession(p, fmt.Sprintf("journalist %d at %s", i, p.ID))
			x.Running.Go(func() { g.run(s, g.write, 10*time.Millisecond) })
		}
		for i := range consumersPerProxy {
			s := x.NewSession(p, fmt.Sprintf("consumer-%d-at-%s", i, p.ID))
			x.Running.Go(func() { g.run(s, g.read, 4*time.Millisecond) })
		}
	}
}

// renew makes new journals.
func (g *journaling) renew() {
	g.all = nil
	for i := range journals {
		g.all = append(g.all, newJournal(fmt.Sprintf("journal:%d:%d", g.era, i)))
	}
}

// current returns the journals, none while the cluster is divided.
func (g *journaling) current() []*Journal {
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
func (g *journaling) run(s *Session, do func(*Session, []*Journal) bool, rest time.Duration) {
	defer func() { s.Link.Conn.Close() }()
	for !g.x.Stopped() {
		ok := g.x.Unpaused(func() bool {
			all := g.current()
			return all == nil || !g.x.Tables.atLevel(ring.StreamsLevel) || do(s, all)
		})
		if !ok {
			return
		}
		harness.SleepUpTo(rest, s.Rng)
	}
}

// write appends some entries to a journal.
func (g *journaling) write(s *Session, all []*Journal) bool {
	j := all[s.Rng.IntN(len(all))]
	if j.isFull() {
		return true
	}
	s.createGroup(j)
	for range 1 + s.Rng.IntN(3) {
		n, text := j.fresh()
		s.Add(func(reply []byte) {
			o := Executed
			if id, ok := resp.DecodeBulk(reply); !ok || !strings.Contains(string(id), "-") {
				o = s.X.Outcome(s, reply, "")
			}
			j.answered(n, o)
		}, "XADD", j.key, "*", "n", text)
	}
	return s.Exchange()
}

// createGroup makes the group of a journal, which may be lost with it.
func (s *Session) createGroup(j *Journal) {
	s.Add(func(reply []byte) {
		if string(reply) != "+OK\r\n" && !strings.HasPrefix(string(reply), "-BUSYGROUP ") {
			s.X.Outcome(s, reply, "")
		}
	}, "XGROUP", "CREATE", j.key, journalGroup, "0", "MKSTREAM")
}

// fresh returns an entry that is about to be sent.
func (j *Journal) fresh() (n int64, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = j.next
	j.entries[n] = &entry{sent: time.Now()}
	j.open++
	j.next++
	return n, j.key + "=" + strconv.FormatInt(n, 10)
}

// answered notes the outcome of an XADD.
func (j *Journal) answered(n int64, o outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch e := j.entries[n]; {
	case e == nil: // it is done, and was so long ago
	case o == Executed:
		e.acked = time.Now()
	case o == notExecuted:
		e.refused = true
		j.open--
	}
}

// isFull reports whether the journal has enough entries.
func (j *Journal) isFull() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open > journalAhead
}

// read reads new entries, or the history of the consumer, and finishes most of what it gets.
func (g *journaling) read(s *Session, all []*Journal) bool {
	args := []string{"XREADGROUP", "GROUP", journalGroup, s.name, "COUNT", strconv.Itoa(mostDelivered)}
	history := s.Rng.IntN(4) == 0
	some, from := all, ">"
	if i := s.Rng.IntN(2 * len(all)); i < len(all) {
		some = all[i : i+1]
	}
	if history {
		from = "0"
	} else {
		args = append(args, "BLOCK", []string{"20", "200"}[s.Rng.IntN(2)])
	}
	args = append(args, "STREAMS")
	for _, j := range some {
		args = append(args, j.key)
	}
	for range some {
		args = append(args, from)
	}
	asked := time.Now()
	var got []shownEntry
	s.Add(func(reply []byte) {
		switch {
		case strings.HasPrefix(string(reply), "-NOGROUP "): // nobody has written yet, or it is lost
		case resp.IsError(reply):
			g.x.Outcome(s, reply, "")
		default:
			got = g.takes(s, all, asked, reply, history)
		}
	}, args...)
	if !s.Exchange() {
		return false
	}
	return len(got) == 0 || s.Rng.IntN(4) == 0 || g.finish(s, got)
}

// shownEntry is an entry as a reply shows it.
type shownEntry struct {
	of       *Journal
	id, text string
}

// takes judges the reply to a read that was sent when asked, and returns the entries.
func (g *journaling) takes(s *Session, all []*Journal, asked time.Time, reply []byte, history bool) []shownEntry {
	if string(reply) == "*-1\r\n" || g.current0() != all[0] {
		return nil
	}
	got, err := shownEntries(all, reply)
	if err != nil {
		g.x.Violate("%s: XREADGROUP answers %.120q: %v", s.name, reply, err)
		return nil
	}
	for _, e := range got {
		lost, err := e.of.take(e, s.name, asked, time.Now(), history)
		g.x.judged(s.name, lost, err)
		g.mu.Lock()
		if history {
			g.again++
		} else {
			g.delivered++
		}
		g.mu.Unlock()
	}
	return got
}

// current0 is the first of the current journals, nil if there are none.
func (g *journaling) current0() *Journal {
	if all := g.current(); all != nil {
		return all[0]
	}
	return nil
}

// shownEntries decodes streams with their entries, of one field each. IDs rise within a stream.
func shownEntries(all []*Journal, reply []byte) (got []shownEntry, err error) {
	texts, err := flat(reply)
	if err != nil {
		return nil, err
	}
	var of *Journal
	for i := 0; i < len(texts); {
		if j := journalOf(all, string(texts[i])); j != nil {
			of, i = j, i+1
			continue
		}
		if of == nil || i+3 > len(texts) || string(texts[i+1]) != "n" {
			return nil, fmt.Errorf("%.60q is no entry of a journal", texts[i])
		}
		e := shownEntry{of, string(texts[i]), string(texts[i+2])}
		if last := len(got) - 1; last >= 0 && got[last].of == of && !idLess(got[last].id, e.id) {
			return nil, fmt.Errorf("%s stands behind %s", e.id, got[last].id)
		}
		got, i = append(got, e), i+3
	}
	return got, nil
}

func journalOf(all []*Journal, key string) *Journal {
	for _, j := range all {
		if j.key == key {
			return j
		}
	}
	return nil
}

// idLess reports whether an ID is lower than another one.
func idLess(a, b string) bool {
	parse := func(id string) (ms, seq uint64) {
		first, second, _ := strings.Cut(id, "-")
		ms, _ = strconv.ParseUint(first, 10, 64)
		seq, _ = strconv.ParseUint(second, 10, 64)
		return ms, seq
	}
	ms, seq := parse(a)
	otherMs, otherSeq := parse(b)
	return ms < otherMs || ms == otherMs && seq < otherSeq
}

// take notes that a consumer was sent an entry: a new one, or one of its history. It returns what was lost if that
// cannot be otherwise.
func (j *Journal) take(shown shownEntry, by string, asked, now time.Time, history bool) (lost *absence, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.find(shown.text)
	if err != nil {
		return nil, err
	}
	undone := func(since, acked time.Time, what string) *absence {
		return &absence{key: j.key, partition: j.partition, from: since, to: now, lost: 1, acked: acked, shown: 1, what: what}
	}
	switch {
	case !e.done.IsZero():
		lost = undone(e.asked, e.done, shown.text+" is there, though it was deleted at "+Clock(e.done))
		e.done = time.Time{}
		j.open++
	case history && !e.taken.IsZero() && e.by != by:
		lost = undone(e.asked, e.taken, fmt.Sprintf("%s is pending for %s, though %s got it at %s", shown.text, by, e.by, Clock(e.taken)))
	case !history && !e.taken.IsZero():
		lost = undone(e.asked, e.taken, fmt.Sprintf("%s is delivered to %s, though %s got it at %s", shown.text, by, e.by, Clock(e.taken)))
	}
	e.by, e.asked, e.taken, e.finishing = by, asked, now, false
	j.forget(now)
	return lost, nil
}

// find returns the entry that a reply shows.
func (j *Journal) find(text string) (*entry, error) {
	number, ok := strings.CutPrefix(text, j.key+"=")
	n, err := strconv.ParseInt(number, 10, 64)
	switch e := j.entries[n]; {
	case !ok || err != nil:
		return nil, fmt.Errorf("%s has %.80q, which is no entry of it", j.key, text)
	case n < 1 || n >= j.next:
		return nil, fmt.Errorf("%s was never sent", text)
	case e == nil:
		return nil, fmt.Errorf("%s was done more than %v ago", text, keptTime)
	case e.refused:
		return nil, fmt.Errorf("%s shows, though its XADD was not executed", text)
	default:
		return e, nil
	}
}

// finish acknowledges and deletes entries, those of each journal in one transaction.
func (g *journaling) finish(s *Session, got []shownEntry) bool {
	for len(got) > 0 {
		of, n := got[0].of, 1
		for n < len(got) && got[n].of == of {
			n++
		}
		ack, del := []string{"XACK", of.key, journalGroup}, []string{"XDEL", of.key}
		for _, e := range got[:n] {
			ack, del = append(ack, e.id), append(del, e.id)
		}
		some := got[:n]
		of.finishing(some, true)
		s.execute(func(parts [][]byte, o outcome) {
			switch {
			case o == notExecuted:
				of.finishing(some, false)
			case o == Executed && string(parts[1]) == ":"+strconv.Itoa(len(some))+"\r\n":
				of.finished(some, time.Now())
			}
		}, ack, del)
		got = got[n:]
	}
	return s.Exchange()
}

// finishing notes whether the deletion of entries is on its way.
func (j *Journal) finishing(all []shownEntry, are bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, shown := range all {
		if e, err := j.find(shown.text); err == nil {
			e.finishing = are
		}
	}
}

// finished notes that entries are done.
func (j *Journal) finished(all []shownEntry, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, shown := range all {
		if e, err := j.find(shown.text); err == nil && e.done.IsZero() {
			e.done = now
			j.open--
		}
	}
}

// forget drops what was done or refused long ago, in rounds: keptItems are sent in about keptTime.
func (j *Journal) forget(now time.Time) {
	if len(j.entries) < keptItems || now.Before(j.forgot.Add(keptTime/4)) {
		return
	}
	j.forgot = now
	for n, e := range j.entries {
		if (e.refused || !e.done.IsZero()) && now.Sub(e.sent) > keptTime && now.Sub(e.done) > keptTime {
			delete(j.entries, n)
		}
	}
}

// readJournals reads what is left in the journals.
func (s *Session) readJournals() {
	if s.X.journaling == nil || !s.X.Tables.atLevel(ring.StreamsLevel) {
		return
	}
	for _, j := range s.X.journaling.current() {
		s.Add(func(reply []byte) {
			if resp.IsError(reply) {
				s.X.Outcome(s, reply, "")
				return
			}
			texts, err := flat(reply)
			if err != nil || len(texts)%3 != 0 {
				s.X.Violate("%s: XRANGE %s answers %.120q: %v", s.name, j.key, reply, err)
				return
			}
			for i := 0; i < len(texts); i += 3 {
				lost, err := j.remains(string(texts[i+2]), time.Now())
				s.X.judged(s.name, lost, err)
			}
		}, "XRANGE", j.key, "-", "+")
	}
}

// remains notes that an entry is in the stream when all clients have stopped.
func (j *Journal) remains(text string, now time.Time) (lost *absence, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.find(text)
	if err != nil {
		return nil, err
	}
	if e.left = true; e.done.IsZero() {
		return nil, nil
	}
	return &absence{
		key: j.key, partition: j.partition, from: e.asked, to: now, lost: 1, acked: e.done, shown: 1,
		what: text + " is there, though it was deleted at " + Clock(e.done),
	}, nil
}

// judgeJournals judges what is neither done nor there, once the journals were read.
func (x *Rig) judgeJournals() {
	g := x.journaling
	if g == nil || x.Evicts {
		return
	}
	for _, j := range g.current() {
		for _, a := range j.missing(time.Now()) {
			x.judged("the journals' judge", &a, nil)
			g.lost++
		}
	}
	x.T.Logf("journals: %d entries were delivered, %d again by histories; %d are lost", g.delivered, g.again, g.lost)
}

// missing returns the entries that were added, are not done, and are not there.
func (j *Journal) missing(now time.Time) (all []absence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for n, e := range j.entries {
		if !e.acked.IsZero() && e.done.IsZero() && !e.left && !e.finishing {
			all = append(all, absence{
				key: j.key, partition: j.partition, from: e.sent, to: now, lost: 1, acked: e.acked,
				what: fmt.Sprintf("%s=%d is lost", j.key, n),
			})
		}
	}
	return all
}
