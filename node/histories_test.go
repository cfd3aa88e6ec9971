package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// These tests run random commands on one partition of an owner, and everything that its stream does
// to a copy at random moments:
//
//	commands ──> owner ──log──> follower's engine ──────> successor
//	              │ snapshot, from any moment on,     what the follower has when it takes over
//	              │ again after the stream is lost
//
// The follower's clock is hours off, and it may have too little memory. It must have what the owner
// has; if it takes over before the snapshot is complete, or if it evicts, a key may be absent, but
// it never has half of one. The seed determines a history, but not when keys expire.
//
//	go test ./node -run TestHistories -histories 1000
var histories = flag.Int("histories", 0, "how many random histories of each kind of value are run; 0: a few")

// historyKind is one kind of value: commands on a key, and how all of the value is read. Sorted
// says that the reply has pairs, or single strings, in no order.
type historyKind struct {
	name   string
	change func(h *history, key string) []string
	whole  []string                                       // the key goes behind the first word
	sorted int                                            // strings that belong together, 0 if they are in order
	rest   func(h *history, c *client, key string) string // what else the value has; nil: nothing
}

var historyKinds = []historyKind{
	{"string", (*history).changeString, []string{"GET"}, 0, nil},
	{"hash", (*history).changeHash, []string{"HGETALL"}, 2, nil},
	{"set", (*history).changeSet, []string{"SMEMBERS"}, 1, nil},
	{"zset", (*history).changeSortedSet, []string{"ZRANGE", "0", "-1", "WITHSCORES"}, 0, nil},
	{"geo", (*history).changeGeo, []string{"ZRANGE", "0", "-1", "WITHSCORES"}, 0, nil},
	{"list", (*history).changeList, []string{"LRANGE", "0", "-1"}, 0, nil},
	{"stream", (*history).changeStream, []string{"XRANGE", "-", "+"}, 0, (*history).readStream},
}

const (
	historyKeys     = 3
	historyReceiver = 3
	completeRounds  = 1000
)

type history struct {
	t        testing.TB
	r        *rand.Rand
	kind     historyKind
	tag      string
	p        uint16
	elements int // names are below
	entries  int // of streams, that were added

	owner, successor *client
	from, to         *engine.Engine // the owner's, the follower's
	last             *engine.Engine // the successor's
	off              time.Duration  // the follower's clock

	evicts     bool // the follower has too little memory
	fed, whole bool // it is fed; its snapshot is complete
	cursor     uint64
	lacks      map[string]bool
	overflowed int
}

// Admits, Marked and Lacks make it the Taker of the follower.
func (*history) Admits(uint16) bool              { return true }
func (*history) Marked(uint16, engine.Mark)      {}
func (h *history) Lacks(_ uint16, key []byte)    { h.lacks[string(key)] = true }
func (h *history) key() string                   { return h.named(h.r.IntN(historyKeys)) }
func (h *history) named(i int) string            { return fmt.Sprintf("{%s}%d", h.tag, i) }
func (h *history) element() string               { return h.elementOf(h.r.IntN(h.elements)) }
func (h *history) one(commands ...string) string { return commands[h.r.IntN(len(commands))] }

func (h *history) elementOf(i int) string {
	if i%5 == 0 {
		return fmt.Sprintf("element-%d", i)
	}
	return strconv.Itoa(i)
}

func (h *history) value() string {
	switch n := h.r.IntN(100); {
	case n == 0:
		return strings.Repeat("long", h.r.IntN(20_000)) // a snapshot takes it apart
	case n < 10:
		return strings.Repeat("v", h.r.IntN(2000))
	}
	return strconv.Itoa(h.r.IntN(1_000_000))
}

// several appends what f makes for one element, for some or for many.
func (h *history) several(args []string, f func() []string) []string {
	n := 1 + h.r.IntN(4)
	if h.r.IntN(5) == 0 {
		n = 1 + h.r.IntN(100)
	}
	for range n {
		args = append(args, f()...)
	}
	return args
}

func (h *history) elementsFor(name, key string) []string {
	return h.several([]string{name, key}, func() []string { return []string{h.element()} })
}

// request returns a random command, of those that the node knows.
func (h *history) request() (args []string) {
	for {
		switch h.r.IntN(40) {
		case 0:
			args = []string{h.one("DEL", "UNLINK"), h.key()}
		case 1:
			args = []string{"RENAME", h.key(), h.key()}
		case 2:
			args = []string{"PEXPIRE", h.key(), strconv.Itoa(1 + h.r.IntN(4))}
		case 3, 4:
			args = []string{"PEXPIRE", h.key(), strconv.Itoa(3_600_000 + h.r.IntN(1000))}
		case 5:
			args = []string{"PERSIST", h.key()}
		case 6:
			args = []string{"COPY", h.key(), h.key(), "REPLACE"}
		case 7:
			args = h.restored()
		default:
			args = h.kind.change(h, h.key())
		}
		if isBuilt(args[0]) {
			return args
		}
	}
}

