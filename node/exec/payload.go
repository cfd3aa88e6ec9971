package exec

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Payloads is what DUMP and RESTORE ask of a type whose payloads have more than elements: streams.
type Payloads struct {
	Kind rdb.Kind
	Own  int // bytes that a value with parts has of its own

	// AppendSmall appends the payload of an item that has no parts.
	AppendSmall func(dst []byte, item engine.Item, valkey bool) []byte
	// Dump begins the payload of a value with parts.
	Dump func(e *engine.Engine, valkey bool) Dumper

	// ReadSmall appends the record's value that a payload makes. It reads no more than it can under a
	// shard's lock. fits is false if it has not read all, or if the payload makes a value with parts.
	ReadSmall func(dst, payload []byte) (value []byte, fits bool, err error)
	// Restore begins to read a payload into a value with parts that is built aside.
	Restore func(payload []byte, w *Rewrite) (Restorer, error)
}

// Dumper makes the payload of a value with parts in slices, each of which is taken from a pin under
// the shard's lock and written without it:
//
//	Take ─> Write ─> Take … ─> End
type Dumper interface {
	// Take reads what comes next, about as much as may be read under one lock; the pin is locked. done:
	// it was the last.
	Take(pin *engine.ValuePin) (done bool)
	// Write writes what Take has read. An error of out ends it.
	Write(out func(piece []byte) error) error
	// End writes what comes last, and returns the head of the payload, which comes before all that was
	// written.
	End(out func(piece []byte) error) (head []byte, err error)
	// Release forgets what Take has read and Write has not written.
	Release()
}

// Restorer reads a payload in slices, each of which is read without a lock and added to a value with
// parts under one:
//
//	Read ─> Add ─> Read … ─> Release
type Restorer interface {
	// Read reads what comes next, about as much as may be added under one lock. more is false if there
	// was nothing.
	Read(ctx context.Context) (more bool, err error)
	// Add adds to the value what Read has read. The error is rdb.ErrFormat if the value has it already.
	Add(t engine.Txn, v engine.Parts) error
	// Release forgets what Read has read and Add has not added.
	Release()
}
