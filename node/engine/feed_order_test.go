package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A line is a value with parts for tests whose elements are named by position, as a list's are:
// numbers, one behind the other, in one part. Its own bytes say how many there are. A delta is a
// list of edits, each an operation, a position and a number.
const (
	lineType = TypeList
	lineOwn  = 8
	lineEdit = 12

	lineInsert = 1
	lineDelete = 2
	lineSet    = 3
)

var errLine = errors.New("malformed delta of a line")

// lines is the form of lines.
func lines() map[Type]Form {
	return map[Type]Form{lineType: {Apply: applyLine, Dump: dumpLine, Within: withinLine}}
}

func lineDelta(dst []byte, op, at, number uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, op), at), number)
}

func lineNumbers(v Parts) (numbers []uint32) {
	for i := range binary.LittleEndian.Uint64(v.Own()) {
		numbers = append(numbers, binary.LittleEndian.Uint32(v.Part(0, 0)[4*i:]))
	}
	return numbers
}

// applyLine makes the edits, the obvious way.
func applyLine(v Parts, delta []byte) error {
	numbers := lineNumbers(v)
	for ; len(delta) >= lineEdit; delta = delta[lineEdit:] {
		op, at, number := binary.LittleEndian.Uint32(delta), int(binary.LittleEndian.Uint32(delta[4:])), binary.LittleEndian.Uint32(delta[8:])
		switch {
		case op == lineInsert && at <= len(numbers):
			numbers = slices.Insert(numbers, at, number)
		case op == lineDelete && at < len(numbers):
			numbers = slices.Delete(numbers, at, at+1)
		case op == lineSet && at < len(numbers):
			numbers[at] = number
		default:
			return errLine
		}
	}
	if err := v.Reserve(4*len(numbers) + 1); err != nil {
		return err
	}
	if v.Len(0) == 0 {
		if _, _, err := v.Add(0, 1); err != nil {
			return err
		}
		if err := v.Reserve(4*len(numbers) + 1); err != nil {
			return err
		}
	}
	part, err := v.Resize(0, 0, 4*len(numbers)+1)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		binary.LittleEndian.PutUint32(part[4*i:], number)
	}
	binary.LittleEndian.PutUint64(v.Own(), uint64(len(numbers)))
	return nil
}

func dumpLine(v Parts, from Place, dst []byte, atMost int) (delta []byte, next Place, done bool) {
	numbers := lineNumbers(v)
	for ; int(from[0]) < len(numbers) && len(dst) < atMost; from[0]++ {
		dst = lineDelta(dst, lineInsert, uint32(from[0]), numbers[from[0]])
	}
	return dst, from, int(from[0]) >= len(numbers)
}

// withinLine keeps the edits of the first elements, and counts how many those are.
func withinLine(_ Parts, delta []byte, place Place, dst []byte) (within []byte, next Place) {
	for ; len(delta) >= lineEdit; delta = delta[lineEdit:] {
		op, at := binary.LittleEndian.Uint32(delta), uint64(binary.LittleEndian.Uint32(delta[4:]))
		if at >= place[0] {
			continue
		}
		switch op {
		case lineInsert:
			place[0]++
		case lineDelete:
			place[0]--
		}
		dst = append(dst, delta[:lineEdit]...)
	}
	return dst, place
}

// lineFeed has an owner of lines, a follower, and one that the follower feeds.
type lineFeed struct {
	tb      testing.TB
	engines [3]*Engine
	r       *rand.Rand
}

const linePartition = 5

func newLineFeed(tb testing.TB, seed uint64) *lineFeed {
	f := &lineFeed{tb: tb, r: rand.New(rand.NewPCG(seed, 3))}
	for i := range f.engines {
		f.engines[i] = open(tb, Config{MaxBytes: 32 << 20, Shards: 1 << i, Forms: lines()})
		f.engines[i].OpenFeed(testReceiver, func() {})
	}
	return f
}