func isBuilt(name string) bool {
	c := command.Lookup([]byte(name))
	return c != nil && (c.Built || len(c.Subs) > 0)
}

// work sends some commands, at times as a transaction, and reads the replies.
func (h *history) work() {
	var out []byte
	replies := 1 + h.r.IntN(12)
	add := func(args ...string) {
		request := make([][]byte, len(args))
		for i, a := range args {
			request[i] = []byte(a)
		}
		out = resp.AppendRequest(out, request...)
	}
	unit := h.r.IntN(4) == 0
	if unit {
		add("MULTI")
	}
	for range replies {
		add(h.request()...)
	}
	if unit {
		add("EXEC")
		replies += 2
	}
	h.owner.sendRaw(out)
	for range replies {
		if reply := h.owner.read(); strings.HasPrefix(string(reply), "-ERR unknown") || strings.HasPrefix(string(reply), "-ERR syntax") {
			h.t.Fatalf("%s: %s", h.kind.name, reply)
		}
	}
}

func now() int64 { return time.Now().UnixMilli() }

// stir does something to the stream.
func (h *history) stir() {
	switch n := h.r.IntN(20); {
	case !h.fed && n < 6:
		h.feed()
	case !h.fed:
	case n == 0:
		h.from.CloseFeed(historyReceiver) // with what is logged
		h.from.OpenFeed(historyReceiver, func() {})
		h.fed = false
	case n < 10:
		h.snapshot(h.r.IntN(20_000))
	default:
		h.collect(1 + h.r.IntN(40_000))
	}
}

// feed begins a stream anew.
func (h *history) feed() {
	h.to.Drop(h.p)
	h.to.SetCopy(h.p, engine.SpareCopy)
	h.from.Feed(h.p, historyReceiver, engine.Mark{Kind: 1})
	h.fed, h.whole, h.cursor = true, false, 0
	clear(h.lacks)
}

func (h *history) snapshot(atMost int) {
	if !h.whole {
		h.cursor, h.whole = h.from.Snapshot(h.p, historyReceiver, h.cursor, atMost, now())
	}
	for key := range h.lacks {
		if h.from.SendAnew(h.p, historyReceiver, []byte(key), now()) && h.whole {
			h.whole, h.cursor = false, engine.WalkEnd
		}
		delete(h.lacks, key)
	}
}

// collect has the follower apply some of the log. It reports whether there is more.
func (h *history) collect(atMost int) (more bool) {
	for shard := range h.from.Shards() {
		effects, left := h.from.Collect(historyReceiver, shard, nil, atMost)
		more = more || left
		if err := h.to.Apply(effects, h.off.Milliseconds(), now()+h.off.Milliseconds(), h); err != nil {
			h.t.Fatalf("%s: the follower cannot apply: %v", h.tag, err)
		}
	}
	if h.from.LostLog(historyReceiver) || len(h.from.Overflowed(historyReceiver, nil)) > 0 {
		h.overflowed++
		h.from.CloseFeed(historyReceiver)
		h.from.OpenFeed(historyReceiver, func() {})
		h.fed = false
	}
	return more
}

// complete ends the snapshot. A follower with too little memory lacks keys for ever.
func (h *history) complete() {
	for range completeRounds {
		if !h.fed {
			h.feed()
		}
		h.snapshot(50_000)
		if more := h.collect(1 << 20); h.fed && h.whole && !more && len(h.lacks) == 0 {
			return
		}
	}
	if !h.evicts {
		h.t.Fatalf("history %s: the snapshot does not end", h.tag)
	}
}

// takesAll is the Taker of the successor.
type takesAll struct{}

func (takesAll) Admits(uint16) bool         { return true }
func (takesAll) Marked(uint16, engine.Mark) {}

// succeed gives the successor what the follower has when it takes over.
func (h *history) succeed() {
	h.to.SetCopy(h.p, engine.NoCopy)
	h.to.OpenFeed(0, func() {})
	h.to.Feed(h.p, 0, engine.Mark{Kind: 1})
	h.last.Drop(h.p)
	for cursor, done, more := uint64(0), false, true; !done || more; {
		if !done {
			cursor, done = h.to.Snapshot(h.p, 0, cursor, 50_000, now()+h.off.Milliseconds())
		}
		more = false
		for shard := range h.to.Shards() {
			effects, left := h.to.Collect(0, shard, nil, 1<<20)
			more = more || left || len(effects) > 0
			if err := h.last.Apply(effects, -h.off.Milliseconds(), now(), takesAll{}); err != nil {
				h.t.Fatalf("%s: the successor cannot apply: %v", h.kind.name, err)
			}
		}
	}
}

