package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Transit is a number of tokens that commands move between keys of one slot. They are put there by a
// transaction. So each of them is in exactly one of the keys, or none is anywhere.
//
//	filled ──> a ◀── SMOVE, LMOVE ──▶ b        a ── COPY, RESTORE ──▶ d, which has what a had
//	           ▲───────── RENAMENX ─▶ c
type Transit struct {
	*transitKind
	fills  *History // the last time that it was filled; shows as present
	tokens []string
	known  map[string]bool
	empty  bool // a read has shown that it must be filled
	dump   string
	dumped []string // the elements that the dump has
}

// transitKind is a type whose commands move elements.
type transitKind struct {
	name, add string
	all       []string // reads all elements; the key goes behind the first word
	ordered   bool
}

var (
	setTransit  = &transitKind{"set", "SADD", []string{"SMEMBERS"}, false}
	listTransit = &transitKind{"list", "RPUSH", []string{"LRANGE", "0", "-1"}, true}
)

const (
	fewTokens, someTokens = 8, 300
	// manyTokens of bigToken bytes are a few MB: their snapshot goes in many chunks.
	manyTokens, bigToken = 300, 8 << 10
)

// NewTransit returns one that is not filled yet. Its tokens have at least size bytes.
func NewTransit(k *transitKind, key string, tokens, size int) *Transit {
	t := &Transit{transitKind: k, known: map[string]bool{}, empty: true}
	t.fills = NewHistory("{" + key + "}")
	t.fills.form = present
	for i := range tokens {
		token := "token" + strconv.Itoa(i)
		token += strings.Repeat("-", max(0, size-len(token)))
		t.tokens, t.known[token] = append(t.tokens, token), true
	}
	return t
}

// newTransits returns some of each kind, with big ones or without.
func (x *Rig) newTransits(name string, big bool) (all []*Transit) {
	if !x.moves {
		return nil
	}
	for _, k := range []*transitKind{setTransit, listTransit} {
		key := fmt.Sprintf("transit:%s:%s:", k.name, name)
		all = append(all, NewTransit(k, key+"few", fewTokens, 0), NewTransit(k, key+"some", someTokens, 0))
		if big {
			all = append(all, NewTransit(k, key+"big", manyTokens, bigToken))
		}
	}
	return all
}

// keys are a, b, c and d.
func (t *Transit) keys() []string {
	k := t.fills.Key
	return []string{k + "a", k + "b", k + "c", k + "d"}
}

func (t *Transit) isBig() bool { return len(t.tokens[0]) >= bigToken }

func (t *Transit) read(key string) []string { return append([]string{t.all[0], key}, t.all[1:]...) }

// transit adds a random command on an own Transit. Big ones are read less often.
func (s *Session) transit(t *Transit) {
	n := s.Rng.IntN(20)
	switch {
	case t.empty:
		s.fill(t)
	case n == 0, n < 4 && !t.isBig():
		s.readTransit(t, true)
	case n == 4:
		s.rename(t)
	case n == 5 && !t.isBig():
		s.copyTransit(t)
	case n == 6 && !t.isBig():
		s.dumpTransit(t)
	case n == 7 && t.dump != "":
		s.restore(t)
	default:
		s.move(t)
	}
}

// fill puts all tokens into the first key, wherever they were before.
func (s *Session) fill(t *Transit) {
	t.empty = false
	seq := t.fills.Write(time.Now())
	s.execute(func(_ [][]byte, o outcome) {
		t.fills.Answered(seq, o)
		t.empty = t.empty || o != Executed
	}, append([]string{"DEL"}, t.keys()...), append([]string{t.add, t.keys()[0]}, t.tokens...))
}

// move moves a token from one key to another one.
func (s *Session) move(t *Transit) {
	from := s.Rng.IntN(2)
	args := []string{"SMOVE", t.keys()[from], t.keys()[1-from], t.tokens[s.Rng.IntN(len(t.tokens))]}
	if t.ordered {
		ends := []string{"LEFT", "RIGHT"}
		args = []string{"LMOVE", t.keys()[from], t.keys()[1-from], ends[s.Rng.IntN(2)], ends[s.Rng.IntN(2)]}
		if s.Rng.IntN(4) == 0 {
			args = []string{"RPOPLPUSH", args[1], args[2]}
		}
	}
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
		} else if token := bulkShown(reply); t.ordered && token != nil && !t.known[string(token)] {
			s.X.Violate("%s: %s %s moves %.60q, which is no token", s.name, args[0], args[1], token)
		}
	}, args...)
}

