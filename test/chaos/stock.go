package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Stock is a collection that is written once and then only read. Each element follows from its number,
// so a reader knows all of it:
//
//	hash  field i ─> value i      set  member i      zset  member i, with score i      list  item i is the i-th
//
// Whoever moves or copies it takes all of it, and never half.
type Stock struct {
	kind stockKind
	key  string
	n    int
	size int // of each element, at least
	h    *History
}

// stockKind is a type: how its elements are written, counted and read. The key goes behind the first
// word of read.
type stockKind struct {
	name, write, count string
	read               []string
	texts              int // for each element
}

var stockKinds = []stockKind{
	{"hash", "HSET", "HLEN", []string{"HGETALL"}, 2},
	{"set", "SADD", "SCARD", []string{"SMEMBERS"}, 1},
	{"zset", "ZADD", "ZCARD", []string{"ZRANGE", "0", "-1", "WITHSCORES"}, 2},
	{"list", "RPUSH", "LLEN", []string{"LRANGE", "0", "-1"}, 1},
}

const (
	stockBatch    = 128 << 10 // about how many bytes of elements a command writes
	stockExchange = 4 << 20   // and about how many go before their replies are awaited
)

// NewStock returns a Stock that is not written yet. kind counts up, and takes turns.
func NewStock(kind, number, n, size int) *Stock {
	k := stockKinds[kind%len(stockKinds)]
	st := &Stock{kind: k, key: fmt.Sprintf("stock:%s:%d", k.name, number), n: n, size: size}
	st.h = NewHistory(st.key)
	st.h.form = present
	return st
}

// Bytes is about how many bytes its elements have.
func (st *Stock) Bytes() int { return st.n * st.size }

// IsLost reports whether it must be written, for the first time or again.
func (st *Stock) IsLost() bool {
	seen := st.h.Look()
	return seen.Floor <= seen.Gone
}

// element appends what an element is written as; with what behind it, for those that have two strings.
func (st *Stock) element(i int) (first, second []byte) {
	text := strconv.AppendInt(append([]byte(st.key), '/'), int64(i), 36)
	text = append(text, '=')
	filled := slices.Concat(text, bytes.Repeat([]byte{'a' + byte(i%26)}, max(0, st.size-len(text))))
	switch st.kind.name {
	case "hash":
		return text, filled
	case "zset":
		return filled, strconv.AppendInt(nil, int64(i), 10)
	}
	return filled, nil
}

// Store adds the commands that write all of it. It sends most of what is queued if that is long, and
// returns false if the connection is of no use any more.
func (s *Session) Store(st *Stock) bool {
	seq := st.h.Write(time.Now())
	outcome := Executed
	add := func(last bool, args []string) {
		s.Add(func(reply []byte) {
			if _, ok := resp.DecodeInt(reply); !ok {
				s.X.Outcome(s, reply, "")
				outcome = unknown
			}
			if last {
				st.h.Answered(seq, outcome)
			}
		}, args...)
	}
	add(false, []string{"UNLINK", st.key})
	args, size := []string{st.kind.write, st.key}, 0
	for i := range st.n {
		first, second := st.element(i)
		switch {
		case second == nil:
			args = append(args, string(first))
		case st.kind.name == "zset":
			args = append(args, string(second), string(first))
		default:
			args = append(args, string(first), string(second))
		}
		if size += st.size; size >= stockBatch && i < st.n-1 {
			add(false, args)
			args, size = []string{st.kind.write, st.key}, 0
			if len(s.out) > stockExchange && !s.Exchange() {
				return false
			}
		}
	}
	add(true, args)
	return true
}

// Count adds a command that counts its elements: all of them, or none.
func (s *Session) Count(st *Stock) {
	seen := st.h.Look()
	s.Add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		if !ok {
			s.X.Outcome(s, reply, "")
			return
		}
		s.judgeStock(st, seen, int(n), nil)
	}, st.kind.count, st.key)
}

// Check adds a command that reads all of it.
func (s *Session) Check(st *Stock) {
	seen := st.h.Look()
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
			return
		}
		n, err := st.compare(reply)
		s.judgeStock(st, seen, n, err)
	}, append([]string{st.kind.read[0], st.key}, st.kind.read[1:]...)...)
}

func (s *Session) judgeStock(st *Stock, seen sight, n int, err error) {
	switch {
	case err != nil:
		s.X.Violate("%s: %s: %v", s.name, st.key, err)
	case n == st.n:
		s.judgeShown(st.h, false, seen, []byte("1"))
	case n == 0:
		s.judgeShown(st.h, false, seen, nil)
	default:
		s.X.Violate("%s: %s has %d elements of %d", s.name, st.key, n, st.n)
	}
}

// compare returns how many elements a reply has, and an error unless each is what it must be.
func (st *Stock) compare(reply []byte) (n int, err error) {
	texts, err := flat(reply)
	if err != nil || len(texts)%st.kind.texts != 0 {
		return 0, errors.Join(err, fmt.Errorf("a reply of %d strings", len(texts)))
	}
	seen := make([]bool, st.n)
	for ; len(texts) > 0; texts = texts[st.kind.texts:] {
		i, err := st.number(texts[0])
		if err != nil {
			return 0, err
		}
		if st.kind.name != "hash" && st.kind.name != "set" && i != n {
			return 0, fmt.Errorf("element %d is in place %d", i, n)
		}
		first, second := st.element(i)
		if seen[i] || !bytes.Equal(first, texts[0]) || second != nil && !bytes.Equal(second, texts[1]) {
			return 0, fmt.Errorf("element %d shows %.60q, or a second time (%t)", i, texts[:st.kind.texts], seen[i])
		}
		seen[i] = true
		n++
	}
	return n, nil
}

// number is the number that an element names.
func (st *Stock) number(text []byte) (int, error) {
	rest, is := bytes.CutPrefix(text, []byte(st.key+"/"))
	digits, _, found := bytes.Cut(rest, []byte("="))
	i, err := strconv.ParseInt(string(digits), 36, 32)
	if !is || !found || err != nil || int(i) >= st.n {
		return 0, fmt.Errorf("%.60q is no element of it", text)
	}
	return int(i), nil
}
