package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// streamModel is a stream in memory.
type streamModel struct {
	entries []StreamEntry
	info    StreamInfo
	groups  []groupModel
}

type groupModel struct {
	StreamGroup
	consumers []StreamConsumer
	pending   []StreamPending
}

// readModel reads a payload.
func readModel(payload []byte) (m streamModel, err error) {
	s, err := ReadStream(payload)
	if err != nil {
		return m, err
	}
	for x, ok := s.Entry(); ok; x, ok = s.Entry() {
		kept := StreamEntry{ID: x.ID}
		for _, b := range x.Strings {
			kept.Strings = append(kept.Strings, slices.Clone(b))
		}
		m.entries = append(m.entries, kept)
	}
	m.info, _ = s.Info()
	for g, ok := s.Group(); ok; g, ok = s.Group() {
		g.Name = slices.Clone(g.Name)
		group := groupModel{StreamGroup: g}
		for c, ok := s.Consumer(); ok; c, ok = s.Consumer() {
			c.Name = slices.Clone(c.Name)
			group.consumers = append(group.consumers, c)
		}
		for p, ok := s.Pending(); ok; p, ok = s.Pending() {
			group.pending = append(group.pending, p)
		}
		m.groups = append(m.groups, group)
	}
	return m, s.Err()
}

// write makes the payload of a stream.
func (m *streamModel) write(t testing.TB, actives bool) []byte {
	t.Helper()
	var out []byte
	w := StreamWriter{Actives: actives, Out: func(piece []byte) error {
		out = append(out, piece...)
		return nil
	}}
	for i, x := range m.entries {
		if w.Entry(x); i%50 == 0 {
			_ = w.Flush()
		}
	}
	w.Info(m.info)
	for _, g := range m.groups {
		w.Group(g.StreamGroup)
		for _, p := range g.pending {
			w.Pending(p)
		}
		w.Consumers(len(g.consumers))
		for i, c := range g.consumers {
			w.Consumer(c)
			for _, p := range g.pending {
				if p.Consumer == i {
					w.PendingID(p.ID)
				}
			}
		}
	}
	head, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	payload := append(head, out...)
	if err := Check(payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

// String says all about a stream but the times when its consumers were active, if they are those when
// they were seen.
func (m *streamModel) String() string {
	var b strings.Builder
	id := func(id StreamID) string { return fmt.Sprintf("%d-%d", id.Ms, id.Seq) }
	for _, x := range m.entries {
		fmt.Fprintf(&b, "%s %.40q\n", id(x.ID), x.Strings)
	}
	fmt.Fprintf(&b, "len %d first %s last %s deleted %s added %d groups %d\n", m.info.Len, id(m.info.First), id(m.info.Last),
		id(m.info.MaxDeleted), m.info.Added, m.info.Groups)
	for _, g := range m.groups {
		fmt.Fprintf(&b, "group %q last %s read %d pending %d consumers %d\n", g.Name, id(g.Last), g.Read, g.Pending, g.Consumers)
		for _, c := range g.consumers {
			fmt.Fprintf(&b, "consumer %q seen %d pending %d", c.Name, c.Seen, c.Pending)
			if c.Active != c.Seen {
				fmt.Fprintf(&b, " active %d", c.Active)
			}
			b.WriteByte('\n')
		}
		for _, p := range g.pending {
			fmt.Fprintf(&b, "pending %s of %d at %d count %d\n", id(p.ID), p.Consumer, p.Delivered, p.Count)
		}
	}
	return b.String()
}

// randomStream makes a stream that Redis could have.
func randomStream(r *rand.Rand) (m streamModel) {
	names := []string{"a", "field", "-12", "7", strings.Repeat("n", 70)}
	value := func() []byte {
		switch r.IntN(12) {
		case 0:
			return []byte(strings.Repeat("long", r.IntN(3000)))
		case 1:
			return nil
		case 2, 3, 4:
			return fmt.Appendf(nil, "%d", int64(r.Uint64())>>r.IntN(64))
		}
		return []byte(strings.Repeat("v", r.IntN(60)))
	}
	id := StreamID{r.Uint64N(1 << 40), r.Uint64N(9)}
	var all []StreamID
	for range r.IntN(400) * r.IntN(2) {
		switch r.IntN(3) {
		case 0:
			id.Ms, id.Seq = id.Ms+1+r.Uint64N(1<<(r.Uint64N(30))), r.Uint64N(5)
		default:
			id.Seq += 1 + r.Uint64N(3)
		}
		x := StreamEntry{ID: id}
		for i := range 1 + r.IntN(3)*r.IntN(2) {
			name := names[i%2]
			if r.IntN(9) == 0 {
				name = names[r.IntN(len(names))]
			}
			x.Strings = append(x.Strings, []byte(name), value())
		}
		m.entries, all = append(m.entries, x), append(all, id)
	}
	m.info = StreamInfo{Len: len(all), Last: id, Added: int64(len(all) + r.IntN(5)), Groups: r.IntN(4)}
	if len(all) > 0 {
		m.info.First = all[0]
	}
	if r.IntN(2) == 0 {
		m.info.MaxDeleted = StreamID{id.Ms / 2, 1}
	}
	for i := range m.info.Groups {
		g := groupModel{StreamGroup: StreamGroup{Name: fmt.Appendf(nil, "%d", i), Last: id, Read: int64(r.IntN(9)) - 1}}
		for c := range r.IntN(6) {
			g.consumers = append(g.consumers, StreamConsumer{
				Name: fmt.Appendf(nil, "consumer%d", c), Seen: r.Int64N(1 << 41), Active: r.Int64N(1<<41) - 1,
			})
		}
		if g.Consumers = len(g.consumers); g.Consumers > 0 {
			for _, id := range all {
				if r.IntN(3) == 0 {
					c := r.IntN(1 + r.IntN(g.Consumers))
					g.consumers[c].Pending++
					g.pending = append(g.pending, StreamPending{id, c, r.Int64N(1 << 41), r.Int64N(1 << r.Int64N(40))})
				}
			}
		}
		g.Pending = len(g.pending)
		m.groups = append(m.groups, g)
	}
	return m
}

func TestStreamRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		m := randomStream(rand.New(rand.NewPCG(seed, 1)))
		got, err := readModel(m.write(t, true))
		if err != nil || got.String() != m.String() {
			t.Fatalf("seed %d: %v, got\n%s\nwant\n%s", seed, err, got.String(), m.String())
		}
		payload := m.write(t, false)
		for _, g := range m.groups {
			for i := range g.consumers {
				g.consumers[i].Active = g.consumers[i].Seen
			}
		}
		got, err = readModel(payload)
		if err != nil || got.String() != m.String() {
			t.Fatalf("seed %d without times: %v, got\n%s\nwant\n%s", seed, err, got.String(), m.String())
		}
	}
}