// read returns all of a key, and "" if there is none. Times are rounded to minutes.
func (h *history) read(c *client, key string) string {
	args := append([]string{h.kind.whole[0], key}, h.kind.whole[1:]...)
	c.send(strings.Join(args, " "))
	reply := string(c.read())
	texts := strings.SplitAfter(reply, "\r\n")
	if step := 2 * h.kind.sorted; step > 0 { // a string has two lines
		var groups []string
		for rest := texts[1:]; len(rest) >= step; rest = rest[step:] {
			groups = append(groups, strings.Join(rest[:step], ""))
		}
		slices.Sort(groups)
		reply = texts[0] + strings.Join(groups, "")
	}
	if h.kind.rest != nil {
		reply += h.kind.rest(h, c, key)
	}
	if reply == "*0\r\n" || reply == "$-1\r\n" {
		return ""
	}
	c.send("PTTL " + key)
	left, _ := resp.DecodeInt(c.read())
	if left > 0 {
		left = (left + 30_000) / 60_000
	}
	return reply + strconv.FormatInt(left, 10)
}

// compare compares what owner and successor have. mayLack says that keys may be absent there.
func (h *history) compare(mayLack bool) {
	for i := range historyKeys {
		var want, got string
		same := func() bool {
			want, got = h.read(h.owner, h.named(i)), h.read(h.successor, h.named(i))
			return got == want || mayLack && got == ""
		}
		// What expires in the next milliseconds may be there once, and then not.
		for begin := time.Now(); !same(); {
			if time.Since(begin) > time.Second {
				h.t.Fatalf("history %s, key %s: the follower has %d bytes\n%.300q\nthe owner %d\n%.300q", h.tag, h.named(i), len(got), got, len(want), want)
			}
		}
	}
}

// TestHistories: whatever happens to its stream, a follower has what its owner has, or at worst
// lacks keys.
func TestHistories(t *testing.T) {
	each := *histories
	if each == 0 {
		each = 5
		if testing.Short() {
			each = 2
		}
	}
	config := func(c *Config) { c.Shards, c.Memory, c.Group = 2, 128<<20, newGroup(t, 1) }
	owner, successor := startLeveled(t, config), startLeveled(t, config)
	owner.engine.OpenFeed(historyReceiver, func() {})
	from, to := dial(t, owner.Addr()), dial(t, successor.Addr())
	for i, kind := range historyKinds {
		if !isBuilt(kind.whole[0]) {
			continue
		}
		overflowed := 0
		for n := range each {
			seed := uint64(i*1_000_000 + n)
			h := &history{
				t: t, r: rand.New(rand.NewPCG(seed, 16)), kind: kind, tag: fmt.Sprintf("%s%d", kind.name, n),
				owner: from, successor: to, from: owner.engine, last: successor.engine, lacks: map[string]bool{},
			}
			h.run()
			overflowed += h.overflowed
		}
		t.Logf("%s: %d histories, the log overflowed %d times", kind.name, each, overflowed)
	}
}

// run runs one history.
func (h *history) run() {
	h.p = partitionOf(h.named(0))
	h.elements = []int{6, 150, 600}[h.r.IntN(3)]
	h.off = []time.Duration{0, 3 * time.Hour, -3 * time.Hour}[h.r.IntN(3)]
	h.evicts = h.r.IntN(4) == 0
	memory := int64(32 << 20)
	if h.evicts {
		memory = 2 << 20
	}
	to, err := engine.New(engine.Config{MaxBytes: memory, Shards: 1, Forms: types.Forms()})
	if err != nil {
		h.t.Fatal(err)
	}
	defer to.Close()
	h.to = to
	for range 10 + h.r.IntN(60) {
		h.work()
		for range h.r.IntN(4) {
			h.stir()
		}
	}
	early := h.r.IntN(3) == 0 && h.fed
	if early {
		for h.fed && h.collect(1<<20) {
		}
	} else {
		h.complete()
	}
	// Until it has what it asked for, it lacks it.
	lacks := !h.fed || !h.whole || len(h.lacks) > 0
	h.succeed()
	h.compare(lacks || h.evicts)
	h.from.CloseFeed(historyReceiver)
	h.from.OpenFeed(historyReceiver, func() {})
	for i := range historyKeys {
		h.owner.do("DEL " + h.named(i))
	}
	h.last.Drop(h.p)
}
