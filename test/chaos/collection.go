package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Collection is a key that holds several elements. Each element has a history of its own, so a
// read of the collection is as many reads, of one moment. The first two elements are twins: each
// command that changes one changes the other, so nobody may ever see them differ.
type Collection struct {
	kind     *kind
	Key      string
	Elements []*History
	names    map[string]int // of elements: which one it is
	shrinks  bool           // most commands delete now
}

// twins is how many elements always have the same last write.
const twins = 2

// kind is a type of collection: its commands, and how their replies show elements.
type kind struct {
	name   string
	form   form // of elements
	put    func(args []string, h *History, name string, seq uint64) []string
	write  string // adds elements, or writes them anew
	drop   string // deletes elements
	length string
	read   string                // one element
	whole  []string              // all of them; the key goes behind the first word
	pairs  bool                  // whole answers names with what they show
	shown  func([]byte) []byte   // what a reply shows of an element; nil: it is not there
	sorted func(a, b int64) bool // of two elements in a row, by what they show
}

var kinds = []*kind{
	{
		name: "hash", form: brief, write: "HSET", drop: "HDEL", length: "HLEN", read: "HGET",
		whole: []string{"HGETALL"}, pairs: true, shown: bulkShown,
		put: func(args []string, h *History, name string, seq uint64) []string {
			return append(args, name, string(h.value(seq)))
		},
	},
	{
		name: "set", form: present, write: "SADD", drop: "SREM", length: "SCARD", read: "SISMEMBER",
		whole: []string{"SMEMBERS"}, shown: memberShown,
		put: func(args []string, _ *History, name string, _ uint64) []string { return append(args, name) },
	},
	{
		name: "zset", form: score, write: "ZADD", drop: "ZREM", length: "ZCARD", read: "ZSCORE",
		whole: []string{"ZRANGE", "0", "-1", "WITHSCORES"}, pairs: true, shown: bulkShown,
		put: func(args []string, h *History, name string, seq uint64) []string {
			return append(args, string(h.value(seq)), name)
		},
		sorted: func(a, b int64) bool { return a <= b },
	},
}

// askKinds finds out which collections the members know: in an upgrade, the old ones.
func (x *Rig) askKinds() {
	l, err := x.dial(x.C.Proxy(0))
	if err != nil {
		x.T.Fatal(err)
	}
	defer l.Conn.Close()
	knows := func(names ...string) bool {
		for _, name := range names {
			if err = l.Send(resp.AppendRequest(nil, []byte("COMMAND"), []byte("INFO"), []byte(name))); err != nil {
				x.T.Fatal(err)
			}
			reply, err := l.Receive(time.Now().Add(harness.AnswerTime))
			if err != nil {
				x.T.Fatal(err)
			}
			if !bytes.Contains(reply, []byte(strings.ToLower(name))) {
				return false
			}
		}
		return true
	}
	for _, k := range kinds {
		if knows(k.write, k.drop, k.length, k.read, k.whole[0]) {
			x.kinds = append(x.kinds, k)
		}
	}
	x.lists = knows("RPUSH", "LPOP", "LRANGE")
	x.fades = knows("HSETEX", "HGETEX", "HGETDEL", "HPEXPIRE")
	x.moves = x.lists && len(x.kinds) == len(kinds) && knows("SMOVE", "LMOVE", "RENAMENX", "COPY", "DUMP", "RESTORE")
}

// collects reports whether the cluster's level allows collections.
func (x *Rig) collects() bool { return x.Tables.atLevel(ring.CollectionsLevel) }

// AwaitCollections waits until clients work on collections, too.
func (x *Rig) AwaitCollections() {
	x.T.Helper()
	harness.Eventually(x.T, harness.ReadyTimeout, "the cluster's level allows collections", x.collects)
}

func bulkShown(reply []byte) []byte {
	if len(reply) > 0 && reply[0] == ',' { // a score in RESP3
		return reply[1 : len(reply)-2]
	}
	value, found := resp.DecodeBulk(reply)
	if found && value == nil {
		return []byte{}
	}
	return value
}

func memberShown(reply []byte) []byte {
	if n, _ := resp.DecodeInt(reply); n == 0 {
		return nil
	}
	return []byte("1")
}

// sizes are what collections are made of. A small one stays packed, one that swings becomes a value
// with parts and goes back, and a large one has strings that are parts of their own.
var sizes = []struct {
	name     string
	elements int
	form     form
}{{"small", 6, brief}, {"swings", 200, brief}, {"large", 24, long}}

// bigElements of the form huge are a few MB: the snapshot of a big hash goes in many chunks, between
// which its node may die.
const bigElements = 64

// NewCollection returns a collection that nobody has written yet.
func NewCollection(k *kind, key string, elements int, f form) *Collection {
	c := &Collection{kind: k, Key: key, names: map[string]int{}}
	if k.form != brief {
		f = k.form
	}
	partition := ring.PartitionOf([]byte(key))
	for i := range elements {
		name := c.name(i)
		h := NewHistory(key + "/" + name)
		h.partition, h.form = partition, f
		c.names[name] = i
		c.Elements = append(c.Elements, h)
	}
	return c
}