// ints makes entries of a listpack.
func ints(all ...int64) (entries []string) {
	for _, n := range all {
		entry := appendPackInt(nil, n)
		entries = append(entries, string(entry[:len(entry)-backlenSize(1)]))
	}
	return entries
}

// node is a node of a stream whose listpack has these entries.
func node(id StreamID, entries ...[]string) string {
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, id.Ms), id.Seq)
	return text(string(key)) + text(listpack(slices.Concat(entries...)...))
}

func words(all ...string) (entries []string) {
	for _, s := range all {
		entries = append(entries, string(appendPackHead(nil, len(s)))+s)
	}
	return entries
}

// rawID is an ID as it stands among pending entries.
func rawID(ms, seq uint64) string {
	return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ms), seq))
}

// nodes of a stream with the entries 5-1 to 5-4 and 9-0, of which 5-2 and 5-3 are deleted. 5-4 has
// names of its own.
var nodes = node(StreamID{5, 1},
	ints(2, 2, 2), words("a", "b"), ints(0),
	ints(2, 0, 0), words("x"), ints(-7, 5),
	ints(3, 0, 1), words("x", "y"), ints(5),
	ints(1, 0, 2, 1), words("c", "z"), ints(6),
	ints(0, 0, 3, 2), words("c", "z", "d"), ints(1<<40, 8),
) + node(StreamID{9, 0}, ints(1, 0, 1), words("a"), ints(0), ints(2, 0, 0), words(strings.Repeat("l", 100)), ints(4))

