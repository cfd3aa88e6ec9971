package engine

import (
	"bytes"
	"errors"
	"slices"
)

// A command that reads a whole value with parts may take longer than a shard may be locked. It pins
// the value and reads it in slices, and sees it as it was when it was pinned: before a part is
// changed for the first time, each pin that has not read it keeps a copy of it. A value that dies
// while it is pinned is not freed before its last pin ends.
//
//	writer            Edit, Resize, Free, Add ─> save ─> pin.saved: number ─> what the part was
//	reader   Lock ─> Part: saved, or else the present part ─> Done ─> Unlock ─> ... ─> Release
//
// Pins keep at most a pinShare-th of the memory limit: the bytes of the pinned values, each counted
// once, and the copies, which are also charged. Beyond that, or without memory for a copy, a pin of
// the shard breaks, the one that has most left to read. Its next Lock returns false.

// pinShare: pins keep up to a pinShare-th of the limit.
const pinShare = 4

// savedCost is what a copy costs beside its bytes, about.
const savedCost = 96

// ErrPinned is the error when pins keep as much memory as they may.
var ErrPinned = errors.New("too many big values are being read")

// pinnedValue is a value with pins.
type pinnedValue struct {
	at    handle // its head
	bytes int64  // that it counts for
	dead  bool   // it is to be freed when its last pin ends
	pins  []*ValuePin
}

// ValuePin keeps a value with parts readable as it was at one moment. It belongs to one reader, but
// its methods may be called in any goroutine.
type ValuePin struct {
	s      *shard
	of     *pinnedValue // nil: it has ended, or broken
	own    []byte
	base   int64
	planes [Planes]pinnedPlane
	unread int   // numbers that are not Done
	copies int64 // bytes that are charged for it
}

// pinnedPlane is the state of one plane of a pin.
type pinnedPlane struct {
	span  uint32
	parts uint32
	read  []uint64             // a bit for each number that needs no copy any more
	saved map[uint32]savedPart // parts that have changed
}

// savedPart is what a part was before it was changed; all zero: there was none.
type savedPart struct {
	bytes []byte
	pin   Pin // of a part in an extent
}

// PinValue pins the value as it is now. ErrPinned: too much is pinned, and no other pin of the shard
// could be broken for it.
func (v Parts) PinValue() (*ValuePin, error) {
	s, h := v.t.s, v.head()
	pin := &ValuePin{s: s, own: bytes.Clone(v.Own()), base: h.base}
	cost := int64(len(pin.own))
	for i, p := range h.planes {
		pin.planes[i] = pinnedPlane{span: p.span, parts: p.parts, read: make([]uint64, (p.span+63)/64)}
		pin.unread += int(p.span)
		cost += int64(p.span / 8)
	}
	value := s.values.pinnedValue(v.at)
	if value == nil {
		value = &pinnedValue{at: v.at, bytes: h.bytes}
	}
	for !pin.keep(cost, value) {
		if !s.values.breakSlowest(value) {
			return nil, ErrPinned
		}
	}
	if len(value.pins) == 0 {
		s.values.pinned = append(s.values.pinned, value)
		s.e.pinnedParts.Add(value.bytes)
		h.pinned = true
	}
	value.pins = append(value.pins, pin)
	pin.of = value
	return pin, nil
}

// keep charges n bytes of copies to the pin, and reports whether they are there.
func (pin *ValuePin) keep(n int64, value *pinnedValue) bool {
	e := pin.s.e
	more := n
	if len(value.pins) == 0 {
		more += value.bytes
	}
	if e.pinnedParts.Load()+more > e.pool.max.Load()/pinShare || !e.pool.chargeOutside(n) {
		return false
	}
	e.pinnedParts.Add(n)
	pin.copies += n
	return true
}

func (v *values) pinnedValue(at handle) *pinnedValue {
	for _, value := range v.pinned {
		if value.at == at {
			return value
		}
	}
	return nil
}

// breakSlowest breaks the pin that has most to read, and reports whether there was one. It prefers
// those of other values than one.
func (v *values) breakSlowest(but *pinnedValue) bool {
	var slowest *ValuePin
	for _, value := range v.pinned {
		for _, pin := range value.pins {
			if value != but && (slowest == nil || pin.unread > slowest.unread) {
				slowest = pin
			}
		}
	}
	if slowest == nil {
		return false
	}
	slowest.end()
	return true
}

// end ends the pin. The value goes with its last pin, if it is dead.
func (pin *ValuePin) end() {
	s, value := pin.s, pin.of
	pin.of = nil
	for i := range pin.planes {
		for _, saved := range pin.planes[i].saved {
			if saved.pin.Live() {
				saved.pin.Release()
			}
		}
		pin.planes[i] = pinnedPlane{}
	}
	s.e.pinnedParts.Add(-pin.copies)
	s.e.pool.refundOutside(pin.copies)
	value.pins = slices.DeleteFunc(value.pins, func(p *ValuePin) bool { return p == pin })
	if len(value.pins) > 0 {
		return
	}
	s.e.pinnedParts.Add(-value.bytes)
	s.values.pinned = slices.DeleteFunc(s.values.pinned, func(v *pinnedValue) bool { return v == value })
	s.cells.head(value.at).pinned = false
	if value.dead {
		s.values.bury(value.at)
	}
}

