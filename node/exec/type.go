package exec

import (
	"fmt"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Type describes a kind of value. Code that handles values of every kind (TYPE, SCAN, OBJECT, DUMP,
// RESTORE, COPY, MEMORY USAGE, replication) asks the value's Type, and names no type itself.
type Type struct {
	ID   engine.Type
	Name string // as TYPE answers it and SCAN expects it, in lower case

	// Encoding returns the form in which Redis would keep the item, found with t, for OBJECT
	// ENCODING.
	Encoding func(t engine.Txn, item engine.Item, limits Encodings) string
	// Footprint returns how many bytes of memory the key and its value take, for MEMORY USAGE.
	Footprint func(t engine.Txn, key []byte) (bytes int64, found bool)

	// AppendDump appends the payload of an item, for DUMP. It is nil if the type has no dump.
	// AppendDumpHead appends the part of a payload that precedes a value of n bytes, for a value
	// that is sent from the engine's memory.
	AppendDump     func(dst []byte, item engine.Item) []byte
	AppendDumpHead func(dst []byte, n int) []byte
	// Restores reports whether a payload of DUMP that begins with this code is of the type. Restore
	// parses such a payload; its result is a view of the payload.
	Restores func(code byte) bool
	Restore  func(payload []byte) (Restored, error)
	// Collection takes the place of these four for a type whose values have elements, Payloads for one
	// whose values have more.
	Collection *Collection
	Payloads   *Payloads

	// Field returns the value of a field, of a type whose values have fields; it is nil for others.
	Field func(t engine.Txn, item engine.Item, field []byte, now int64) (value shape.Item, found bool)

	// End returns where a value ends, of a type whose values grow at their ends: commands can wait for what comes
	// behind a position. It is nil for others. Seek says whether a key has what a claim is about.
	End  func(t engine.Txn, item engine.Item) engine.Position
	Seek func(t engine.Txn, key []byte, s Sought) Found

	// CheckRecord returns an error if bytes from another node are not the value of a record of this
	// type. It is nil if any bytes are.
	CheckRecord func(value []byte) error
	// Form is what the engine is told of the type's values with parts; the zero Form if it has
	// none.
	Form engine.Form

	// MaxEffect is the longest value, in bytes, that a stream may bring in one record. Such an
	// effect has the value as it lies in its record: COPY copies these bytes, and streams carry
	// them. Of a value with parts they carry what the type's engine.Form says.
	MaxEffect int

	// Level is the lowest protocol level at which all members know the type and its effects. A type
	// whose values can have parts needs at least ring.EffectsLevel. In a cluster below Level, the
	// commands of the type's Family and RESTORE of its values return an error, so that no member
	// receives a value that it does not know. A member that receives one all the same rejects the
	// effect, and its error names it (engine.UnknownEffect).
	Level uint8
}

// Sought is what a claim is about: what a value has behind an ID, as clients write it, or new for a group.
type Sought struct {
	ID      []byte
	Group   []byte        // nil: none
	MinIdle int64         // of a group: what is pending for so long is new, in milliseconds; negative: nothing is
	Waited  time.Duration // for so long the command waits; 0: it has not looked yet
	Looks   *int          // steps of looking through what is pending that were taken under this lock
}

// Found is what a value has of it.
type Found struct {
	Ready    bool            // there is something, or an error to be answered
	Position engine.Position // behind which the claim waits
	ID       []byte          // Position as clients write it; nil for a group
	Again    time.Duration   // after so long there may be something that was pending; 0: never
}

// LevelError is the error of what would make a value of a type in a cluster below its Level.
type LevelError struct {
	Type  *Type
	Level uint8 // of the cluster
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("ERR values of type %s need protocol level %d, and this cluster speaks %d: upgrade all members",
		e.Type.Name, e.Type.Level, e.Level)
}

// Check returns a *LevelError if the cluster's level is too low for values of the type.
func (t *Type) Check(level uint8) error {
	if level < t.Level {
		return &LevelError{t, level}
	}
	return nil
}

// Family is what a package of node/data exports: its commands, and its type if it has one.
type Family struct {
	Handlers map[command.ID]Handler
	Type     *Type // nil: the package adds no type of value
	Of       *Type // nil, or the type of another package whose values the commands make
}

// Restored is a value that was parsed from a payload of DUMP. It is valid as long as the payload.
type Restored interface {
	// Len returns the length of the value in bytes.
	Len() int
	// Append appends the value to dst.
	Append(dst []byte) []byte
	// WriteTo writes the value to an empty sink, and returns the sink's error.
	WriteTo(to rdb.Sink) error
}

// unknown is the type of a value whose ID no Type has.
var unknown = Type{
	Name:      "unknown",
	Encoding:  func(engine.Txn, engine.Item, Encodings) string { return "unknown" },
	Footprint: engine.Txn.Footprint,
}

// Types is the set of all Types that a node knows. It is immutable.
type Types struct {
	byID [8]*Type
	all  []*Type
}

// NewTypes returns the set of the given types, whose IDs must differ.
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

// Of returns the type of an item, never nil. A type that the node does not know has no dump.
func (all *Types) Of(item engine.Item) *Type {
	if typ := all.byID[item.Type()]; typ != nil {
		return typ
	}
	return &unknown
}

// ByID returns a type that the node knows.
func (all *Types) ByID(id engine.Type) *Type { return all.byID[id] }

// ByName returns the type that TYPE calls name, in upper or lower case; nil if there is none.
func (all *Types) ByName(name []byte) *Type {
	for _, typ := range all.all {
		if strings.EqualFold(string(name), typ.Name) {
			return typ
		}
	}
	return nil
}

// Restore parses a payload of DUMP and returns its type. The error is rdb.ErrFormat if the payload
// is of no type that the node knows, and a *LevelError if the cluster's level is too low for it.
func (all *Types) Restore(payload []byte, level uint8) (*Type, Restored, error) {
	for _, typ := range all.all {
		if len(payload) > 0 && typ.Restores != nil && typ.Restores(payload[0]) {
			if err := typ.Check(level); err != nil {
				return nil, nil, err
			}
			value, err := typ.Restore(payload)
			return typ, value, err
		}
	}
	return nil, nil, rdb.ErrFormat
}

// CollectionOf returns the type of a payload's value, which is one with a Collection or with
// Payloads; nil if the value is of another type, whose Restore reads it. The error is rdb.ErrFormat
// or an rdb.UnsupportedError if it has no value at all, and a *LevelError if the cluster's level is
// too low.
func (all *Types) CollectionOf(payload []byte, level uint8) (*Type, error) {
	kind, err := rdb.KindOf(payload)
	for _, typ := range all.all {
		switch {
		case typ.Collection == nil && typ.Restores != nil && typ.Restores(payload[0]):
			return nil, nil // of a type of its own
		case err == nil && typ.Collection != nil && typ.Collection.Kind == kind,
			err == nil && typ.Payloads != nil && typ.Payloads.Kind == kind:
			return typ, typ.Check(level)
		}
	}
	if err == nil {
		err = rdb.ErrFormat
	}
	return nil, err
}

// Admits reports whether another node may send a value of n bytes whose type, it says, is id. For
// a value with parts n is 0.
func (all *Types) Admits(id, n int64) bool {
	return 0 <= id && id < int64(len(all.byID)) && all.byID[id] != nil && n <= int64(all.byID[id].MaxEffect)
}

// AdmitsValue is Admits for a record's value, with its bytes, or nil for a value with parts. The
// error is an engine.UnknownEffect, or engine.ErrEffects if the bytes are no value of the type.
func (all *Types) AdmitsValue(id engine.Type, value []byte) error {
	if !all.Admits(int64(id), int64(len(value))) {
		return engine.UnknownEffect{Kind: engine.EffectSet, Type: id}
	}
	if check := all.byID[id].CheckRecord; check != nil && value != nil && check(value) != nil {
		return engine.ErrEffects
	}
	return nil
}

// Forms returns what the engine is told of the types whose values can have parts.
func (all *Types) Forms() map[engine.Type]engine.Form {
	forms := make(map[engine.Type]engine.Form)
	for _, typ := range all.all {
		if form := typ.Form; form.Apply != nil {
			form.Own = typ.Own()
			forms[typ.ID] = form
		}
	}
	return forms
}

// Own is how many bytes a value of the type has of its own, if it has parts.
func (t *Type) Own() int {
	switch {
	case t.Payloads != nil:
		return t.Payloads.Own
	case t.Collection != nil:
		return t.Collection.Own
	}
	return 0
}