// streamPayloads are written as the format defines them, with types that redis-server 7.0 does not write
// (15, 21) and with what only other versions do. knows says that redis-server 7.0 reads the payload.
var streamPayloads = []struct {
	head    string
	version uint16
	want    string
	knows   bool
}{
	{
		"\x0f\x02" + nodes + "\x03\x09\x00" + "\x03" +
			text("g") + "\x05\x04" + "\x02" + rawID(5, 1) + little(1000) + "\x01" + rawID(9, 0) + little(2000) + "\x07" +
			"\x02" + text("alice") + little(3000) + "\x01" + rawID(9, 0) + text("bob") + little(4000) + "\x01" + rawID(5, 1) +
			text("h") + "\x09\x00\x00\x00" + text("i") + "\x05\x01\x00\x00", 9,
		`5-1 ["a" "x" "b" "-7"]
5-4 ["c" "z" "d" "1099511627776"]
9-0 ["a" "` + strings.Repeat("l", 40) + `"]
len 3 first 5-1 last 9-0 deleted 0-0 added 3 groups 3
group "g" last 5-4 read -1 pending 2 consumers 2
consumer "alice" seen 3000 pending 1
consumer "bob" seen 4000 pending 1
pending 5-1 of 1 at 1000 count 1
pending 9-0 of 0 at 2000 count 7
group "h" last 9-0 read 3 pending 0 consumers 0
group "i" last 5-1 read 1 pending 0 consumers 0
`, true,
	},
	{
		"\x13\x02" + nodes + "\x03\x0a\x01\x05\x01\x05\x03\x06" + "\x02" +
			bulk("1") + "\x00\x00\x81" + little(math.MaxUint64) + "\x00\x00" +
			text("g") + "\x09\x00\x05" + "\x03" + rawID(1, 0) + little(1) + "\x01" + rawID(5, 1) + little(2) + "\x02" + rawID(5, 4) + little(3) + "\x03" +
			"\x02" + bulk("-5") + little(9) + "\x02" + rawID(1, 0) + rawID(5, 4) + bulk("bob") + little(9) + "\x01" + rawID(5, 1), 10,
		`5-1 ["a" "x" "b" "-7"]
5-4 ["c" "z" "d" "1099511627776"]
9-0 ["a" "` + strings.Repeat("l", 40) + `"]
len 3 first 5-1 last 10-1 deleted 5-3 added 6 groups 2
group "1" last 0-0 read -1 pending 0 consumers 0
group "g" last 9-0 read 5 pending 3 consumers 2
consumer "-5" seen 9 pending 2
consumer "bob" seen 9 pending 1
pending 1-0 of 0 at 1 count 1
pending 5-1 of 1 at 2 count 2
pending 5-4 of 0 at 3 count 3
`, true,
	},
	{
		"\x15\x01" + node(StreamID{1, 5}, ints(2, 0, 1), words("f"), ints(0), ints(2, 0, 0, 1, 4), ints(2, 1, -5, 2, 4)) +
			"\x02\x02\x00\x01\x05\x00\x00\x02" + "\x01" + text("g") + "\x02\x00\x02" + "\x00" +
			"\x02" + text("never") + little(7) + little(math.MaxUint64) + "\x00" + text("once") + little(9) + little(8) + "\x00", 11,
		`1-5 ["f" "1"]
2-0 ["f" "2"]
len 2 first 1-5 last 2-0 deleted 0-0 added 2 groups 1
group "g" last 2-0 read 2 pending 0 consumers 2
consumer "never" seen 7 pending 0 active -1
consumer "once" seen 9 pending 0 active 8
`, false,
	},
	{ // what XGROUP CREATE … MKSTREAM makes
		"\x0f\x00\x00\x00\x00\x01" + text("g") + "\x00\x00\x00\x00", 9,
		"len 0 first 0-0 last 0-0 deleted 0-0 added 0 groups 1\ngroup \"g\" last 0-0 read 0 pending 0 consumers 0\n", true,
	},
	{ // a stream that has lost its entries
		"\x13\x00\x00\x05\x04\x00\x00\x05\x04\x02\x00", 10,
		"len 0 first 0-0 last 5-4 deleted 5-4 added 2 groups 0\n", true,
	},
}

