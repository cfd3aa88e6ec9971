package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestCheckNoticesCollections checks that the checker's sessions notice each kind of wrong reply
// about a collection, of every kind. The server is a map that falsifies something.
func TestCheckNoticesCollections(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		// f plays a conversation with one fault. wrong begins what must be found.
		f := func(fault, wrong string) {
			t.Helper()
			x := &Rig{T: t, tolerated: map[string]int{}, Tables: &tableWatch{}}
			l, err := harness.DialLink(serveCollection(t, k, fault))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Conn.Close()
			s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
			c := NewCollection(k, "c", 4, brief)
			s.put(c, []int{0, 1, 2})
			s.put(c, []int{2, 3})
			s.length(c)
			s.Whole(c, true)
			if !s.Exchange() {
				return
			}
			s.dropSome(c, []int{0, 1})
			s.element(c, 2, true)
			s.Whole(c, true)
			s.dropAll(c)
			s.Whole(c, true)
			s.length(c)
			s.Add(func([]byte) {}, "ECHO", "last")
			s.Exchange()
			found := fmt.Sprint(x.violations, x.Absences, x.miscounts, x.tooLate)
			if wrong == "" && found != "[] [] [] []" || !strings.Contains(found, wrong) {
				t.Errorf("%s, %s: found %.300s, want %q", k.name, fault, found, wrong)
			}
		}
		f("no fault", "")
		f("loses an element", "c/2 is missing")
		f("keeps what is deleted", "twins show writes")
		f("deletes nothing", "older than write 2")
		f("adds a stranger", "is none of it")
		f("shows an element twice", "shows twice")
		f("counts one too many", "finds 5 elements of at most 4")
		f("counts one too few", "too few")
		f("says that old ones are new", "too few")
		f("says that new ones are old", "too many")
		if k.form != present {
			f("ignores a second write", "older than write 2")
			f("shows a write too many", "never sent")
		}
		if k.sorted != nil {
			f("sorts the wrong way", "follows")
		}
	}
}

// collectionServer is a server of one collection, with one fault.
type collectionServer struct {
	k     *kind
	fault string
	shows map[string]string
	order []string // of the elements' coming
}

func serveCollection(t *testing.T, k *kind, fault string) (addr string) {
	s := &collectionServer{k: k, fault: fault, shows: map[string]string{}}
	return harness.ServeLines(t, s.answer)
}

func (s *collectionServer) answer(said string) (reply string, closes bool) {
	args := strings.Fields(strings.Trim(said, "[]"))
	switch args[0] {
	case s.k.write:
		return s.put(args[2:]), false
	case s.k.drop:
		return s.drop(args[2:]), false
	case "DEL", "UNLINK":
		n := min(len(s.shows), 1)
		s.drop(slices.Clone(s.order))
		return fmt.Sprintf(":%d\r\n", n), false
	case s.k.length:
		return s.length(), false
	case s.k.whole[0]:
		return s.whole(), false
	case s.k.read:
		value, is := s.shows[args[2]]
		switch {
		case s.k.form == present:
			return fmt.Sprintf(":%d\r\n", min(len(value), 1)), false
		case !is:
			return "$-1\r\n", false
		}
		return string(resp.AppendBulkString(nil, value)), false
	}
	return string(resp.AppendBulkString(nil, args[1])), true // ECHO last
}

func (s *collectionServer) put(args []string) (reply string) {
	added := 0
	for step := map[form]int{brief: 2, score: 2, present: 1}[s.k.form]; len(args) > 0; args = args[step:] {
		name, value := args[0], args[step-1]
		if s.k.form == score {
			name, value = args[1], args[0]
		}
		old, is := s.shows[name]
		if !is {
			added++
			s.order = append(s.order, name)
		}
		if is && s.fault == "ignores a second write" {
			value = old
		}
		s.shows[name] = value
	}
	switch s.fault {
	case "says that old ones are new":
		added = 2
	case "says that new ones are old":
		added = 0
	}
	return fmt.Sprintf(":%d\r\n", added)
}

func (s *collectionServer) drop(names []string) (reply string) {
	dropped := 0
	for i, name := range names {
		if _, is := s.shows[name]; is {
			dropped++
		}
		if s.fault != "deletes nothing" && (s.fault != "keeps what is deleted" || i == 0) {
			delete(s.shows, name)
		}
	}
	s.order = slices.DeleteFunc(s.order, func(name string) bool { _, is := s.shows[name]; return !is })
	return fmt.Sprintf(":%d\r\n", dropped)
}

func (s *collectionServer) whole() (reply string) {
	names := slices.Clone(s.order)
	if s.k.sorted != nil {
		slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(s.shows[a], s.shows[b]) })
		if s.fault == "sorts the wrong way" {
			slices.Reverse(names)
		}
	}
	if s.fault == "shows an element twice" {
		names = append(names, names...)
	}
	if s.fault == "loses an element" {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "2" })
	}
	var texts []string
	for _, name := range names {
		texts = append(texts, name)
		switch {
		case s.k.pairs && s.fault == "shows a write too many" && s.k.form == brief:
			texts = append(texts, string((&History{Key: "c/" + name, form: brief}).value(9)))
		case s.k.pairs && s.fault == "shows a write too many":
			texts = append(texts, "9")
		case s.k.pairs:
			texts = append(texts, s.shows[name])
		}
	}
	if s.fault == "adds a stranger" {
		texts = append(texts, "stranger", "1")
	}
	return bulks(texts)
}