// Lock locks the shard to read from the pin. It returns false, and locks nothing, if the pin has
// broken.
func (pin *ValuePin) Lock() bool {
	pin.s.mu.Lock()
	if pin.of == nil {
		pin.s.mu.Unlock()
		return false
	}
	return true
}

// Unlock ends what Lock began.
func (pin *ValuePin) Unlock() { Txn{s: pin.s}.Unlock() }

// Release ends the pin. It is not called between Lock and Unlock.
func (pin *ValuePin) Release() {
	if pin.Lock() {
		pin.end()
		pin.Unlock()
	}
}

// Own is what Parts.Own was. It needs no Lock.
func (pin *ValuePin) Own() []byte { return pin.own }

// Base is Parts.Base. It needs no Lock.
func (pin *ValuePin) Base() int64 { return pin.base }

// Len is what Parts.Len was. It is called after Lock.
func (pin *ValuePin) Len(plane int) int { return int(pin.planes[plane].span) }

// Count is what Parts.Count was. It is called after Lock.
func (pin *ValuePin) Count(plane int) int { return int(pin.planes[plane].parts) }

// Part is a view of what the part was, nil if there was none, valid until Unlock and not to be
// changed. It is called after Lock.
func (pin *ValuePin) Part(plane, number int) []byte {
	p, n := &pin.planes[plane], uint32(number)
	if saved, ok := p.saved[n]; ok {
		if saved.pin.Live() {
			return saved.pin.Value()
		}
		return saved.bytes
	}
	return Parts{Txn{s: pin.s}, pin.of.at}.Part(plane, number)
}

// Done notes that the part has been read and is not asked for again, so that no copy of it is kept.
// It is called after Lock.
func (pin *ValuePin) Done(plane, number int) {
	p, n := &pin.planes[plane], uint32(number)
	if n >= p.span || p.read[n/64]&(1<<(n%64)) != 0 {
		return
	}
	p.read[n/64] |= 1 << (n % 64)
	pin.unread--
	if saved, ok := p.saved[n]; ok {
		if saved.pin.Live() {
			saved.pin.Release()
		}
		delete(p.saved, n)
		cost := savedCost + int64(len(saved.bytes))
		pin.copies -= cost
		pin.s.e.pinnedParts.Add(-cost)
		pin.s.e.pool.refundOutside(cost)
	}
}

// lacks reports whether the pin needs a copy of the part before it is changed.
func (pin *ValuePin) lacks(plane int, n uint32) bool {
	p := &pin.planes[plane]
	if n >= p.span || p.read[n/64]&(1<<(n%64)) != 0 {
		return false
	}
	_, ok := p.saved[n]
	return !ok
}

// save keeps a part for the pins of the value that have not read it. It is called before the part
// is changed, freed, or made.
func (v Parts) save(plane int, number uint32) {
	if h := v.head(); h.pinned {
		v.t.s.values.save(v, plane, number)
	}
}

func (v *values) save(of Parts, plane int, n uint32) {
	value := v.pinnedValue(of.at)
	saved, cloned := savedPart{}, false
	for i := len(value.pins) - 1; i >= 0; i-- {
		if i >= len(value.pins) || !value.pins[i].lacks(plane, n) {
			continue
		}
		pin := value.pins[i]
		part := of.Part(plane, int(n))
		big, away := Pin{}, false
		if part != nil {
			if big, away = of.Pin(plane, int(n)); away {
				part = nil
			}
		}
		if !pin.keep(savedCost+int64(len(part)), value) && !v.makePinRoom(pin, savedCost+int64(len(part))) {
			if away {
				big.Release()
			}
			continue // it has broken
		}
		if part != nil && !cloned {
			saved.bytes, cloned = bytes.Clone(part), true
		}
		if p := &pin.planes[plane]; p.saved == nil {
			p.saved = map[uint32]savedPart{}
		}
		pin.planes[plane].saved[n] = savedPart{saved.bytes, big}
	}
}

// makePinRoom breaks pins until n bytes can be kept for one, and reports whether they are: that pin
// may be the slowest itself.
func (v *values) makePinRoom(pin *ValuePin, n int64) bool {
	for pin.of != nil {
		if !v.breakSlowest(nil) {
			return false
		}
		if pin.of != nil && pin.keep(n, pin.of) {
			return true
		}
	}
	return false
}

// pinnedDeath keeps a dead value that is pinned until its last pin ends, and reports whether it is.
func (v *values) pinnedDeath(at handle) bool {
	if !v.s.cells.head(at).pinned {
		return false
	}
	v.pinnedValue(at).dead = true
	return true
}

// breakAll breaks all pins, for a Reset.
func (v *values) breakAll() {
	for len(v.pinned) > 0 {
		v.pinned[0].dead = false
		v.pinned[0].pins[0].end()
	}
}
