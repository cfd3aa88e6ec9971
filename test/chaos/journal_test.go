package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestChaosJournalsNotice checks what is noticed of a journal.
func TestChaosJournalsNotice(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	j := newJournal("k")
	var texts []string
	for range 5 {
		_, text := j.fresh()
		texts = append(texts, text)
	}
	for n := range int64(3) {
		j.answered(n+1, Executed)
	}
	j.answered(4, notExecuted)
	took := func(text, by string, history bool, wrong string, lost bool) {
		t.Helper()
		gone, err := j.take(shownEntry{j, "1-1", text}, by, at(1), at(2), history)
		if wrong != "" && (err == nil || err.Error() != wrong) || wrong == "" && err != nil || (gone != nil) != lost {
			t.Errorf("%q for %s: %v, %v; want %q", text, by, gone, err, wrong)
		}
	}
	took(texts[0], "a", false, "", false)
	took(texts[0], "a", true, "", false) // it is pending until it is done
	took(texts[0], "b", false, "", true) // to be judged by deaths
	took(texts[0], "a", true, "", true)  // pending for another one
	took(texts[1], "b", true, "", false) // the reply that brought it was lost
	took(texts[3], "a", false, "k=4 shows, though its command was not executed", false)
	took(texts[4], "a", false, "", false) // nobody knows whether it was added
	took("k=6", "a", false, "k=6 was never sent", false)
	took("other=1", "a", false, `k has "other=1", which is no item of it`, false)

	first := []shownEntry{{j, "1-1", texts[0]}}
	j.finishing(first, true)
	j.finished(first, at(3))
	took(texts[0], "a", true, "", true) // it was deleted
	if lost := j.missing(at(4)); len(lost) != 3 {
		t.Errorf("missing: %v, want all that were acknowledged and are not done", lost)
	}
	j.finishing(first, true) // it may be done
	if gone, err := j.remains(texts[1], at(4)); gone != nil || err != nil {
		t.Errorf("an entry that is pending remains: %v, %v", gone, err)
	}
	if lost := j.missing(at(4)); len(lost) != 1 || lost[0].what != "k=3 is lost" {
		t.Errorf("missing: %v", lost)
	}
	j.finished([]shownEntry{{j, "1-3", texts[2]}}, at(3))
	if gone, err := j.remains(texts[2], at(4)); gone == nil || err != nil {
		t.Errorf("an entry that is done remains: %v, %v", gone, err)
	}
}

// TestChaosJournalsAreForgotten: what was done long ago is not remembered, and not believed again.
func TestChaosJournalsAreForgotten(t *testing.T) {
	j := newJournal("k")
	_, open := j.fresh()
	for range keptItems {
		n, text := j.fresh()
		j.answered(n, Executed)
		j.finished([]shownEntry{{j, "1-1", text}}, time.Now())
	}
	if j.isFull(journalAhead) {
		t.Error("done entries fill the journal")
	}
	if j.forget(time.Now().Add(2 * keptTime)); len(j.items) != 1 {
		t.Errorf("%d entries are kept, want the one that is not done", len(j.items))
	}
	if _, err := j.take(shownEntry{j, "1-1", open}, "a", time.Now(), time.Now(), false); err != nil {
		t.Error(err)
	}
	if _, err := j.take(shownEntry{j, "1-1", "k=2"}, "a", time.Now(), time.Now(), false); err == nil {
		t.Error("an entry that was done long ago is believed")
	}
}

// TestChaosJournalsDecode checks the replies that are understood.
func TestChaosJournalsDecode(t *testing.T) {
	all := []*Journal{newJournal("a"), newJournal("b")}
	f := func(want, reply string) {
		t.Helper()
		got, err := shownEntries(all, []byte(strings.ReplaceAll(reply, " ", "\r\n")+"\r\n"))
		text := ""
		for _, e := range got {
			text += e.of.key + " " + e.id + " " + e.text + ","
		}
		if want != text || err != nil != (want == "") {
			t.Errorf("%s: %s, %v; want %s", reply, text, err, want)
		}
	}
	const one, two = "*2 $3 1-1 *2 $1 n $1 x ", "*2 $4 1-10 *2 $1 n $1 y "
	f("a 1-1 x,a 1-10 y,b 1-1 x,", "*2 *2 $1 a *2 "+one+two+"*2 $1 b *1 "+strings.TrimSpace(one))
	f("", "*1 *2 $1 a *2 "+two+strings.TrimSpace(one)) // not in order
	f("", "*1 *2 $1 c *1 "+strings.TrimSpace(one))     // of no journal
	f("", "*1 *2 $1 a *1 *2 $3 1-1 *-1")               // deleted, and pending
}
