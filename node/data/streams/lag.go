package streams

import "github.com/dunlin-cache/dunlin/internal/resp"

// How many entries of a stream a group has read, and how many are left (its lag), is known only as long as
// no entry was deleted among those that are left. Trims remove entries at the front, which leaves both known
// of a group that is behind them.

// lag returns how many entries of the stream, which has so many, the group has not read. known is false if
// nobody knows.
func (i info) lag(length int, g *group) (n int64, known bool) {
	read := g.read
	switch {
	case i.added == 0 || length == 0:
		return 0, true
	case g.last.less(i.first) && i.maxDeleted.less(i.first):
		return int64(length), true
	case read == readUnknown || i.deletedFrom(length, g.last):
		read = i.readUpTo(length, g.last)
	}
	if read == readUnknown {
		return 0, false
	}
	return int64(i.added) - read, true
}

// deletedFrom reports whether an entry may have been deleted, other than by a trim, whose ID is not below id.
func (i info) deletedFrom(length int, id ID) bool {
	return length > 0 && !i.maxDeleted.isZero() && !i.maxDeleted.less(id)
}

// readUpTo returns how many entries a group has read that was given the entry with an ID last, as far as the
// figures of the stream say; readUnknown if they do not.
func (i info) readUpTo(length int, id ID) int64 {
	switch {
	case i.added == 0:
		return 0
	case length == 0 && !i.last.less(id):
		return int64(i.added)
	case !id.isZero() && id.less(i.maxDeleted):
		return readUnknown
	case id == i.last:
		return int64(i.added)
	case i.last.less(id):
		return readUnknown
	case !i.maxDeleted.isZero() && !i.maxDeleted.less(i.first):
		return readUnknown
	case id.less(i.first):
		return int64(i.added) - int64(length)
	case id == i.first:
		return int64(i.added) - int64(length) + 1
	}
	return readUnknown
}

// orNull appends a number, or null if it is not known.
func (w *slice) orNull(n int64, known bool, v resp.Version) {
	if known {
		w.int(n)
	} else {
		w.Bytes = resp.AppendNull(w.Bytes, v)
	}
}