// alike is how many collections of a kind and size a client has, so that each node has some.
const alike = 3

// newCollections returns some of each kind and size, with a big hash or without.
func (x *Rig) newCollections(name string, big bool) (all []*Collection) {
	if big && x.fades {
		all = append(all, NewCollection(kinds[0], "hash:"+name+":big", bigElements, huge))
	}
	for _, k := range x.kinds {
		for _, size := range sizes {
			for i := range alike {
				all = append(all, NewCollection(k, fmt.Sprintf("%s:%s:%s%d", k.name, name, size.name, i), size.elements, size.form))
			}
		}
	}
	return all
}

// name returns the name of an element: every third is no number.
func (c *Collection) name(i int) string {
	if i%3 == 0 {
		return "element-" + strconv.Itoa(i)
	}
	return strconv.Itoa(i)
}

// some returns different elements, some of them or most.
func (c *Collection) some(rng *rand.Rand) []int {
	n := 1 + rng.IntN(4)
	if rng.IntN(4) == 0 && !c.isBig() {
		n = 1 + rng.IntN(len(c.Elements))
	}
	chosen := rng.Perm(len(c.Elements))[:n]
	one := -1 // the place of a twin
	for i, e := range chosen {
		if e < twins {
			one = i
		}
	}
	if one < 0 {
		return chosen
	}
	rest := chosen[:0]
	for _, e := range chosen {
		if e >= twins {
			rest = append(rest, e)
		}
	}
	return append(rest, 0, 1)
}

func (c *Collection) isBig() bool { return c.Elements[0].form == huge }

// all returns all elements.
func (c *Collection) all() []int {
	all := make([]int, len(c.Elements))
	for i := range all {
		all[i] = i
	}
	return all
}

// collect adds a random command on an own collection.
func (s *Session) collect(c *Collection) {
	if s.Rng.IntN(40) == 0 {
		c.shrinks = !c.shrinks
	}
	switch n := s.Rng.IntN(100); {
	case s.X.fades && c.kind == kinds[0] && s.Rng.IntN(4) == 0:
		s.fade(c)
	case n < 4 || n > 10 && c.isBig() && s.Rng.IntN(4) > 0:
		s.length(c)
	case n < 20:
		s.element(c, s.Rng.IntN(len(c.Elements)), true)
	case n < 30:
		s.Whole(c, true)
	case n == 30:
		s.dropAll(c)
	case (n < 40) != c.shrinks:
		s.dropSome(c, c.some(s.Rng))
	default:
		s.put(c, c.some(s.Rng))
	}
}

// put writes elements, and judges how many are new.
func (s *Session) put(c *Collection, some []int) {
	now, args, seqs := time.Now(), []string{c.kind.write, c.Key}, make([]uint64, len(some))
	for i, e := range some {
		seqs[i] = c.Elements[e].Write(now)
		args = c.kind.put(args, c.Elements[e], c.name(e), seqs[i])
	}
	s.Add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		o := Executed
		if ok {
			s.judgeNew(c, some, seqs, n)
		} else {
			o = s.X.Outcome(s, reply, "")
		}
		for i, e := range some {
			c.Elements[e].Answered(seqs[i], o)
		}
	}, args...)
}

// judgeNew judges how many of the elements were not there before these writes.
func (s *Session) judgeNew(c *Collection, some []int, seqs []uint64, n int64) {
	before := func(i int) uint64 { return seqs[i] - 1 }
	s.judgeOld(c, c.kind.write, some, before, len(some), int64(len(some))-n)
}

// dropSome deletes elements, and judges how many were there.
func (s *Session) dropSome(c *Collection, some []int) {
	args := []string{c.kind.drop, c.Key}
	for _, e := range some {
		args = append(args, c.name(e))
	}
	s.removes(c, some, len(some), args)
}

// dropAll deletes the key.
func (s *Session) dropAll(c *Collection) {
	s.removes(c, c.all(), 1, []string{[]string{"DEL", "UNLINK"}[s.Rng.IntN(2)], c.Key})
}

// removes adds a command that deletes elements and answers how many there were, at most atMost.
func (s *Session) removes(c *Collection, some []int, atMost int, args []string) {
	now, seqs := time.Now(), make([]uint64, len(some))
	for i, e := range some {
		seqs[i] = c.Elements[e].remove(now)
	}
	s.Add(func(reply []byte) {
		o := Executed
		if n, ok := resp.DecodeInt(reply); ok {
			s.judgeOld(c, args[0], some, func(i int) uint64 { return seqs[i] - 1 }, atMost, n)
		} else {
			o = s.X.Outcome(s, reply, "")
		}
		for i, e := range some {
			c.Elements[e].Answered(seqs[i], o)
		}
	}, args...)
}

