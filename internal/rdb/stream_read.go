package rdb

import (
	"encoding/binary"
	"math"
)

// Stream reads the parts of a stream from a payload, one after the other:
//
//	for x, ok := s.Entry(); ok; x, ok = s.Entry() { … }
//	info, ok := s.Info()
//	for g, ok := s.Group(); ok; g, ok = s.Group() {
//		for c, ok := s.Consumer(); ok; c, ok = s.Consumer() { … }
//		for p, ok := s.Pending(); ok; p, ok = s.Pending() { … }
//	}
//	… s.Err()
//
// A method's ok is false behind the last part of its kind, and after an error. Each loop must run to
// its end before the next begins. IDs ascend, of entries and of a group's pending entries; a pending
// entry has one consumer. Names of groups and consumers may be there twice: the caller finds them.
type Stream struct {
	Memory

	code byte
	in   reader // what is left of the payload
	err  error

	nodes uint64 // still to come
	node  streamNode
	open  bool // node has more entries
	found StreamInfo

	groups int // still to come
	pels   pels

	// Memory for strings that do not lie in the payload as they are.
	packed, group, consumer []byte
}

// ReadStream begins to read a stream from a payload that Check has accepted. The payload must not
// change. The errors are those of KindOf, and ErrFormat for other kinds.
func ReadStream(payload []byte) (*Stream, error) {
	kind, err := KindOf(payload)
	if err == nil && kind != KindStream {
		err = ErrFormat
	}
	if err != nil {
		return nil, err
	}
	s := &Stream{code: payload[0], in: payload[1 : len(payload)-FootSize]}
	var ok bool
	if s.nodes, ok = s.in.number(); !ok {
		return nil, ErrFormat
	}
	return s, nil
}

// Err is the error that ended the parts: ErrFormat or ErrTooLong, nil if they are complete.
func (s *Stream) Err() error { return s.err }

func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Entry reads an entry that is not deleted. Its strings are valid until the next call.
func (s *Stream) Entry() (x StreamEntry, ok bool) {
	for s.err == nil {
		if !s.open {
			if s.nodes == 0 {
				return x, false
			}
			s.nodes--
			s.openNode()
			continue
		}
		x, what, err := s.node.next(&s.Memory)
		switch {
		case err != nil:
			s.fail(err)
		case what == nodeEnd:
			s.open = false
		case what == nodeEntry && s.found.Len > 0 && x.ID.Compare(s.found.Last) <= 0:
			s.fail(ErrFormat)
		case what == nodeEntry:
			if s.found.Len == 0 {
				s.found.First = x.ID
			}
			s.found.Last = x.ID
			s.found.Len++
			return x, true
		}
	}
	return x, false
}

func (s *Stream) openNode() {
	id, err := s.string(&s.in, &s.packed)
	if err == nil && len(id) != streamIDSize {
		err = ErrFormat
	}
	if err != nil {
		s.fail(err)
		return
	}
	first := bigID(id)
	b, err := s.string(&s.in, &s.packed)
	if err == nil {
		err = s.node.begin(&s.Memory, first, b)
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.open = true
}

// bigID is an ID of 16 bytes.
func bigID(b []byte) StreamID {
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// Info reads what comes behind the entries. Groups is what the payload declares.
func (s *Stream) Info() (i StreamInfo, ok bool) {
	if s.err != nil {
		return i, false
	}
	if i, ok = s.info(); !ok {
		s.fail(ErrFormat)
		return i, false
	}
	s.found, s.groups = i, i.Groups
	return i, true
}

func (s *Stream) info() (i StreamInfo, ok bool) {
	i = s.found
	length, ok := s.in.count()
	if ok {
		i.Last, ok = s.in.id()
	}
	i.Added = int64(i.Len)
	if ok && s.code != typeStream {
		if _, ok = s.in.id(); ok { // the first one, which the entries have told
			i.MaxDeleted, ok = s.in.id()
		}
		if ok {
			i.Added, ok = s.in.small()
		}
	}
	if ok {
		i.Groups, ok = s.in.count()
	}
	return i, ok && length == i.Len && i.Last.Compare(s.found.Last) >= 0 && i.Added >= int64(i.Len)
}

// id reads an ID as two numbers.
func (r *reader) id() (id StreamID, ok bool) {
	if id.Ms, ok = r.number(); ok {
		id.Seq, ok = r.number()
	}
	return id, ok
}

// small reads a number that an int64 can have.
func (r *reader) small() (n int64, ok bool) {
	long, ok := r.number()
	return int64(long), ok && long <= math.MaxInt64
}

// count reads how many there are of something.
func (r *reader) count() (n int, ok bool) { return r.length() }

// millis reads a time.
func (r *reader) millis() (at int64, ok bool) {
	b, ok := r.next(8)
	if !ok {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b)), true
}
