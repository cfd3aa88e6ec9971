package stream

import (
	"context"
	"log/slog"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Config is what streams need of their node. All fields but Dialer, Secret and MoveRate must be
// set.
type Config struct {
	Engine *engine.Engine
	Log    *slog.Logger

	Context context.Context // ends with the node
	Go      func(f func())  // runs f in a goroutine for which the node's end waits

	// Admits returns an error if this node does not know a type of value, or if the bytes of a
	// record's value are none; of a value with parts it gets nil.
	Admits func(typ engine.Type, value []byte) error

	// Window returns how many bytes a stream may have unacknowledged. The memory for so many is
	// charged before it is there.
	Window func() int
	Charge func(bytes int64) bool
	Refund func(bytes int64)

	Monotonic func() time.Duration // a clock that never steps
	UnixMilli func() int64         // the wall clock by which keys expire, in unix milliseconds

	// Strained reports whether clients have to wait because loops of this node are busy: snapshots
	// rest then.
	Strained    func() bool
	TellsStrain func() bool // every sender understands an answer that says so

	Name     string          // of this node, as its receivers know it
	Boot     int64           // its start, in unix nanoseconds
	Secret   *member.Secrets // the cluster's; none: everyone is trusted
	Dialer   member.Dialer   // to other nodes; nil: plain TCP
	MoveRate int64           // bytes of snapshots in a second, to each receiver; 0: no limit
}
