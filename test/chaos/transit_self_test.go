package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestCheckNoticesTransits checks that the checker's sessions notice elements that were lost or
// doubled on their way, and what is seen of the middle of a transaction.
func TestCheckNoticesTransits(t *testing.T) {
	t.Parallel()
	f := func(fault, wrong string) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}, Tables: &tableWatch{}}
		l, err := harness.DialLink(serveTransit(t, fault))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
		b, c := NewBundle("b"), NewTransit(setTransit, "t", 4, 0)
		s.writeBundle(b)
		s.writeBundle(b)
		s.readBundle(b, true)
		s.fill(c)
		for range 3 {
			s.move(c)
			s.readTransit(c, true)
		}
		s.copyTransit(c)
		s.dumpTransit(c)
		if !s.Exchange() {
			return
		}
		s.restore(c)
		s.readTransit(c, true)
		s.dropBundle(b)
		s.readBundle(b, true)
		s.Add(func([]byte) {}, "ECHO", "last")
		s.Exchange()
		found := fmt.Sprint(x.violations, x.Absences, x.miscounts, x.tooLate)
		if wrong == "" && found != "[] [] [] []" || !strings.Contains(found, wrong) {
			t.Errorf("%s: found %.300s, want %q", fault, found, wrong)
		}
	}
	f("no fault", "")
	f("loses a token", "3 of 4 tokens")
	f("doubles a token", "shows twice")
	f("loses all tokens", "{t} is missing")
	f("copies too little", "COPY of {t}a")
	f("restores too little", "RESTORE of {t}d")
	f("loses a string", "show writes [\"\" \"2\"")
	f("forgets a write", "the middle of a transaction")
	f("keeps a hash", "the middle of a transaction")
	f("fails in the middle", "a part of the transaction")
}

// transitServer is a server of sets and of keys with one value, with one fault.
type transitServer struct {
	fault  string
	sets   map[string][]string
	values map[string]string
	writes int
	multi  bool
	queue  [][]string
}

func serveTransit(t *testing.T, fault string) (addr string) {
	s := &transitServer{fault: fault, sets: map[string][]string{}, values: map[string]string{}}
	return harness.ServeLines(t, s.answer)
}

func (s *transitServer) answer(said string) (reply string, closes bool) {
	args := strings.Fields(strings.Trim(said, "[]"))
	switch {
	case args[0] == "ECHO":
		return string(resp.AppendBulkString(nil, args[1])), true
	case args[0] == "MULTI":
		s.multi = true
		return "+OK\r\n", false
	case args[0] == "EXEC":
		reply = fmt.Sprintf("*%d\r\n", len(s.queue))
		for _, args := range s.queue {
			reply += s.execute(args)
		}
		s.multi, s.queue = false, nil
		return reply, false
	case s.multi:
		s.queue = append(s.queue, slices.Clone(args))
		return "+QUEUED\r\n", false
	}
	return s.execute(args), false
}

func (s *transitServer) execute(args []string) (reply string) {
	switch args[0] {
	case "SADD", "SMOVE", "SMEMBERS", "COPY", "DUMP", "RESTORE":
		return s.onSets(args)
	case "DEL":
		for _, key := range args[1:] {
			delete(s.sets, key)
			if s.fault != "keeps a hash" || !strings.HasSuffix(key, bundleHash) {
				delete(s.values, key)
			}
		}
		return ":1\r\n"
	}
	return s.onValues(args)
}

func (s *transitServer) onSets(args []string) (reply string) {
	switch key := args[1]; args[0] {
	case "SADD":
		s.sets[key] = append(s.sets[key], args[2:]...)
	case "SMOVE":
		s.take(key, args[3])
		s.take(args[2], args[3])
		if s.fault != "loses a token" {
			s.sets[args[2]] = append(s.sets[args[2]], args[3])
		}
		if s.fault == "doubles a token" {
			s.sets[key] = append(s.sets[key], args[3])
		}
		if s.fault == "loses all tokens" {
			clear(s.sets)
		}
	case "SMEMBERS":
		return bulks(s.sets[key])
	case "COPY":
		s.sets[args[2]] = slices.Clone(s.sets[key])
		if s.fault == "copies too little" {
			s.sets[args[2]] = s.sets[args[2]][1:]
		}
	case "DUMP":
		return string(resp.AppendBulkString(nil, strings.Join(s.sets[key], ",")))
	case "RESTORE":
		s.sets[key] = strings.Split(args[3], ",")
		if s.fault == "restores too little" {
			s.sets[key] = s.sets[key][1:]
		}
		return "+OK\r\n"
	}
	return ":1\r\n"
}

