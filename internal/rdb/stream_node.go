package rdb

import (
	"strconv"
	"unsafe"
)

// streamNode reads the entries of a node.
type streamNode struct {
	pack pack
	id   StreamID
	live int64 // entries that the head declares
	dead int64 // of them deleted

	names      [][]byte // of the master
	namesText  []byte   // those that are numbers
	strings    [][]byte // of the entry that was read last
	stringText []byte
}

// What next has read of a node.
const (
	nodeEnd = iota
	nodeEntry
	nodeDeleted
)

// begin begins with a node. The memory is asked for what the names of fields take.
func (n *streamNode) begin(m *Memory, id StreamID, listpack []byte) (err error) {
	n.id, n.names, n.namesText = id, n.names[:0], n.namesText[:0]
	if !n.pack.open(formListpack, listpack) {
		return ErrFormat
	}
	var head [3]int64
	for i := range head {
		if head[i], err = n.number(); err != nil {
			return err
		}
	}
	n.live, n.dead = head[0], head[1]
	if n.live < 0 || n.dead < 0 || head[2] < 0 {
		return ErrFormat
	}
	for range head[2] {
		if n.names, n.namesText, err = n.text(m, n.names, n.namesText); err != nil {
			return err
		}
	}
	end, err := n.number()
	if err == nil && end != 0 {
		err = ErrFormat
	}
	return err
}

// item reads a string or an integer of the listpack.
func (n *streamNode) item() (s []byte, number int64, isInt bool, err error) {
	if len(n.pack.in) == 0 {
		return nil, 0, false, ErrFormat
	}
	n.pack.count++
	s, number, isInt, ok := n.pack.listpackItem()
	if !ok {
		return nil, 0, false, ErrFormat
	}
	return s, number, isInt, nil
}

func (n *streamNode) number() (int64, error) {
	_, number, isInt, err := n.item()
	if err == nil && !isInt {
		err = ErrFormat
	}
	return number, err
}

// text appends a string to all. Text has those that are integers in the listpack; what it had before
// stays where it is.
func (n *streamNode) text(m *Memory, all [][]byte, text []byte) (_ [][]byte, _ []byte, err error) {
	s, number, isInt, err := n.item()
	if err != nil {
		return all, text, err
	}
	if isInt {
		if cap(text)-len(text) < maxInt64Text {
			room := max(16*maxInt64Text, 2*cap(text))
			if !m.take(0, room) { // what is there is kept too
				return all, text, ErrTooLong
			}
			text = make([]byte, 0, room)
		}
		begun := len(text)
		text = strconv.AppendInt(text, number, 10)
		s = text[begun:len(text):len(text)]
	}
	all, ok := grow(m, all, int(unsafe.Sizeof(s)))
	if !ok {
		return all, text, ErrTooLong
	}
	return append(all, s), text, nil
}

// next reads an entry. What says whether there was one.
func (n *streamNode) next(m *Memory) (x StreamEntry, what int, err error) {
	if len(n.pack.in) == 0 {
		if n.live != 0 || n.dead != 0 || !n.pack.isComplete() {
			err = ErrFormat
		}
		return x, nodeEnd, err
	}
	var head [3]int64 // flags and distances
	for i := range head {
		if head[i], err = n.number(); err != nil {
			return x, 0, err
		}
	}
	flags := head[0]
	x.ID = StreamID{n.id.Ms + uint64(head[1]), n.id.Seq + uint64(head[2])}
	items, fields := int64(len(head)), int64(len(n.names))
	if flags&entrySame == 0 {
		items++
		if fields, err = n.number(); err != nil {
			return x, 0, err
		}
	}
	n.strings, n.stringText = n.strings[:0], n.stringText[:0]
	for field := int64(0); field < fields && err == nil; field++ {
		items++
		if flags&entrySame == 0 {
			items++
			n.strings, n.stringText, err = n.text(m, n.strings, n.stringText)
		} else if all, ok := grow(m, n.strings, int(unsafe.Sizeof([]byte(nil)))); ok {
			n.strings = append(all, n.names[field])
		} else {
			err = ErrTooLong
		}
		if err == nil {
			n.strings, n.stringText, err = n.text(m, n.strings, n.stringText)
		}
	}
	if err != nil {
		return x, 0, err
	}
	if end, err := n.number(); err != nil || end != items || len(n.strings) == 0 {
		return x, 0, ErrFormat
	}
	x.Strings = n.strings
	if flags&entryDeleted != 0 {
		n.dead--
		return x, nodeDeleted, nil
	}
	n.live--
	return x, nodeEntry, nil
}