// edit makes some random edits of a line of the owner, which is made if there is none.
func (f *lineFeed) edit(key string, edits int) {
	f.tb.Helper()
	with(f.engines[0], linePartition, 1, func(t Txn) {
		v, ok := bag(t, key)
		if !ok {
			err := t.Reserve(Room{Roots: []int{len(key) + lineOwn}})
			if err == nil {
				v, err = t.NewParts([]byte(key), lineType, lineOwn, 0)
			}
			if err != nil {
				f.tb.Fatal(err)
			}
		}
		n, delta := int(binary.LittleEndian.Uint64(v.Own())), []byte(nil)
		for range edits {
			op := uint32(lineInsert)
			if n > 0 && f.r.IntN(20) > 10 {
				op = lineDelete + uint32(f.r.IntN(2))
			}
			at := 0
			switch most := n + int(lineDelete-min(op, lineDelete)); f.r.IntN(3) { // an insertion may be behind the last
			case 0:
				at = max(0, most-1) // at the end
			case 1:
				at = f.r.IntN(max(1, most))
			}
			switch op {
			case lineInsert:
				n++
			case lineDelete:
				n--
			}
			delta = lineDelta(delta, op, uint32(at), f.r.Uint32())
		}
		if err := applyLine(v, delta); err != nil {
			f.tb.Fatal(err)
		}
		v.Note(delta)
	})
}

// step takes a piece of the snapshot of engine i for the next one, sometimes, and lets that apply
// what is logged.
func (f *lineFeed) step(i int, cursor *uint64, done *bool) {
	f.tb.Helper()
	e := f.engines[i]
	if !*done && f.r.IntN(3) > 0 {
		*cursor, *done = e.Snapshot(linePartition, testReceiver, *cursor, 1+f.r.IntN(3000), 1)
	}
	if f.r.IntN(2) == 0 {
		follow(f.tb, e, f.engines[i+1], testReceiver, 0, 1, &takesAll{})
		want := f.contents(i)
		for key, numbers := range f.contents(i + 1) { // what is whole there
			if !slices.Equal(numbers, want[key]) {
				f.tb.Fatalf("engine %d has %d numbers of %s while the one before has %d, or others", i+1, len(numbers), key, len(want[key]))
			}
		}
	}
}

func (f *lineFeed) contents(i int) map[string][]uint32 {
	got := map[string][]uint32{}
	for k := range 3 {
		key := fmt.Sprint("line:", k)
		with(f.engines[i], linePartition, 1, func(t Txn) {
			item, found := t.Peek([]byte(key))
			if v, ok := t.Parts(item); found && ok {
				got[key] = lineNumbers(v)
			}
		})
	}
	return got
}

// runLines feeds lines through two engines, each snapshot in chunks between edits.
func runLines(tb testing.TB, seed uint64) {
	f := newLineFeed(tb, seed)
	change := func() { f.edit(fmt.Sprint("line:", f.r.IntN(3)), 1+f.r.IntN(4)) }
	for k := range 3 {
		f.edit(fmt.Sprint("line:", k), 800)
	}
	var cursors [2]uint64
	var done [2]bool
	f.engines[0].Feed(linePartition, testReceiver, Mark{})
	for i := 0; !done[0] || !done[1]; i++ {
		if i == 5 {
			f.engines[1].Feed(linePartition, testReceiver, Mark{})
		}
		change()
		f.step(0, &cursors[0], &done[0])
		if i >= 5 {
			f.step(1, &cursors[1], &done[1])
		}
	}
	for range 20 {
		change()
	}
	for i := range 2 {
		follow(tb, f.engines[i], f.engines[i+1], testReceiver, 0, 1, &takesAll{})
	}
	want := f.contents(0)
	for i := 1; i < 3; i++ {
		f.engines[i].checkSums(tb)
		for key, numbers := range f.contents(i) {
			if !slices.Equal(numbers, want[key]) {
				tb.Fatalf("seed %d: engine %d has %d numbers of %s, want %d, or others", seed, i, len(numbers), key, len(want[key]))
			}
		}
		if got := len(f.contents(i)); got != len(want) {
			tb.Fatalf("seed %d: engine %d has %d lines, want %d", seed, i, got, len(want))
		}
	}
}

// A value whose elements are named by position arrives as it is, whatever is edited while its
// chunks are on their way, also at a receiver of the receiver.
func TestFeedOrdered(t *testing.T) {
	oneGoroutine(t)
	for range 40 {
		runLines(t, rand.Uint64())
	}
}

func FuzzFeedOrdered(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { runLines(t, seed) })
}
