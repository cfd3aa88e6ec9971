package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// hidden returns the number of a write that a later one of its transaction replaces. No other
// session may ever see it.
func (h *History) hidden(now time.Time) (seq uint64) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	seq = h.issueLocked(now)
	h.refused[seq] = true
	return seq
}

// transact changes an own key twice in one transaction, which shows itself the first value, and
// others the second one only. With WATCH it is executed unless the key has changed since; only this
// session changes it, by a write between if it interferes.
func (d *diver) transact(h *History, watched, interferes bool) {
	changed := notExecuted // the watched key
	if watched {
		d.Add(func(reply []byte) { d.X.Outcome(d.Session, reply, "+OK\r\n") }, "WATCH", h.Key)
		if interferes {
			seq := h.Write(time.Now())
			d.Add(func(reply []byte) {
				changed = d.X.Outcome(d.Session, reply, "+OK\r\n")
				h.Answered(seq, changed)
			}, "SET", h.Key, string(AppendValue(nil, h.Key, seq)))
		}
	}
	now := time.Now()
	first, last := h.hidden(now), h.Write(now)
	value := AppendValue(nil, h.Key, first)
	d.exactly("+OK\r\n", "MULTI")
	for _, args := range [][]string{
		{"SET", h.Key, string(value)}, {"GET", h.Key}, {"STRLEN", h.Key}, {"SET", h.Key, string(AppendValue(nil, h.Key, last))},
	} {
		d.exactly("+QUEUED\r\n", args...)
	}
	want := append([]byte("*4\r\n+OK\r\n"), resp.AppendBulk(nil, value)...)
	want = append(resp.AppendInt(want, int64(len(value))), "+OK\r\n"...)
	d.Add(func(reply []byte) {
		o := Executed
		switch {
		case bytes.Equal(reply, want):
			if changed == Executed {
				d.X.Violate("%s: EXEC executes though %s has changed", d.name, h.Key)
			}
		case watched && d.isNullArray(reply):
			o = notExecuted // also if the node has lost the key or handed it over
		default:
			o = d.X.Outcome(d.Session, reply, "")
		}
		h.Answered(first, notExecuted)
		h.Answered(last, o)
	}, "EXEC")
}

// discard queues a write and discards it: no session may ever see it.
func (d *diver) discard(h *History) {
	seq := h.hidden(time.Now())
	d.exactly("+OK\r\n", "MULTI")
	d.exactly("+QUEUED\r\n", "SET", h.Key, string(AppendValue(nil, h.Key, seq)))
	d.Add(func(reply []byte) {
		if string(reply) != "+OK\r\n" && !isCut(reply) {
			d.X.Violate("%s: DISCARD answers %.80q", d.name, reply)
		}
		h.Answered(seq, notExecuted)
	}, "DISCARD")
}

func (s *Session) isNullArray(reply []byte) bool {
	return string(reply) == "*-1\r\n" || s.isNull(reply)
}

// TestCheckNoticesTransactions checks that the checker's sessions notice each fault of
// transactions.
func TestCheckNoticesTransactions(t *testing.T) {
	t.Parallel()
	f := func(fault, wrong string) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}}
		l, err := harness.DialLink(serveTransactions(t, fault))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		d := &diver{mixer: &mixer{Session: &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}}}
		a := NewHistory("a")
		d.set(a)
		d.transact(a, false, false)
		d.Get(a, true)
		d.transact(a, true, false)
		d.Get(a, true)
		d.transact(a, true, true)
		d.Get(a, true)
		d.discard(a)
		d.Get(a, true)
		d.Add(func([]byte) {}, "ECHO", "last")
		d.Exchange()
		found := fmt.Sprint(x.violations, x.Absences, x.miscounts, x.tooLate)
		if wrong == "" && found != "[] [] [] []" || !strings.Contains(found, wrong) {
			t.Errorf("%s: found %.300s, want %q", fault, found, wrong)
		}
	}
	f("no fault", "")
	f("ends in the middle", "whose reply said that it was not executed")
	f("answers too little", "does not belong to its command")
	f("executes nothing", "is not write")
	f("does not see that a key has changed", "EXEC executes though a has changed")
	f("discards nothing", "whose reply said that it was not executed")
}

// serveTransactions is a server of one key that knows transactions, with one fault.
func serveTransactions(t *testing.T, fault string) (addr string) {
	value, changed, watching, multi := "", false, false, false
	var queue [][]string
	execute := func(args []string) string {
		switch args[0] {
		case "SET":
			value, changed = args[2], true
			return "+OK\r\n"
		case "STRLEN":
			return string(resp.AppendInt(nil, int64(len(value))))
		}
		return string(resp.AppendBulkString(nil, value))
	}
	exec := func() (reply string) {
		defer func() { watching, multi, queue = false, false, nil }()
		if watching && changed && fault != "does not see that a key has changed" {
			return "*-1\r\n"
		}
		before := value
		reply = "*4\r\n"
		for i, args := range queue {
			if i == 3 && fault == "ends in the middle" {
				return reply + "+OK\r\n"
			}
			reply += execute(args)
		}
		switch fault {
		case "executes nothing":
			value = before
		case "answers too little":
			return "*0\r\n"
		}
		return reply
	}
	return harness.ServeLines(t, func(said string) (reply string, closes bool) {
		switch args := strings.Fields(strings.Trim(said, "[]")); args[0] {
		case "ECHO":
			return string(resp.AppendBulkString(nil, args[1])), true
		case "WATCH":
			watching, changed = true, false
		case "MULTI":
			multi = true
		case "DISCARD":
			if fault == "discards nothing" {
				execute(queue[0])
			}
			watching, multi, queue = false, false, nil
		case "EXEC":
			return exec(), false
		default:
			if !multi {
				return execute(args), false
			}
			queue = append(queue, args)
			return "+QUEUED\r\n", false
		}
		return "+OK\r\n", false
	})
}
