package rdb

import "math/bits"

const (
	maxUnpacked  = 16 << 20 // bytes of a string that is decompressed
	freeUnpacked = 64 << 10 // bytes that Room is not asked for
)

// Memory is what a reader takes of the Go heap: for strings that do not lie in the payload as they
// are, and for what it must know of a stream's strings and consumers. It never takes memory because
// of a length that a payload declares.
type Memory struct {
	// Room, if it is not nil, reports whether there are so many bytes on the Go heap, and takes
	// them. It is asked before more than 64 KiB are taken at once. Taken is how many bytes it gave;
	// they are free when the reader is.
	Room  func(bytes int) bool
	Taken int

	// Most, if it is not 0, is how many bytes may be decompressed in all. It bounds the time that
	// the reader takes, where Room bounds its memory.
	Most     int
	unpacked int // bytes that were decompressed
}

// take asks for memory that grows from one size to another, in bytes.
func (m *Memory) take(from, to int) bool {
	if to <= freeUnpacked || m.Room == nil {
		return true
	}
	if !m.Room(to - from) {
		return false
	}
	m.Taken += to - from
	return true
}

// fits gives the memory room for a string of n bytes.
func (m *Memory) fits(n int, memory *[]byte) bool {
	if n <= cap(*memory) {
		return true
	}
	if n > maxUnpacked {
		return false
	}
	size := 1 << bits.Len(uint(n-1)) // so that strings that grow take memory a few times
	if !m.take(cap(*memory), size) {
		return false
	}
	*memory = make([]byte, 0, size) // the string is there: it was walked through
	return true
}

// grow returns a slice with room for one element more. It asks for the memory.
func grow[E any](m *Memory, all []E, size int) (_ []E, ok bool) {
	if len(all) < cap(all) {
		return all, true
	}
	room := max(16, 2*cap(all))
	if !m.take(cap(all)*size, room*size) {
		return all, false
	}
	return append(make([]E, 0, room), all...), true
}

// string reads a string: a view of the payload, or what it is in memory.
func (m *Memory) string(in *reader, memory *[]byte) (s []byte, err error) {
	if len(*in) > 0 && (*in)[0] >= int8b && (*in)[0] < lzf {
		text, ok := in.text((*memory)[:0])
		if !ok {
			return nil, ErrFormat
		}
		*memory = text
		return text, nil
	}
	from, err := in.string()
	if err != nil {
		return nil, err
	}
	if from.compressed == nil {
		return from.plain, nil
	}
	m.unpacked += from.Len()
	if m.Most > 0 && m.unpacked > m.Most || !m.fits(from.Len(), memory) {
		return nil, ErrTooLong
	}
	*memory = from.Append((*memory)[:0])
	return *memory, nil
}
