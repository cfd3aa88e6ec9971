package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// A row is a value with parts for tests: numbers by position, each in a part.
const (
	rowType = engine.TypeList
	rowCell = 8 // of a delta: position and number
)

var errRow = errors.New("malformed delta of a row")

var rows = map[engine.Type]engine.Form{rowType: {Apply: applyRow, Dump: dumpRow}}

func rowDelta(dst []byte, position, number int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, uint32(position)), uint32(number))
}

func applyRow(v engine.Parts, delta []byte) error {
	for ; len(delta) >= rowCell; delta = delta[rowCell:] {
		at := int(binary.LittleEndian.Uint32(delta))
		if at > v.Len(0) {
			return errRow
		}
		if at == v.Len(0) {
			if err := v.Reserve(rowCell); err != nil {
				return err
			}
			if _, _, err := v.Add(0, rowCell); err != nil {
				return err
			}
		}
		copy(v.Edit(0, at), delta[4:rowCell])
	}
	return nil
}

func dumpRow(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	row := int(from[0])
	for ; row < v.Len(0) && len(dst) < atMost; row++ {
		dst = rowDelta(dst, row, int(binary.LittleEndian.Uint32(v.Part(0, row))))
	}
	return dst, engine.Place{uint64(row)}, row == v.Len(0)
}

// rowLink has an engine with rows, its sender, and a receiver of what the sender sends.
type rowLink struct {
	t         *testing.T
	from, to  *Config
	sender    *Sender
	conn      *Connection
	partition uint16
	section   uint16 // of the rows
}

func newRowLink(t *testing.T) *rowLink {
	l := &rowLink{t: t, from: newConfigWith(t, rows), to: newConfigWith(t, rows), partition: 7, section: 7}
	l.sender = NewSenders(l.from).To(other)
	l.conn, _ = NewReceivers(l.to, func(string) Taker { return &willing{} }).Open("a", 9)
	l.sender.Sync(l.partition, 1)
	return l
}

// set sets a number of the row, and makes the row if there is none.
func (l *rowLink) set(key string, position, number int) {
	l.t.Helper()
	x := l.from.Engine.Lock(l.section, l.from.UnixMilli())
	defer x.Unlock()
	item, found := x.Peek([]byte(key))
	v, ok := x.Parts(item)
	if !found || !ok {
		err := x.Reserve(engine.Room{Roots: []int{len(key)}})
		if err == nil {
			v, err = x.NewParts([]byte(key), rowType, 0, 0)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	delta := rowDelta(nil, position, number)
	if err := applyRow(v, delta); err != nil {
		l.t.Fatal(err)
	}
	v.Note(delta)
}

func rowOf(e *engine.Engine, section uint16, key string) (numbers []uint32) {
	x := e.Lock(section, 1)
	defer x.Unlock()
	item, found := x.Peek([]byte(key))
	if v, ok := x.Parts(item); found && ok {
		for i := range v.Len(0) {
			numbers = append(numbers, binary.LittleEndian.Uint32(v.Part(0, i)))
		}
	}
	return numbers
}

// round makes batches and has the receiver answer them. It returns how many bytes they had.
func (l *rowLink) round() (sent int) {
	l.t.Helper()
	s := l.sender
	s.round()
	s.round()
	b := slices.Clone(s.window.Unsent())
	s.window.Sent(len(b))
	sent = len(b)
	var answer replica.Answer
	for len(b) > 0 {
		var parser resp.Parser
		parser.SetLimits(resp.Limits{})
		if parser.Parse(b) != resp.Done {
			l.t.Fatalf("%d bytes are no batch", len(b))
		}
		args := parser.Args()
		seq, _ := resp.ParseInt(args[2])
		reply, err := l.conn.Effects(nil, Batch{Seq: uint64(seq), Sent: 1, Now: 1}, args[4])
		if err == nil {
			err = answer.Parse(reply)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if len(answer.Lacks) > 0 {
			s.asked(answer.Seq, answer.Lacks)
		}
		s.acknowledged(answer.Seq)
		b = b[parser.Len():]
	}
	return sent
}

func (l *rowLink) same(key string) bool {
	return slices.Equal(rowOf(l.from.Engine, l.section, key), rowOf(l.to.Engine, l.section, key))
}

// A receiver that has lost a value asks for it with its next change, and is sent it anew, once,
// while it changes on.
func TestLackingKeyIsSentAnew(t *testing.T) {
	for _, database := range []uint8{0, 3} {
		t.Run(fmt.Sprint("database ", database), func(t *testing.T) { lackingKeyIsSentAnew(t, database) })
	}
}

func lackingKeyIsSentAnew(t *testing.T, database uint8) {
	const length = 20_000 // several chunks
	l := newRowLink(t)
	l.section = engine.Section(l.partition, database)
	for i := range length {
		l.set("row", i, i)
	}
	for range 20 {
		l.round()
	}
	if !l.same("row") {
		t.Fatal("the receiver has not got the row")
	}
	x := l.to.Engine.Lock(l.section, 1)
	x.Delete([]byte("row")) // as if it was evicted
	x.Unlock()
	sent := 0
	for i := range 40 {
		l.set("row", i, length+i)
		sent += l.round()
	}
	if !l.same("row") {
		t.Errorf("the receiver has %d numbers, want %d, or others", len(rowOf(l.to.Engine, l.section, "row")), length)
	}
	if most := length * rowCell * 3 / 2; sent > most {
		t.Errorf("%d bytes are sent for a row of %d", sent, length*rowCell)
	}
}

// While the snapshot is on its way, changes of what it has not come to make the receiver ask in
// vain: nothing is sent twice.
func TestNothingIsLackingBeforeTheSnapshotEnds(t *testing.T) {
	const length = 20_000
	l := newRowLink(t)
	for _, key := range []string{"a", "b", "c"} {
		for i := range length {
			l.set(key, i, i)
		}
	}
	sent := 0
	for i := range 60 {
		for _, key := range []string{"a", "b", "c"} {
			l.set(key, i, length+i)
		}
		sent += l.round()
	}
	if !l.same("a") || !l.same("b") || !l.same("c") {
		t.Error("the receiver has other rows")
	}
	if most := 3 * length * rowCell * 5 / 4; sent > most {
		t.Errorf("%d bytes are sent for rows of %d", sent, 3*length*rowCell)
	}
}

// What is asked for of a partition whose feed has begun again, or ended, is not sent.
func TestLackOfAnOlderFeed(t *testing.T) {
	l := newRowLink(t)
	l.set("row", 0, 1)
	for range 5 {
		l.round()
	}
	seq := l.sender.Progress().Made
	lacks := replica.AppendLack(nil, l.partition, []byte("row"))
	l.sender.Stop(l.partition)
	l.sender.asked(seq, lacks)
	l.round()
	l.sender.Sync(l.partition, 1)
	l.round()
	l.sender.asked(seq, lacks)
	if asks := l.sender.takeAsks(); len(asks) > 0 {
		t.Errorf("%d keys are to be sent anew", len(asks))
	}
}
