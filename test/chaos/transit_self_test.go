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

// serveTransit is a server of sets and of keys with one value, with one fault.
func serveTransit(t *testing.T, fault string) (addr string) {
	sets, values, writes := map[string][]string{}, map[string]string{}, 0
	var queue [][]string
	multi := false
	bulks := func(all []string) string {
		return string(resp.AppendBulkStrings(resp.AppendArray(nil, len(all)), all...))
	}
	bulk := func(key string) string {
		if v, is := values[key]; is {
			return string(resp.AppendBulkString(nil, v))
		}
		return "$-1\r\n"
	}
	take := func(key, token string) {
		sets[key] = slices.DeleteFunc(sets[key], func(s string) bool { return s == token })
	}
	execute := func(args []string) string {
		switch key := args[1]; args[0] {
		case "DEL":
			for _, key := range args[1:] {
				delete(sets, key)
				if fault != "keeps a hash" || !strings.HasSuffix(key, bundleHash) {
					delete(values, key)
				}
			}
			return ":1\r\n"
		case "SADD":
			sets[key] = append(sets[key], args[2:]...)
		case "SMOVE":
			take(key, args[3])
			take(args[2], args[3])
			if fault != "loses a token" {
				sets[args[2]] = append(sets[args[2]], args[3])
			}
			if fault == "doubles a token" {
				sets[key] = append(sets[key], args[3])
			}
			if fault == "loses all tokens" {
				clear(sets)
			}
		case "SMEMBERS":
			return bulks(sets[key])
		case "COPY":
			sets[args[2]] = slices.Clone(sets[key])
			if fault == "copies too little" {
				sets[args[2]] = sets[args[2]][1:]
			}
		case "DUMP":
			return string(resp.AppendBulkString(nil, strings.Join(sets[key], ",")))
		case "RESTORE":
			sets[key] = strings.Split(args[3], ",")
			if fault == "restores too little" {
				sets[key] = sets[key][1:]
			}
			return "+OK\r\n"
		case "SET":
			if values[key] = args[2]; fault == "loses a string" {
				delete(values, key)
			}
			return "+OK\r\n"
		case "HSET":
			values[key] = args[3]
		case "ZADD":
			if writes++; fault == "fails in the middle" && writes == 2 {
				return "-WRONGTYPE\r\n"
			}
			if fault != "forgets a write" || writes == 1 {
				values[key] = args[2]
			}
		case "RPUSH":
			values[key] = args[2]
		case "GET", "HGET", "ZSCORE":
			return bulk(key)
		case "LRANGE":
			if v, is := values[key]; is {
				return bulks([]string{v})
			}
			return bulks(nil)
		}
		return ":1\r\n"
	}
	return harness.ServeLines(t, func(said string) (reply string, closes bool) {
		args := strings.Fields(strings.Trim(said, "[]"))
		switch {
		case args[0] == "ECHO":
			return string(resp.AppendBulkString(nil, args[1])), true
		case args[0] == "MULTI":
			multi = true
			return "+OK\r\n", false
		case args[0] == "EXEC":
			reply = fmt.Sprintf("*%d\r\n", len(queue))
			for _, args := range queue {
				reply += execute(args)
			}
			multi, queue = false, nil
			return reply, false
		case multi:
			queue = append(queue, slices.Clone(args))
			return "+QUEUED\r\n", false
		}
		return execute(args), false
	})
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
}