func (s *collectionServer) length() (reply string) {
	switch s.fault {
	case "counts one too many":
		return ":5\r\n"
	case "counts one too few":
		return ":3\r\n"
	}
	return fmt.Sprintf(":%d\r\n", len(s.shows))
}

// TestCheckNoticesQueues checks that the checker's sessions notice each kind of wrong reply about a
// list.
func TestCheckNoticesQueues(t *testing.T) {
	t.Parallel()
	f := func(fault, wrong string) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}, Tables: &tableWatch{}}
		l, err := harness.DialLink(serveQueue(t, fault))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
		q := NewQueue("q", brief, 10)
		for range 3 {
			s.push(q, s.Rng)
			s.Range(q, true)
			if !s.Exchange() {
				return
			}
		}
		s.pop(q, 2)
		s.push(q, s.Rng)
		s.pop(q, 1)
		s.Add(func([]byte) {}, "ECHO", "again")
		if !s.Exchange() {
			return
		}
		s.Range(q, true)
		s.Add(func([]byte) {}, "ECHO", "last")
		s.Exchange()
		found := fmt.Sprint(x.violations, x.Absences, x.tooLate)
		if wrong == "" && found != "[] [] []" || !strings.Contains(found, wrong) {
			t.Errorf("%s: found %.300s, want %q", fault, found, wrong)
		}
	}
	f("no fault", "")
	f("ignores a push", "LRANGE q answers 0 items, the first missing is 1")
	f("counts wrong", "RPUSH q answers 99, want")
	f("appends twice", "has item 1 behind")
	f("has a hole", "LRANGE q answers item")
	f("takes from the tail", "LPOP q answers item")
	f("takes nothing", "RPUSH q answers 15, want 13")
	f("turns back", "LRANGE q answers item 1 in place of")
	f("loses the tail", "the first missing is")
	f("loses all", "LRANGE q answers 0 items")
}

// TestCheckJudgesLostTails checks that a death explains a lost tail that was read only after a pop,
// which showed the head alone, and none that a later read had shown.
func TestCheckJudgesLostTails(t *testing.T) {
	t.Parallel()
	f := func(readBetween, explained bool) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}, losses: map[string]int{}, Options: Options{Copies: 2}}
		x.Tables = &tableWatch{seen: map[ring.Version]time.Time{}}
		x.Tables.note(&ring.Table{Epoch: 1, Issuer: "n1", Nodes: []ring.Member{{ID: "n1"}}}, time.Now().Add(-time.Minute))
		l, err := harness.DialLink(serveQueue(t, "loses the tail"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
		q := NewQueue("q", brief, 10)
		for len(q.items) < 3 {
			s.push(q, s.Rng)
			s.Exchange()
		}
		x.dies(&harness.Member{ID: "n1"}, func() {})
		if readBetween {
			s.Range(q, true)
			s.Exchange()
		}
		s.Add(func([]byte) {}, "ECHO", "lose")
		s.pop(q, 1)
		s.Range(q, true)
		s.Exchange()
		if len(x.violations) > 0 || len(x.Absences) != 1 {
			t.Fatalf("a lost tail: violations %q, absences %v, want one absence", x.violations, x.Absences)
		}
		if err := x.judge(x.Absences[0]); (err == nil) != explained {
			t.Errorf("a lost tail, read between %v: %v, explained by the death: %v", readBetween, err, explained)
		}
	}
	f(false, true)
	f(true, false)
}

// serveQueue is a server of one list, with one fault.
func serveQueue(t *testing.T, fault string) (addr string) {
	var items, before []string
	return harness.ServeLines(t, func(said string) (reply string, closes bool) {
		args := strings.Fields(strings.Trim(said, "[]"))
		switch args[0] {
		case "RPUSH":
			items = append(items, args[2:]...)
			if before == nil {
				before = slices.Clone(items)
			}
			n := len(items)
			switch fault {
			case "ignores a push":
				items = nil
			case "counts wrong":
				n = 99
			case "appends twice":
				items = append(items, args[2:]...)
			}
			return fmt.Sprintf(":%d\r\n", n), false
		case "LPOP":
			var n int
			_, _ = fmt.Sscan(args[2], &n)
			n = min(n, len(items))
			taken := slices.Clone(items[:n])
			switch fault {
			case "takes nothing":
			case "takes from the tail":
				taken, items = slices.Clone(items[len(items)-n:]), items[:len(items)-n]
			default:
				items = items[n:]
			}
			return string(resp.AppendBulkStrings(resp.AppendArray(nil, len(taken)), taken...)), false
		case "LRANGE":
			shown := slices.Clone(items)
			if fault == "has a hole" && len(shown) > 2 {
				shown = slices.Delete(shown, 1, 2)
			}
			return string(resp.AppendBulkStrings(resp.AppendArray(nil, len(shown)), shown...)), false
		}
		switch fault {
		case "turns back":
			items = before
		case "loses the tail":
			items = items[:2]
		case "loses all":
			items = nil
		}
		return string(resp.AppendBulkString(nil, args[1])), args[1] == "last"
	})
}