// length counts the elements.
func (s *Session) length(c *Collection) {
	s.Add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		if !ok {
			s.X.Outcome(s, reply, "")
			return
		}
		// If a pipe broke, the command may have been sent again, after later commands.
		s.judgeOld(c, c.kind.length, c.all(), func(i int) uint64 { return c.Elements[i].Look().issued }, len(c.Elements), n)
	}, c.kind.length, c.Key)
}

// judgeOld judges how many of the elements were there after their writes up to upTo; the command
// answers at most atMost.
func (s *Session) judgeOld(c *Collection, name string, some []int, upTo func(i int) uint64, atMost int, n int64) {
	m, present, absent := miscount{name: name + " " + c.Key}, []*History(nil), []*History(nil)
	for i, e := range some { // once: what time does to fields goes on
		switch may, must := c.Elements[e].presence(upTo(i)); {
		case must:
			present = append(present, c.Elements[e])
		case !may:
			absent = append(absent, c.Elements[e])
		}
	}
	least, most := min(len(present), atMost), min(len(some)-len(absent), atMost)
	switch {
	case s.X.Divided.Load():
		return
	case n < 0 || n > int64(atMost):
		s.X.Violate("%s: %s finds %d elements of at most %d", s.name, m.name, n, atMost)
		return
	case n < int64(least):
		m.what, m.off = "too few", least-int(n)
	case n > int64(most):
		m.what, m.off = "too many", int(n)-most
	default:
		return
	}
	if m.what == "too few" {
		for _, h := range present {
			m.explains = append(m.explains, h.lost(time.Now()))
		}
	} else {
		for _, h := range absent {
			if h.Look().Floor > 0 {
				m.explains = append(m.explains, h.revived(time.Now()))
			}
		}
	}
	s.X.miscounted(m)
}

// element reads one element.
func (s *Session) element(c *Collection, e int, own bool) {
	h := c.Elements[e]
	seen := h.Look()
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
			return
		}
		s.judgeShown(h, own, seen, c.kind.shown(reply))
	}, c.kind.read, c.Key, c.name(e))
}

// Whole reads all elements. own says that this session is the writer.
func (s *Session) Whole(c *Collection, own bool) {
	seen := make([]sight, len(c.Elements))
	for i, h := range c.Elements {
		seen[i] = h.Look()
	}
	args := append([]string{c.kind.whole[0], c.Key}, c.kind.whole[1:]...)
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
			return
		}
		all, err := c.decode(reply)
		if err != nil {
			s.X.Violate("%s: %s %s: %v", s.name, args[0], c.Key, err)
			return
		}
		for i, h := range c.Elements {
			s.judgeShown(h, own, seen[i], all[i])
		}
	}, args...)
}

// decode returns what a reply shows of each element, nil of one that is not there.
func (c *Collection) decode(reply []byte) ([][]byte, error) {
	texts, err := flat(reply)
	if err != nil {
		return nil, err
	}
	step := 1
	if c.kind.pairs {
		step = 2
	}
	if len(texts)%step != 0 {
		return nil, fmt.Errorf("a reply of %d strings", len(texts))
	}
	all, last := make([][]byte, len(c.Elements)), int64(0)
	for ; len(texts) > 0; texts = texts[step:] {
		e, known := c.names[string(texts[0])]
		switch {
		case !known:
			return nil, fmt.Errorf("element %.60q is none of it", texts[0])
		case all[e] != nil:
			return nil, fmt.Errorf("element %q shows twice", texts[0])
		}
		all[e] = texts[step-1]
		if c.kind.sorted != nil {
			n, _ := strconv.ParseInt(string(all[e]), 10, 64)
			if !c.kind.sorted(last, n) {
				return nil, fmt.Errorf("%d follows %d", n, last)
			}
			last = n
		}
	}
	return all, c.twinned(all)
}

// twinned returns an error if the twins show different writes.
func (c *Collection) twinned(all [][]byte) error {
	var seqs [twins]uint64
	for i := range twins {
		if all[i] == nil {
			continue
		}
		seqs[i] = 1
		if h := c.Elements[i]; h.form != present {
			h.Mu.Lock()
			seqs[i], _ = h.parseLocked(h.lookLocked(), all[i])
			h.Mu.Unlock()
		}
	}
	if seqs[0] != seqs[1] {
		return fmt.Errorf("the middle of a command: twins show writes %d and %d", seqs[0], seqs[1])
	}
	return nil
}

// flat returns the strings of an aggregate of any kind; of one in RESP3 whose elements are pairs,
// those of all pairs.
func flat(reply []byte) (texts [][]byte, err error) {
	for len(reply) > 0 {
		var scan resp.Scanner
		switch reply[0] {
		case '*', '%', '~':
			end := 1
			for end < len(reply) && reply[end-1] != '\n' {
				end++
			}
			reply = reply[end:]
			continue
		}
		if scan.Scan(reply) != resp.Done {
			return nil, fmt.Errorf("%.60q is no reply", reply)
		}
		one := bulkShown(reply[:scan.Len()])
		if one == nil {
			return nil, fmt.Errorf("%.60q is no string", reply[:scan.Len()])
		}
		texts, reply = append(texts, one), reply[scan.Len():]
	}
	return texts, nil
}