func (s *transitServer) take(key, token string) {
	s.sets[key] = slices.DeleteFunc(s.sets[key], func(one string) bool { return one == token })
}

func (s *transitServer) onValues(args []string) (reply string) {
	key := args[1]
	value, is := s.values[key]
	switch args[0] {
	case "SET":
		if s.values[key] = args[2]; s.fault == "loses a string" {
			delete(s.values, key)
		}
		return "+OK\r\n"
	case "HSET":
		s.values[key] = args[3]
	case "ZADD":
		if s.writes++; s.fault == "fails in the middle" && s.writes == 2 {
			return "-WRONGTYPE\r\n"
		}
		if s.fault != "forgets a write" || s.writes == 1 {
			s.values[key] = args[2]
		}
	case "RPUSH":
		s.values[key] = args[2]
	case "GET", "HGET", "ZSCORE":
		if !is {
			return "$-1\r\n"
		}
		return string(resp.AppendBulkString(nil, value))
	case "LRANGE":
		if !is {
			return bulks(nil)
		}
		return bulks([]string{value})
	}
	return ":1\r\n"
}

func bulks(all []string) string {
	return string(resp.AppendBulkStrings(resp.AppendArray(nil, len(all)), all...))
}

// TestCheckNoticesFading checks that a field which expires may be missing in time, not before, and that
// it does not show long after.
func TestCheckNoticesFading(t *testing.T) {
	begin := time.Unix(1000, 0)
	const dead = fieldLife + fieldLate + time.Second
	// f judges a read that is sent when so much time has passed since an element was written.
	f := func(after time.Duration, shows bool, wrong string, change func(h *History)) {
		t.Helper()
		h := NewHistory("k")
		seq := h.Write(begin)
		h.expires(seq, begin)
		h.answeredAt(seq, Executed, begin)
		if change != nil {
			change(h)
		}
		seen := h.Look()
		seen.at = begin.Add(after)
		var value []byte
		if shows {
			value = h.value(seq)
		}
		lost, err := h.read(seen, value, begin.Add(after))
		if found := fmt.Sprint(lost, err); wrong == "" && (lost != nil || err != nil) || !strings.Contains(found, wrong) {
			t.Errorf("after %v it shows %t: found %s, want %q", after, shows, found, wrong)
		}
	}
	f(time.Second, true, "", nil)
	f(time.Second, false, "k is missing", nil)
	f(fieldLife, true, "", nil)
	f(fieldLife, false, "", nil)
	f(dead, false, "", nil)
	f(dead, true, "long after it has expired", nil)
	f(dead, true, "", (*History).prolongs)
	f(time.Second, false, "k is missing", (*History).prolongs)
	f(time.Second, true, "", func(h *History) { h.shortens(begin.Add(-time.Hour)) })
	f(time.Second, false, "", func(h *History) { h.shortens(begin.Add(-time.Hour)) })
	h := NewHistory("k")
	seq := h.Write(begin)
	h.expires(seq, begin)
	h.Answered(seq, Executed)
	if _, must := h.presence(seq); must {
		t.Error("an element that has expired must be there")
	}
	if got := slices.Collect(maps.Keys(h.lives)); len(got) != 1 {
		t.Errorf("%d writes expire", len(got))
	}
	h = NewHistory("k")
	h.Answered(h.Write(begin), Executed)
	seq = h.Write(begin)
	h.Answered(seq, unknown)
	if lost, err := h.read(h.Look(), h.value(seq), begin); lost != nil || err != nil {
		t.Fatal(lost, err)
	}
	h.shortens(begin)
	if _, must := h.presence(seq); must {
		t.Error("an element that has expired must be there, because another session saw a write without an outcome")
	}
	h = NewHistory("k")
	h.Answered(h.Write(time.Now()), Executed)
	seq = h.Write(begin)
	h.expires(seq, begin)
	h.Answered(seq, unknown)
	if may, must := h.presence(seq); !may || must {
		t.Errorf("behind a write without an outcome that expired an element may be there: %t, must: %t", may, must)
	}
}
