package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// hidden numbers a write that a later one of the same transaction replaces: nobody may ever see it.
func (h *history) hidden(now time.Time) (seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq = h.issueLocked(now)
	h.refused[seq] = true
	return seq
}

// transact changes an own key twice in one transaction, which shows itself the first value, and others the second one only.
// With WATCH it is executed unless the key has changed since; only this session changes it, by a write between if
// it interferes.
func (d *diver) transact(h *history, watched, interferes bool) {
	changed := notExecuted // the watched key
	if watched {
		d.add(func(reply []byte) { d.x.outcome(d.session, reply, "+OK\r\n") }, "WATCH", h.key)
		if interferes {
			seq := h.write(time.Now())
			d.add(func(reply []byte) {
				changed = d.x.outcome(d.session, reply, "+OK\r\n")
				h.answered(seq, changed)
			}, "SET", h.key, string(appendValue(nil, h.key, seq)))
		}
	}
	now := time.Now()
	first, last := h.hidden(now), h.write(now)
	value := appendValue(nil, h.key, first)
	d.exactly("+OK\r\n", "MULTI")
	for _, args := range [][]string{
		{"SET", h.key, string(value)}, {"GET", h.key}, {"STRLEN", h.key}, {"SET", h.key, string(appendValue(nil, h.key, last))},
	} {
		d.exactly("+QUEUED\r\n", args...)
	}
	want := append([]byte("*4\r\n+OK\r\n"), resp.AppendBulk(nil, value)...)
	want = append(resp.AppendInt(want, int64(len(value))), "+OK\r\n"...)
	d.add(func(reply []byte) {
		o := executed
		switch {
		case bytes.Equal(reply, want):
			if changed == executed {
				d.x.violate("%s: EXEC executes though %s has changed", d.name, h.key)
			}
		case watched && d.isNullArray(reply):
			o = notExecuted // also when its node has lost or given the key away
		default:
			o = d.x.outcome(d.session, reply, "")
		}
		h.answered(first, notExecuted)
		h.answered(last, o)
	}, "EXEC")
}

// discard queues a write that nobody may ever see.
func (d *diver) discard(h *history) {
	seq := h.hidden(time.Now())
	d.exactly("+OK\r\n", "MULTI")
	d.exactly("+QUEUED\r\n", "SET", h.key, string(appendValue(nil, h.key, seq)))
	d.add(func(reply []byte) {
		if string(reply) != "+OK\r\n" {
			d.x.violate("%s: DISCARD answers %.80q", d.name, reply)
		}
		h.answered(seq, notExecuted)
	}, "DISCARD")
}

// exactly adds a command that the proxy answers itself.
func (d *diver) exactly(want string, args ...string) {
	d.add(func(reply []byte) {
		if string(reply) != want {
			d.x.violate("%s: %s answers %.80q, want %s", d.name, args[0], reply, strconv.Quote(want))
		}
	}, args...)
}

func (s *session) isNullArray(reply []byte) bool {
	return string(reply) == "*-1\r\n" || s.isNull(reply)
}

// TestCheckNoticesTransactions: each wrong way with a transaction is seen by the checker's sessions.
func TestCheckNoticesTransactions(t *testing.T) {
	t.Parallel()
	f := func(fault, wrong string) {
		t.Helper()
		x := &chaos{t: t, tolerated: map[string]int{}}
		l, err := dialLink(serveTransactions(t, fault))
		if err != nil {
			t.Fatal(err)
		}
		defer l.conn.Close()
		d := &diver{mixer: &mixer{session: &session{x: x, name: "s", link: l, rng: rand.New(rand.NewPCG(1, 1))}}}
		a := newHistory("a")
		d.set(a)
		d.transact(a, false, false)
		d.get(a, true)
		d.transact(a, true, false)
		d.get(a, true)
		d.transact(a, true, true)
		d.get(a, true)
		d.discard(a)
		d.get(a, true)
		d.add(func([]byte) {}, "ECHO", "last")
		d.exchange()
		found := fmt.Sprint(x.violations, x.absences, x.fewer, x.tooLate)
		if wrong == "" && found != "[] [] [] []" || !strings.Contains(found, wrong) {
			t.Errorf("%s: found %.300s, want %q", fault, found, wrong)
		}
	}
	f("no fault", "")
	f("ends in the middle", "of which was said that it was not executed")
	f("answers too little", "does not belong to its command")
	f("executes nothing", "is not write")
	f("does not see that a key has changed", "EXEC executes though a has changed")
	f("discards nothing", "of which was said that it was not executed")
}

// serveTransactions is a server of one key with transactions, and one fault.
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
	return serveLines(t, func(said string) (reply string, closes bool) {
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
