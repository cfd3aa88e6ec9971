package strings

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// stringType is the type of strings. Bitmaps and HyperLogLogs are strings too.
var stringType = exec.Type{
	ID:             engine.TypeString,
	Name:           "string",
	Encoding:       encoding,
	Footprint:      engine.Txn.Footprint,
	AppendDump:     func(dst []byte, item engine.Item) []byte { return rdb.AppendDump(dst, item.Value()) },
	AppendDumpHead: rdb.AppendHead,
	Restores:       func(code byte) bool { return code == rdb.TypeString },
	Restore: func(payload []byte) (exec.Restored, error) {
		s, err := rdb.Read(payload)
		return &s, err
	},
	MaxEffect: engine.MaxValueLen,
}

const (
	maxEmbedded = 44 // bytes of a string that Redis keeps beside its header
	maxNumber   = 20 // bytes of the longest one that it tries to keep as a number
)

// encoding returns what Redis would make of such a value: all strings are stored alike here. Redis
// also remembers that a value was changed in its place; that is not known here.
func encoding(_ engine.Txn, item engine.Item, _ exec.Encodings) string {
	value := item.Value()
	_, isNumber := resp.ParseInt(value[:min(len(value), maxNumber+1)])
	switch {
	case isNumber && len(value) <= maxNumber:
		return "int"
	case len(value) <= maxEmbedded:
		return "embstr"
	}
	return "raw"
}
