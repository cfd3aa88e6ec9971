package engine

import (
	"encoding/binary"
	"errors"
	"testing"
)

// A bag is a value with parts for tests: byte strings by number, each in a part of its own, in the
// plane that the number says. A part has the element's number and length in front. The bag's own
// bytes have the number of the element that expires, and when.
const (
	bagType    = TypeHash
	bagOwn     = 16
	bagHead    = 8
	bagMoment  = 8 // where in the own bytes that is
	bagNothing = ^uint32(0)
)

var errBag = errors.New("malformed delta of a bag")

// bags is the form of bags.
func bags() map[Type]Form {
	return map[Type]Form{bagType: {Apply: applyBag, Dump: dumpBag, Expire: expireBag, Own: bagOwn}}
}

// newBag makes a bag, without reserving for it.
func newBag(t Txn, key []byte, at int64) (Parts, error) {
	v, err := t.NewParts(key, bagType, bagOwn, at)
	if err == nil {
		binary.LittleEndian.PutUint32(v.Own(), bagNothing)
	}
	return v, err
}

// mustBag makes an empty bag, with what it takes reserved.
func mustBag(tb testing.TB, t Txn, key string) Parts {
	tb.Helper()
	if err := t.Reserve(Room{Roots: []int{len(key) + bagOwn}}); err != nil {
		tb.Fatal(err)
	}
	v, err := newBag(t, []byte(key), 0)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func bagPlane(id uint32) int { return int(id % Planes) }

// bagFind is the part that has an element; -1 if none does.
func bagFind(v Parts, id uint32) (number int) {
	for n := range v.Len(bagPlane(id)) {
		if part := v.Part(bagPlane(id), n); part != nil && binary.LittleEndian.Uint32(part) == id {
			return n
		}
	}
	return -1
}

func bagBytes(part []byte) []byte {
	return part[bagHead:][:binary.LittleEndian.Uint32(part[4:])]
}

// bagSet sets an element. What it takes was reserved.
func bagSet(v Parts, id uint32, value []byte) error {
	plane, n := bagPlane(id), bagFind(v, id)
	var part []byte
	var err error
	if n < 0 {
		_, part, err = v.Add(plane, bagHead+len(value))
	} else {
		part, err = v.Resize(plane, n, bagHead+len(value))
	}
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(part, id)
	binary.LittleEndian.PutUint32(part[4:], uint32(len(value)))
	copy(part[bagHead:], value)
	v.Note(bagDelta(nil, id, value))
	return nil
}

// bagReserve makes room for elements of these lengths.
func bagReserve(v Parts, values ...int) error {
	for i := range values {
		values[i] += bagHead
	}
	return v.t.Reserve(Room{Parts: values, Spared: []Parts{v}})
}

// bagDelete removes an element, and the key with the last one.
func bagDelete(v Parts, id uint32) bool {
	n := bagFind(v, id)
	if n < 0 {
		return false
	}
	v.Free(bagPlane(id), n)
	v.Note(bagDelta(nil, id, nil))
	if bagCount(v) == 0 {
		v.Delete()
	}
	return true
}

func bagCount(v Parts) (n int) {
	for plane := range Planes {
		n += v.Count(plane)
	}
	return n
}

// bagExpire lets an element expire; another one does not any more.
func bagExpire(v Parts, id uint32, at int64) {
	binary.LittleEndian.PutUint32(v.Own(), id)
	binary.LittleEndian.PutUint64(v.Own()[bagMoment:], uint64(at))
	v.SetDue(at)
}

func expireBag(v Parts) {
	id := binary.LittleEndian.Uint32(v.Own())
	bagExpire(v, bagNothing, 0)
	bagDelete(v, id)
}

// bagDelta appends what an element is: number, length + 1 or 0 for none, bytes.
func bagDelta(dst []byte, id uint32, value []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, id)
	if value == nil {
		return binary.LittleEndian.AppendUint32(dst, 0)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)+1))
	return append(dst, value...)
}

func applyBag(v Parts, delta []byte) error {
	for len(delta) > 0 {
		if len(delta) < 8 {
			return errBag
		}
		id, n := binary.LittleEndian.Uint32(delta), int(binary.LittleEndian.Uint32(delta[4:]))-1
		delta = delta[8:]
		if n < 0 {
			if at := bagFind(v, id); at >= 0 {
				v.Free(bagPlane(id), at)
			}
			continue
		}
		if n > len(delta) {
			return errBag
		}
		if err := bagReserve(v, n); err != nil {
			return err
		}
		if err := bagSet(v, id, delta[:n]); err != nil {
			return err
		}
		delta = delta[n:]
	}
	return nil
}

// dumpBag goes through the planes, one part after the other.
func dumpBag(v Parts, from Place, dst []byte, atMost int) (delta []byte, next Place, done bool) {
	plane, n := int(from[0]), int(from[1])
	for ; plane < Planes; plane, n = plane+1, 0 {
		for ; n < v.Len(plane); n++ {
			if len(dst) >= atMost {
				return dst, Place{uint64(plane), uint64(n)}, false
			}
			if part := v.Part(plane, n); part != nil {
				value := bagBytes(part)
				if len(value) == 0 {
					value = []byte{}
				}
				dst = bagDelta(dst, binary.LittleEndian.Uint32(part), value)
			}
		}
	}
	return dst, Place{}, true
}

// bag is the bag under a key.
func bag(t Txn, key string) (Parts, bool) {
	item, found := t.Find([]byte(key))
	if !found {
		return Parts{}, false
	}
	return t.Parts(item)
}

// bagContent is everything that the bag has.
func bagContent(tb testing.TB, v Parts) map[uint32]string {
	tb.Helper()
	content := map[uint32]string{}
	for plane := range Planes {
		seen := 0
		for n := range v.Len(plane) {
			if part := v.Part(plane, n); part != nil {
				id := binary.LittleEndian.Uint32(part)
				if _, twice := content[id]; twice || bagPlane(id) != plane {
					tb.Fatalf("element %d is in plane %d, or twice", id, plane)
				}
				content[id] = string(bagBytes(part))
				seen++
			}
		}
		if seen != v.Count(plane) {
			tb.Fatalf("plane %d has %d parts, counts %d", plane, seen, v.Count(plane))
		}
	}
	return content
}
