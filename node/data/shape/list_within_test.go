package shape

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// modelApply does to a plain list what a change says. Filling an element does not change it here.
func modelApply(list []string, c *change) []string {
	list = slices.Clone(list)
	switch c.op {
	case opInsert:
		r := changeReader{d: c.text}
		for i := range c.n {
			list = slices.Insert(list, c.position+i, string(r.bytes()))
		}
	case opRemove:
		return slices.Delete(list, c.position, c.position+c.n)
	case opSet:
		list[c.position] = string(c.text)
	case opStub:
		list = slices.Insert(list, c.position, "long")
	case opSetLong:
		list[c.position] = "long"
	}
	return list
}

// Whatever changes while a snapshot is at whatever place, also in the middle of a long element, the
// receiver has the elements in front of the place that listWithin returns, and nothing else.
func TestListWithin(t *testing.T) {
	whole := []string{"a", "b", "c", "d", "e"}
	var deltas [][]byte
	for at := range len(whole) + 1 {
		insert := binary.AppendUvarint(beginChange(nil, opInsert, at), 2)
		deltas = append(deltas, appendText(appendText(insert, []byte("x")), []byte("y")),
			binary.AppendUvarint(beginChange(nil, opStub, at), maxPiece+1))
		for n := 1; at+n <= len(whole); n++ {
			deltas = append(deltas, binary.AppendUvarint(beginChange(nil, opRemove, at), uint64(n)))
		}
		if at < len(whole) {
			deltas = append(deltas, appendText(beginChange(nil, opSet, at), []byte("z")),
				binary.AppendUvarint(beginChange(nil, opSetLong, at), maxPiece+1),
				appendText(binary.AppendUvarint(beginChange(nil, opFill, at), 0), []byte("bytes")))
		}
	}
	for _, d := range deltas {
		for have := range len(whole) + 1 {
			for _, offset := range []int{0, maxPiece} {
				if offset > 0 && have == len(whole) {
					continue
				}
				wantWithin(t, whole, d, have, offset)
			}
		}
	}
}

// wantWithin checks what becomes of one delta at one place.
func wantWithin(t *testing.T, whole []string, d []byte, have, offset int) {
	t.Helper()
	has := have
	if offset > 0 {
		has++
	}
	c, _, err := nextChange(d)
	if err != nil {
		t.Fatal(err)
	}
	owner, receiver := modelApply(whole, &c), whole[:has:has]
	within, place := listWithin(engine.Parts{}, d, placeOf(have, offset), nil)
	for len(within) > 0 {
		var part change
		if part, within, err = nextChange(within); err != nil {
			t.Fatal(err)
		}
		receiver = modelApply(receiver, &part)
	}
	next, left := splitPlace(place)
	if left > 0 {
		next++ // the last one is in pieces
	}
	what := fmt.Sprintf("change %d of %d at %d, with %d elements and %d bytes", c.op, c.n, c.position, have, offset)
	if next > len(owner) || !slices.Equal(receiver, owner[:min(next, len(owner))]) {
		t.Errorf("%s: the receiver has %q of %q, the snapshot goes on at %d", what, receiver, owner, next)
	}
	if left > 0 && (offset == 0 || owner[next-1] != whole[have]) {
		t.Errorf("%s: the snapshot goes on in %q, which was not in pieces", what, owner[next-1])
	}
}
