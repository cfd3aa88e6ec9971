package exec

import (
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Type is a kind of value. Whoever handles values of every kind (TYPE, SCAN, OBJECT, DUMP, RESTORE,
// COPY, MEMORY USAGE, replication) asks the value's Type, and knows none by name.
type Type struct {
	ID   engine.Type
	Name string // as TYPE answers it and SCAN expects it, in lower case

	// Encoding returns the form in which Redis would keep the item, for OBJECT ENCODING.
	Encoding func(item engine.Item) string
	// Footprint returns how many bytes the key takes with all that belongs to it, for MEMORY USAGE.
	Footprint func(t engine.Txn, key []byte) (bytes int64, found bool)

	// AppendDump, which may be nil, appends the payload of an item, for DUMP. AppendDumpHead
	// appends what comes in a payload before a value of n bytes that is sent from where it lies.
	AppendDump     func(dst []byte, item engine.Item) []byte
	AppendDumpHead func(dst []byte, n int) []byte
	// Restores reports whether a payload of DUMP that begins with this code is of the type, and
	// Restore reads such a payload.
	Restores func(code byte) bool
	Restore  func(payload []byte) (Restored, error)

	// MaxEffect is the longest value, in bytes, that another node may send. The effects of a type
	// are its values as they lie in their records: COPY copies these bytes, and streams carry them.
	MaxEffect int
}

// Family is what a package of node/data has for the node.
type Family struct {
	Handlers map[command.ID]Handler
	Type     *Type // nil: it adds no type of value
}

// Restored is a value in a payload of DUMP, of which it is a view.
type Restored interface {
	// Len returns how many bytes the value will take.
	Len() int
	// Append appends the value.
	Append(dst []byte) []byte
	// WriteTo appends the value to an empty sink, and returns the sink's error.
	WriteTo(to rdb.Sink) error
}

// unknown is what a node sees in a value that a newer node has sent.
var unknown = Type{
	Name:      "unknown",
	Encoding:  func(engine.Item) string { return "unknown" },
	Footprint: engine.Txn.Footprint,
}

// Types has every Type that a node knows. It is immutable.
type Types struct {
	byID [8]*Type
	all  []*Type
}

// NewTypes returns the types in all, which must have different IDs.
func NewTypes(all ...*Type) *Types {
	types := &Types{all: all}
	for _, typ := range all {
		if types.byID[typ.ID] != nil {
			panic("BUG: two types are " + typ.Name)
		}
		types.byID[typ.ID] = typ
	}
	return types
}

// Of returns the type of an item. One that the node does not know has no dump.
func (all *Types) Of(item engine.Item) *Type {
	if typ := all.byID[item.Type()]; typ != nil {
		return typ
	}
	return &unknown
}

// ByName returns the type that TYPE calls name, in upper or lower case; nil if there is none.
func (all *Types) ByName(name []byte) *Type {
	for _, typ := range all.all {
		if strings.EqualFold(string(name), typ.Name) {
			return typ
		}
	}
	return nil
}

// Restore reads a payload of DUMP. The error is rdb.ErrFormat if it is of no type.
func (all *Types) Restore(payload []byte) (*Type, Restored, error) {
	for _, typ := range all.all {
		if len(payload) > 0 && typ.Restores(payload[0]) {
			value, err := typ.Restore(payload)
			return typ, value, err
		}
	}
	return nil, nil, rdb.ErrFormat
}

// Admits reports whether another node may send a value of n bytes that it says to be of this type.
func (all *Types) Admits(id, n int64) bool {
	return 0 <= id && id < int64(len(all.byID)) && all.byID[id] != nil && n <= int64(all.byID[id].MaxEffect)
}
