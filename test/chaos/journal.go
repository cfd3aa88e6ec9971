package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Journal is a stream that sessions append numbered entries to, and the consumers of one group read:
//
//	XADD 7 ─▶ journal ─▶ XREADGROUP of one key, or of keys of three slots: 7 is pending for this consumer
//	                     XACK and XDEL in one transaction: 7 is done
//	                  └▶ a consumer that reads its history has again what it did not finish, and nothing else
//
// Each entry is delivered to one consumer, and none is lost: a consumer whose reply was lost with a
// pipe finds the entry in its history. A fault may undo what was done just before (lossLimit).
type Journal struct{ ledger }

// journaling is the journals that some sessions share.
type journaling struct {
	sharing[*Journal]
	delivered, again, lost int // entries: by reads of new ones, by histories
}

const (
	journalGroup = "group"
	// writersPerProxy append to the journals, and consumersPerProxy read them.
	writersPerProxy, consumersPerProxy = 1, 2
	// journalAhead is how many entries a journal has at most that are not done.
	journalAhead = 200
	// mostDelivered is how many entries a command delivers.
	mostDelivered = 4
)

func newJournal(key string) *Journal { return &Journal{newLedger(key)} }

// startJournals has sessions write and read journals, as soon as the cluster's level allows that.
func (x *Rig) startJournals() {
	g := &journaling{sharing: sharing[*Journal]{x: x, level: ring.StreamsLevel, kind: "journal", make: newJournal}}
	x.journaling = g
	g.start(writersPerProxy, "journalist", g.write, 10*time.Millisecond)
	g.start(consumersPerProxy, "consumer", g.read, 4*time.Millisecond)
}

// write appends some entries to a journal.
func (g *journaling) write(s *Session, all []*Journal) bool {
	j := all[s.Rng.IntN(len(all))]
	if j.isFull(journalAhead) {
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
	if string(reply) == "*-1\r\n" || !g.isCurrent(all) {
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
		g.note(func() {
			if history {
				g.again++
			} else {
				g.delivered++
			}
		})
	}
	return got
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
	switch {
	case !e.over.IsZero():
		lost = j.undone(e, e.over, now, shown.text+" is there, though it was deleted at "+Clock(e.over))
		e.over = time.Time{}
		j.open++
	case history && !e.taken.IsZero() && e.by != by:
		lost = j.undone(e, e.taken, now, fmt.Sprintf("%s is pending for %s, though %s got it at %s", shown.text, by, e.by, Clock(e.taken)))
	case !history && !e.taken.IsZero():
		lost = j.undone(e, e.taken, now, fmt.Sprintf("%s is delivered to %s, though %s got it at %s", shown.text, by, e.by, Clock(e.taken)))
	}
	e.by, e.asked, e.taken, e.finishing = by, asked, now, false
	j.forget(now)
	return lost, nil
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
		if e, err := j.find(shown.text); err == nil && e.over.IsZero() {
			e.over = now
			j.open--
		}
	}
}

// readJournals reads what is left in the journals.
func (s *Session) readJournals() {
	if s.X.journaling == nil || !s.X.journaling.isReady() {
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
	if e.left = true; e.over.IsZero() {
		return nil, nil
	}
	return j.undone(e, e.over, now, text+" is there, though it was deleted at "+Clock(e.over)), nil
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
