package chaos

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Bundle is a string, a hash, a sorted set, a set and a list of one slot. One session writes all of
// them in a transaction, and any may read them in one: they show the same write, or are all absent.
type Bundle struct {
	h *History // its key is the string's
}

// the keys of a bundle, by what is behind the string's
const (
	bundleHash, bundleZset, bundleSet, bundleList = ":h", ":z", ":s", ":l"
	bundleField                                   = "field"
)

// NewBundle returns a bundle that nobody has written yet.
func NewBundle(key string) *Bundle {
	b := &Bundle{NewHistory("{" + key + "}")}
	b.h.form = brief // a long string reaches a follower behind its transaction
	return b
}

func (x *Rig) newBundles(name string) (all []*Bundle) {
	if !x.moves {
		return nil
	}
	for i := range alike {
		all = append(all, NewBundle(fmt.Sprintf("bundle:%s:%d", name, i)))
	}
	return all
}

func (b *Bundle) keys() []string {
	k := b.h.Key
	return []string{k, k + bundleHash, k + bundleZset, k + bundleSet, k + bundleList}
}

// bundle adds a random command on an own bundle.
func (s *Session) bundle(b *Bundle) {
	switch s.Rng.IntN(8) {
	case 0:
		s.dropBundle(b)
	case 1, 2:
		s.readBundle(b, true)
	default:
		s.writeBundle(b)
	}
}

func (s *Session) writeBundle(b *Bundle) {
	seq := b.h.Write(time.Now())
	value, n, key := string(b.h.value(seq)), strconv.FormatUint(seq, 10), b.h.Key
	s.execute(func(parts [][]byte, o outcome) {
		for _, part := range parts {
			if resp.IsError(part) {
				s.X.Violate("%s: a part of the transaction on %s answers %.80q", s.name, key, part)
			}
		}
		b.h.Answered(seq, o)
	}, []string{"SET", key, value}, []string{"HSET", key + bundleHash, bundleField, value},
		[]string{"ZADD", key + bundleZset, n, bundleField},
		[]string{"DEL", key + bundleSet, key + bundleList}, []string{"SADD", key + bundleSet, n},
		[]string{"RPUSH", key + bundleList, value})
}

func (s *Session) dropBundle(b *Bundle) {
	seq := b.h.remove(time.Now())
	s.Add(func(reply []byte) {
		o := Executed
		if _, ok := resp.DecodeInt(reply); !ok {
			o = s.X.Outcome(s, reply, "")
		}
		b.h.Answered(seq, o)
	}, append([]string{"DEL"}, b.keys()...)...)
}

// readBundle reads all of it. own says that this session is the writer.
func (s *Session) readBundle(b *Bundle, own bool) {
	seen, key := b.h.Look(), b.h.Key
	s.execute(func(parts [][]byte, o outcome) {
		if o != Executed {
			return
		}
		shown, err := b.shown(parts, s.X.Evicts)
		if err != nil {
			s.X.Violate("%s: %v", s.name, err)
			return
		}
		s.judgeShown(b.h, own, seen, shown)
	}, []string{"GET", key}, []string{"HGET", key + bundleHash, bundleField}, []string{"ZSCORE", key + bundleZset, bundleField},
		[]string{"SMEMBERS", key + bundleSet}, []string{"LRANGE", key + bundleList, "0", "-1"})
}

// shown returns the value that a read shows, nil for none. evicts says that keys may be missing.
func (b *Bundle) shown(parts [][]byte, evicts bool) (value []byte, err error) {
	var numbers []string // of writes, "" for none
	for i, part := range parts {
		text, err := single(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.keys()[i], err)
		}
		n := string(text)
		if isNumber := i == 2 || i == 3; !isNumber && text != nil {
			seq, err := b.h.parseFilled(text)
			if err != nil {
				return nil, err
			}
			n = strconv.FormatUint(seq, 10)
		}
		if i == 0 {
			value = text
		}
		if n != "" || !evicts {
			numbers = append(numbers, n)
		}
	}
	for _, n := range numbers {
		if n != numbers[0] {
			return nil, fmt.Errorf("the middle of a transaction: string, hash, sorted set, set and list of %s show writes %q", b.h.Key, numbers)
		}
	}
	return value, nil
}

// single is the only string of a reply, nil if there is none.
func single(reply []byte) ([]byte, error) {
	switch string(reply) {
	case "$-1\r\n", "_\r\n", "*-1\r\n":
		return nil, nil
	}
	texts, err := flat(reply)
	switch {
	case err != nil:
		return nil, err
	case len(texts) > 1:
		return nil, fmt.Errorf("%d elements of at most one: %.80q", len(texts), reply)
	case len(texts) == 0:
		return nil, nil
	}
	return texts[0], nil
}

// execute adds a transaction. judge gets the replies to its commands, or why there are none.
func (s *Session) execute(judge func(parts [][]byte, o outcome), commands ...[]string) {
	s.exactly("+OK\r\n", "MULTI")
	for _, args := range commands {
		s.exactly("+QUEUED\r\n", args...)
	}
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			judge(nil, s.X.Outcome(s, reply, ""))
			return
		}
		parts, err := split(reply)
		if err != nil || len(parts) != len(commands) {
			s.X.Violate("%s: EXEC of %d commands (%s) answers %.80q: %v", s.name, len(commands), strings.Join(commands[0][:2], " "), reply, err)
			judge(nil, unknown)
			return
		}
		judge(parts, Executed)
	}, "EXEC")
}

// split returns the elements of an array.
func split(reply []byte) (parts [][]byte, err error) {
	n, header, ok := resp.DecodeArray(reply)
	if !ok {
		return nil, fmt.Errorf("%.60q is no array", reply)
	}
	for rest := reply[header:]; n > 0; n-- {
		var scan resp.Scanner
		if scan.Scan(rest) != resp.Done {
			return nil, fmt.Errorf("%.60q is no reply", rest)
		}
		parts, rest = append(parts, bytes.Clone(rest[:scan.Len()])), rest[scan.Len():]
	}
	return parts, nil
}

// retired are all keys of what a client has.
func retired(collections []*Collection, queues []*Queue, bundles []*Bundle, transits []*Transit) (keys []string) {
	for _, c := range collections {
		keys = append(keys, c.Key)
	}
	for _, q := range queues {
		keys = append(keys, q.item.Key)
	}
	for _, b := range bundles {
		keys = append(keys, b.keys()...)
	}
	for _, t := range transits {
		keys = append(keys, t.keys()...)
	}
	return keys
}
