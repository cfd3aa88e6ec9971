package streams

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// streamType is the type of streams.
var streamType = exec.Type{
	ID:          engine.TypeStream,
	Name:        "stream",
	Encoding:    func(engine.Txn, engine.Item, exec.Encodings) string { return "stream" },
	Footprint:   engine.Txn.Footprint,
	Payloads:    &payloads,
	MaxEffect:   shape.MaxPacked,
	CheckRecord: checkRecord,
	Form:        engine.Form{Apply: apply, Dump: dump, Within: within, Expire: expire},
	Level:       ring.StreamsLevel,
	End:         end,
	Seek:        seek,
}
