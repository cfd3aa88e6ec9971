package exec

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Conn is the part of a connection that a request sees.
type Conn struct {
	State     *session.State
	Socket    *netloop.Conn
	Upload    *Upload // not nil while a request with large values arrives
	Answering bool    // a goroutine makes the next reply, and no request is executed meanwhile
	Pins      int     // pinned values that the socket has not sent to their end
	Closing   bool    // no further request is executed; the connection closes when all is sent
}

// Host is the node that executes a request, as seen from the request's connection. GET makes no
// call through it, nor through Keyspace and Heap.
type Host interface {
	// AnswerLater has a goroutine call f, and answers with the reply that f returns. The
	// connection's later commands may be executed meanwhile, so f works on what it has pinned. f
	// must not use the request or views of its arguments, and must return soon after ctx ends. f is
	// called in any case: if ctx has ended, it only releases what it holds.
	AnswerLater(f func(ctx context.Context) (reply []byte))
	// GatherLater is AnswerLater for a reply that may be long: f gathers it.
	GatherLater(f func(ctx context.Context, reply *Gathered))
	// Later hands w to a goroutine. If the command writes, none of the connection's later commands
	// on its partition is executed before w is answered.
	Later(w Work)
	// Held takes care of a request that found the partition of its key held by somebody else, and
	// that has done nothing yet: the sender tries again, or the request waits until h has ended.
	Held(h *engine.Hold)
	// AwaitHold waits until h has ended. It reports false if h has not ended when the request has waited
	// for holds for too long, all in all: waited is for how long, and AwaitHold adds to it. Any goroutine
	// may call it.
	AwaitHold(ctx context.Context, h *engine.Hold, waited *time.Duration) (ended bool)
	// Await has the command, which has its partition locked by t and found nothing, wait; see block.go.
	// It keeps no view of what it is given.
	Await(t engine.Txn, a Await)
	// Take notes that the command, a blocking one, is about to pop what it answers from a key, under the partition's
	// lock t. ahead, which is read at once, comes in front of the reply; nil for nothing.
	Take(t engine.Txn, key []byte) (ahead []byte)
	// HoldOn has the request, which has its partition locked by t, hold the partition until it is
	// answered: it will not end under this lock. Later comes next.
	HoldOn(t engine.Txn)
	// KeepArgs makes Args, Keys and Partitions the caller's. Their bytes stay as they are until input is
	// released, on the loop of the connection, or if it is nil, for good. If kept is false, they must be
	// copied instead, as short ones must.
	KeepArgs() (input *netloop.Buffer, kept bool)
	// Again executes the present request from its beginning, without counting it again.
	Again()
	// IsAbandoned reports whether nobody waits for the reply any more, and nothing else needs the request to be
	// executed: it may end, if it has changed nothing.
	IsAbandoned() bool
}

// Keyspace is what a command over all keys asks of the node.
type Keyspace interface {
	// Cover returns the partitions that the reply must cover. If a proxy asks for a part of a reply
	// (Request.Part), Cover also begins the reply.
	Cover() ring.PartitionSet
	// CoverLater does what Host.AnswerLater does, for a command over all keys. f fills reply, or
	// gives it an error as its Head. CoverLater calls f again if a new table has arrived meanwhile.
	CoverLater(f func(ctx context.Context, covered *ring.PartitionSet, reply *Gathered))
	// DropLater has a goroutine delete all keys that the reply must cover, FLUSHDB those of its
	// database, and answers OK.
	DropLater()
}

// Heap charges what commands keep to the node's memory limit. Any goroutine may call it.
type Heap interface {
	// Charge reports whether that many bytes of the Go heap were left, and takes them.
	Charge(bytes int64) bool
	// Refund gives back bytes that Charge took.
	Refund(bytes int64)
	// StageReply is Engine.StageReply, within what connections may use.
	StageReply(bytes int) (engine.Staged, error)
}

// Work is the part of a command that takes too long for a loop.
type Work interface {
	// Run does the work, in a goroutine. It must return soon after ctx ends, which the end of the
	// connection brings about.
	Run(ctx context.Context)
	// Reply answers the command, on the loop. It is not called if the connection has closed.
	Reply(r *Request)
	// End frees what Reply has not used. It is called once, on the loop, after Run and Reply if these
	// are called, and before the engine closes. A loop that stops before the node does calls neither.
	End()
}

// Waiter is a Work that waits for others behind Run, before it can be answered. In between it keeps
// nobody from computing.
type Waiter interface {
	// Await waits, in a goroutine, until ctx ends at the latest.
	Await(ctx context.Context)
}

// MayWait panics within a transaction. Whatever lets a goroutine finish a command calls it first:
// a transaction keeps its lock, so it must not wait.
func (r *Request) MayWait() {
	if r.InTransaction {
		panic("BUG: " + r.Cmd.Name + " waits within a transaction")
	}
}