// rename gives all that a has to c, or the other way round, unless there is something already.
func (s *Session) rename(t *Transit) {
	from := 2 * s.Rng.IntN(2)
	s.Add(func(reply []byte) {
		if resp.IsError(reply) && !strings.HasPrefix(string(reply), "-ERR no such key") {
			s.X.Outcome(s, reply, "")
		}
	}, "RENAMENX", t.keys()[from], t.keys()[2-from])
}

// readTransit reads all keys. own says that this session fills it.
func (s *Session) readTransit(t *Transit, own bool) {
	seen, keys := t.fills.Look(), t.keys()
	s.execute(func(parts [][]byte, o outcome) {
		if o != Executed {
			return
		}
		n, err := t.count(parts)
		switch {
		case err != nil:
			s.X.Violate("%s: %v", s.name, err)
			return
		case n == len(t.tokens):
			s.judgeShown(t.fills, own, seen, []byte("1"))
			return
		case n > 0 && !s.X.Evicts:
			s.X.Violate("%s: %d of %d tokens of %s are there", s.name, n, len(t.tokens), t.fills.Key)
		case n == 0:
			s.judgeShown(t.fills, own, seen, nil)
		}
		if own { // only its session reads and writes empty
			t.empty = true
		}
	}, t.read(keys[0]), t.read(keys[1]), t.read(keys[2]))
}

// count returns how many tokens the parts show, each once.
func (t *Transit) count(parts [][]byte) (n int, err error) {
	shown := map[string]bool{}
	for i, part := range parts {
		texts, err := flat(part)
		if err != nil {
			return 0, err
		}
		for _, text := range texts {
			switch token := string(text); {
			case !t.known[token]:
				return 0, fmt.Errorf("%s has %.60q, which is no token", t.keys()[i], token)
			case shown[token]:
				return 0, fmt.Errorf("%s: token %.20q shows twice, at last in %s", t.fills.Key, token, t.keys()[i])
			default:
				shown[token] = true
			}
		}
	}
	return len(shown), nil
}

// texts are the elements of a reply, in order unless that means nothing.
func (t *Transit) texts(part []byte) (list []string, err error) {
	all, err := flat(part)
	for _, text := range all {
		list = append(list, string(text))
	}
	if !t.ordered {
		slices.Sort(list)
	}
	return list, err
}

// copyTransit copies a to d, and compares them.
func (s *Session) copyTransit(t *Transit) {
	keys := t.keys()
	s.execute(func(parts [][]byte, o outcome) {
		if o != Executed || string(parts[0]) == ":0\r\n" {
			return
		}
		a, err1 := t.texts(parts[1])
		d, err2 := t.texts(parts[2])
		if err1 != nil || err2 != nil || !slices.Equal(a, d) {
			s.X.Violate("%s: COPY of %s with %d elements has %d, or others (%v, %v)", s.name, keys[0], len(a), len(d), err1, err2)
		}
	}, []string{"COPY", keys[0], keys[3], "REPLACE"}, t.read(keys[0]), t.read(keys[3]))
}

// dumpTransit keeps a dump of a.
func (s *Session) dumpTransit(t *Transit) {
	keys := t.keys()
	s.execute(func(parts [][]byte, o outcome) {
		if o != Executed {
			return
		}
		elements, err := t.texts(parts[1])
		dump := bulkShown(parts[0])
		if err != nil || (dump == nil) != (len(elements) == 0) {
			s.X.Violate("%s: DUMP of %s has %d bytes, of %d elements (%v)", s.name, keys[0], len(dump), len(elements), err)
			return
		}
		t.dump, t.dumped = string(dump), elements
	}, []string{"DUMP", keys[0]}, t.read(keys[0]))
}

// restore makes d of the dump, and compares what it has.
func (s *Session) restore(t *Transit) {
	want, d := t.dumped, t.keys()[3]
	s.execute(func(parts [][]byte, o outcome) {
		if o != Executed {
			return
		}
		got, err := t.texts(parts[1])
		if err != nil || string(parts[0]) != "+OK\r\n" || !slices.Equal(got, want) {
			s.X.Violate("%s: RESTORE of %s answers %.80q and has %d elements, want %d (%v)", s.name, d, parts[0], len(got), len(want), err)
		}
	}, []string{"RESTORE", d, "0", t.dump, "REPLACE"}, t.read(d))
}
