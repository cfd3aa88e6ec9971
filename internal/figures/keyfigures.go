package figures

import (
	"cmp"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// maxKeyFigures is the most keys that HOTKEYS shows.
const maxKeyFigures = 20

// KeyFigure is a key with its figure: uses a second, or bytes.
type KeyFigure struct {
	Key      string
	Database uint8
	N        int64
}

// KeyFigures keeps the keys with the largest figures. It is bounded: when there are many keys, it
// may forget one whose figure is below the top.
type KeyFigures struct {
	list []KeyFigure
}

// keptFigures is how many keys a KeyFigures keeps: more than HOTKEYS shows, so that the parts of a
// key's figure that come from several loops meet.
const keptFigures = 16 * maxKeyFigures

// Count adds to a key's figure.
func (f *KeyFigures) Count(k KeyFigure) {
	if at := f.find(k); at >= 0 {
		f.list[at].N += k.N
	} else {
		f.CountNew(k)
	}
}

// find returns the place of a key, or -1.
func (f *KeyFigures) find(key KeyFigure) int {
	return slices.IndexFunc(f.list, func(k KeyFigure) bool { return k.Key == key.Key && k.Database == key.Database })
}

// CountNew is Count for a key that is not yet in f.
func (f *KeyFigures) CountNew(k KeyFigure) {
	f.list = append(f.list, k)
	if len(f.list) > 2*keptFigures {
		f.sort()
		f.list = f.list[:keptFigures]
	}
}

// Add adds the figures of o.
func (f *KeyFigures) Add(o *KeyFigures) {
	for _, k := range o.list {
		f.Count(k)
	}
}

// Enters reports whether a figure would be among the largest.
func (f *KeyFigures) Enters(n int64) bool {
	return len(f.list) < maxKeyFigures || n > f.list[maxKeyFigures-1].N
}

// Keep stores the larger figure of a key that Enters. A KeyFigures is filled by Keep or by Count,
// never by both.
func (f *KeyFigures) Keep(k KeyFigure) {
	if !f.Enters(k.N) {
		return
	}
	if at := f.find(k); at < 0 {
		f.list = append(f.list, k)
	} else {
		f.list[at].N = max(f.list[at].N, k.N)
	}
	f.sort()
	f.list = f.list[:min(len(f.list), maxKeyFigures)]
}

func (f *KeyFigures) sort() {
	slices.SortFunc(f.list, func(a, b KeyFigure) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Database, b.Database))
	})
}

// Top returns the keys with the largest figures, the largest first.
func (f *KeyFigures) Top() []KeyFigure {
	f.sort()
	return slices.Clone(f.list[:min(len(f.list), maxKeyFigures)])
}

// EncodeKeyFigures appends the wire form between members: keys and figures in turn. Before a key
// that is not of database 0 stands the number of its database.
func EncodeKeyFigures(dst []byte, list []KeyFigure) []byte {
	fields := 2 * len(list)
	for _, k := range list {
		if k.Database != 0 {
			fields++
		}
	}
	dst = resp.AppendArray(dst, fields)
	for _, k := range list {
		if k.Database != 0 {
			dst = resp.AppendInt(dst, int64(k.Database))
		}
		dst = resp.AppendInt(resp.AppendBulkString(dst, k.Key), k.N)
	}
	return dst
}

// Decode adds a node's list; it returns false if reply is malformed. A key has one owner, so
// several nodes name it only while it moves: then the larger figure counts.
func (f *KeyFigures) Decode(reply []byte) bool {
	fields, ok := elements(reply)
	for ok && len(fields) > 0 {
		database, inAnother := resp.DecodeInt(fields[0])
		if inAnother {
			fields = fields[1:]
		}
		if len(fields) < 2 || database < 0 || database >= MaxDatabases {
			return false
		}
		key, isKey := resp.DecodeBulk(fields[0])
		n, isInt := resp.DecodeInt(fields[1])
		if !isKey || !isInt {
			return false
		}
		f.Keep(KeyFigure{Key: string(key), Database: uint8(database), N: n})
		fields = fields[2:]
	}
	return ok
}

// The names of figures in replies.
const (
	UsesASecond = "qps"
	BytesOfKey  = "bytes"
)

// AppendKeyFigures answers HOTKEYS GET and HOTKEYS BIG: for each key a map with its
// name, its database and its figure, as Valkey's HOTKEYS GET does.
func AppendKeyFigures(dst []byte, v resp.Version, figure string, list []KeyFigure) []byte {
	dst = resp.AppendArray(dst, len(list))
	for _, k := range list {
		dst = resp.AppendMap(dst, v, 3)
		dst = resp.AppendBulkString(resp.AppendBulkString(dst, "key"), k.Key)
		dst = resp.AppendInt(resp.AppendBulkString(dst, "db"), int64(k.Database))
		dst = resp.AppendInt(resp.AppendBulkString(dst, figure), k.N)
	}
	return dst
}
