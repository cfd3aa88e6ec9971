package command

import (
	"bytes"
	"encoding/binary"
)

// maxName is the length of the longest name that can be looked up, as much as
// fits the words of a fold. build panics on a longer one.
const maxName = 3 * 8

// fold is a name in lower case, packed into three words and padded with zeros, so that it is hashed
// and compared a word at a time. Compare lengths too, because a name may contain zero bytes. fold
// is not an array, because the compiler keeps an array in memory instead of registers, which took
// twice the time.
type fold struct{ w0, w1, w2 uint64 }

// indexBits makes the index so large that a quarter of it is used, and most names are in their home
// entry.
const indexBits = 10

type indexEntry struct {
	key fold
	row *Command
}

// index maps folded names to rows by open addressing. Immutable after start.
var index [1 << indexBits]indexEntry

// Lookup returns the row of a top-level command, or nil if there is none. It also finds internal
// rows and rows that are not built. name may be in any case and is only read during the call.
func Lookup(name []byte) *Command {
	if len(name) == 0 || len(name) > maxName {
		return nil
	}
	key := foldName(name)
	for i := key.home(); ; i = (i + 1) % uint64(len(index)) {
		e := &index[i]
		if e.row == nil {
			return nil
		}
		if e.key == key && len(e.row.Name) == len(name) {
			return e.row
		}
	}
}

// Sub returns the row of a subcommand of c by its own name ("id" of "client|id"), or nil if there
// is none. name may be in any case and is only read during the call.
func (c *Command) Sub(name []byte) *Command {
	if len(name) == 0 || len(name) > maxName {
		return nil
	}
	key := foldName(name)
	for _, sub := range c.Subs {
		if sub.fold == key && len(sub.Name) == len(c.Name)+1+len(name) {
			return sub
		}
	}
	return nil
}

// Row returns the row that a request runs, or its subcommand's row if it has one; nil if there is
// no row of that name. It checks nothing: Resolve does. args holds at least the name, and is not
// kept.
func Row(args [][]byte) *Command {
	c := Lookup(args[0])
	if c != nil && c.Subs != nil && len(args) > 1 {
		if sub := c.Sub(args[1]); sub != nil {
			return sub
		}
	}
	return c
}

// Shown returns a row by the name under which COMMAND shows it, "get" or "client|id", or nil if
// COMMAND shows no such row. name may be in any case and is only read during the call.
func Shown(name []byte) *Command {
	container, own, isSub := bytes.Cut(name, []byte("|"))
	c := Lookup(container)
	if c != nil && isSub {
		c = c.Sub(own)
	}
	if c == nil || !c.Built || c.Flags&Internal != 0 {
		return nil
	}
	return c
}

// EqualFold reports whether arg equals word, in upper or lower case. word is ASCII.
func EqualFold(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, ch := range arg {
		if upper(ch) != upper(word[i]) {
			return false
		}
	}
	return true
}

func upper(ch byte) byte {
	if 'a' <= ch && ch <= 'z' {
		return ch - ('a' - 'A')
	}
	return ch
}

// addIndex enters a row at start.
func addIndex(c *Command) {
	i := c.fold.home()
	for index[i].row != nil {
		i = (i + 1) % uint64(len(index))
	}
	index[i] = indexEntry{c.fold, c}
}

// home returns the entry where the search for a name begins. One
// multiplication mixes enough: the words differ in their letters, and the high
// bits of the product depend on all of them.
func (f fold) home() uint64 {
	const odd = 0x9E3779B97F4A7C15
	return (f.w0 ^ f.w1*3 ^ f.w2*5) * odd >> (64 - indexBits)
}

// foldName packs a name of 1 to maxName bytes.
func foldName(name []byte) fold {
	if len(name) <= 8 {
		return fold{w0: lower(load(name))}
	}
	f := fold{w0: lower(binary.LittleEndian.Uint64(name))}
	name = name[8:]
	if len(name) <= 8 {
		f.w1 = lower(load(name))
		return f
	}
	f.w1 = lower(binary.LittleEndian.Uint64(name))
	f.w2 = lower(load(name[8:]))
	return f
}

// load reads 1 to 8 bytes as a little-endian word without a loop: two reads
// that overlap.
func load(b []byte) uint64 {
	n := len(b)
	if n >= 4 {
		low, high := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[n-4:])
		return uint64(low) | uint64(high)<<(8*(n-4))
	}
	// Of one byte, all three reads are that byte. Of two, the middle one is the last one.
	return uint64(b[0]) | uint64(b[n/2])<<(8*(n/2)) | uint64(b[n-1])<<(8*(n-1))
}

// lower turns A-Z into a-z in all eight bytes at once. With the top bits
// cleared, adding to each byte carries into its top bit exactly if it is at
// least 'A', or above 'Z'; no carry leaves its byte.
func lower(w uint64) uint64 {
	const (
		ones = 0x0101010101010101
		top  = 0x80 * ones
	)
	low := w &^ top
	fromA := low + (0x80-'A')*ones
	aboveZ := low + (0x7F-'Z')*ones
	upper := (fromA ^ aboveZ) & top &^ w // bytes over 0x7F are not letters
	return w | upper>>2
}