func TestStream(t *testing.T) {
	for i, x := range streamPayloads {
		payload := withVersion(x.head, x.version)
		if err := Check(payload); err != nil {
			t.Fatal(err)
		}
		if got, err := readModel(payload); err != nil || got.String() != x.want {
			t.Errorf("%d: %v, got\n%swant\n%s", i, err, got.String(), x.want)
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	f := func(head string) {
		t.Helper()
		if got, err := readModel(withVersion(head, 11)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v\n%s", head, err, got.String())
		}
	}
	one := func(entries ...[]string) string { return node(StreamID{1, 0}, entries...) }
	master, entry := slices.Concat(ints(1, 0, 1), words("f"), ints(0)), ints(2, 0, 0, 1, 4)
	good := func(head string) {
		t.Helper()
		if _, err := readModel(withVersion(head, 11)); err != nil {
			t.Errorf("%q: %v", head, err)
		}
	}
	good("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00") // which the others are like
	f("\x00\x01a")
	f("\x01\x01\x01a")
	f("\x13")
	f("\x13\x01")
	f("\x13\x81\xff\xff\xff\xff\xff\xff\xff\xff")
	f("\x13\x01" + text("too short") + text(listpack(slices.Concat(master, entry)...)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(master) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")                    // no entry
	f("\x13\x01" + one(ints(1, 0, 1), words("f")) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00") // no end of the master
	f("\x13\x01" + one(ints(1, 0, 1), words("f"), ints(1), entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(ints(1, 0, math.MaxInt64), words("f"), ints(0), entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(ints(1, 0, -1), words("f"), ints(0), entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(words("1"), ints(0, 1), words("f"), ints(0), entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(master, ints(2, 0, 0, 1, 5)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00") // a wrong count
	f("\x13\x01" + one(master, ints(2, 0, 0, 1)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")    // none
	f("\x13\x01" + one(master, ints(0, 0, 0, 0, 4)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00") // no fields
	f("\x13\x01" + one(master, ints(0, 0, 0, math.MaxInt64, 1, 1, 6)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(master, ints(0, 0, 0, math.MinInt64, 1, 1, 6)) + "\x01\x01\x00\x01\x00\x00\x00\x01\x00")
	f("\x13\x01" + one(master, entry, ints(2, 0, 1, 1, 4)) + "\x02\x01\x01\x01\x00\x00\x00\x02\x00")               // one more than its head says
	f("\x13\x01" + one(ints(2, 0, 1), words("f"), ints(0), entry, entry) + "\x02\x01\x00\x01\x00\x00\x00\x02\x00") // twice the same
	f("\x13\x02" + one(master, entry) + one(master, entry) + "\x02\x01\x00\x01\x00\x00\x00\x02\x00")
	f("\x13\x01" + one(master, entry) + "\x02\x01\x00\x01\x00\x00\x00\x02\x00") // a wrong length
	f("\x13\x01" + one(master, entry) + "\x01\x00\x00\x01\x00\x00\x00\x01\x00") // the last ID is below an entry's
	f("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x00\x00") // fewer were added than are there
	f("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x81" + little(math.MaxUint64) + "\x00")
	f("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x81" + little(math.MaxUint64))
	f("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x01")
	f("\x13\x01" + one(master, entry) + "\x01\x01\x00\x01\x00\x00\x00\x01\x01") // no group
	groups := func(groups string) { t.Helper(); f("\x13\x00\x00\x09\x00\x00\x00\x00\x00\x09" + groups) }
	pel := func(all ...uint64) (pel string) {
		for _, ms := range all {
			pel += rawID(ms, 0) + little(ms) + "\x01"
		}
		return string(rune(len(all))) + pel
	}
	own := func(all ...uint64) (ids string) {
		for _, ms := range all {
			ids += rawID(ms, 0)
		}
		return text("c") + little(1) + string(rune(len(all))) + ids
	}
	good("\x13\x00\x00\x09\x00\x00\x00\x00\x00\x09\x01" + text("g") + "\x01\x00\x00" + pel(1, 2) + "\x01" + own(1, 2))
	groups("\x01" + text("g") + "\x01")
	groups("\x01" + text("g") + "\x01\x00\x81" + strings.Repeat("\xff", 7) + "\xfe\x00\x00") // read -2
	groups("\x01" + text("g") + "\x01\x00\x00\x81" + strings.Repeat("\xff", 8) + "\x00")     // far too many pending
	groups("\x01" + text("g") + "\x01\x00\x00\x00\x81" + strings.Repeat("\xff", 8))          // far too many consumers
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1) + "\x00")                            // of nobody
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1, 2) + "\x01" + own(1))                // one of nobody
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1) + "\x01" + own(2))                   // another
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1) + "\x01" + own(1, 2))                // one more
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1, 2) + "\x02" + own(1) + own(1))       // twice the same
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1, 1) + "\x02" + own(1) + own(1))       // and here too
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(2, 1) + "\x01" + own(2, 1))             // descending
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1, 2) + "\x01" + own(2, 1))             // descending
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1) + "\x01" + text("c") + little(1) + "\x81" + strings.Repeat("\xff", 8))
	groups("\x01" + text("g") + "\x01\x00\x00" + pel(1) + "\x01" + text("c") + little(math.MaxUint64) + "\x01" + rawID(1, 0))
	groups("\x01" + text("g") + "\x01\x00\x00\x01" + rawID(1, 0) + little(math.MaxUint64) + "\x01\x01" + own(1))
	groups("\x01" + text("g") + "\x01\x00\x00\x01" + rawID(1, 0) + little(1) + "\x81" + strings.Repeat("\xff", 8) + "\x01" + own(1))
}
