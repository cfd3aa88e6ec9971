package exec

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// Conn is the part of a connection that a request sees.
type Conn struct {
	State     *session.State
	Socket    *netloop.Conn
	Upload    *Upload // not nil: a request with large values is coming in
	Answering bool    // a goroutine makes the next reply; nothing is executed meanwhile
	Closing   bool    // nothing more is executed; close when all is sent
}

// Host is the node that executes a request, as seen from the request's connection. It is for what
// is rare: GET makes no call through it.
type Host interface {
	// AnswerLater stops the connection, has a goroutine call f, and appends the reply that f
	// returns. f must not use the request or views of its arguments, and must return soon after ctx
	// ends.
	AnswerLater(f func(ctx context.Context) (reply []byte))
	// Later stops the connection and hands w to a goroutine.
	Later(w Work)
	// Again executes the present request from its beginning, without counting it again.
	Again()

	// Cover returns the partitions of which a command over all keys is to tell. If it is executed
	// for a proxy (part), that begins the reply.
	Cover() ring.PartitionSet
	// CoverLater is AnswerLater for such a command. It calls f again when a new table has come
	// meanwhile.
	CoverLater(f func(ctx context.Context, covered *ring.PartitionSet) (reply []byte))
	// Drop deletes all keys of those partitions that the node still serves. It may be called from
	// any goroutine.
	Drop(partitions *ring.PartitionSet)

	// ChargeHeap takes bytes of the memory limit for what lies in the Go heap, and reports whether
	// there were as many. RefundHeap gives them back. Both may be called from any goroutine.
	ChargeHeap(bytes int64) bool
	RefundHeap(bytes int64)

	// EvictsByFrequency reports whether the eviction policy has one of Redis's LFU names.
	EvictsByFrequency() bool
}

// Work is the part of a command that takes too long for a loop.
type Work interface {
	// Run does it, in a goroutine. It must return soon after ctx ends.
	Run(ctx context.Context)
	// Reply answers the command, on the loop. It is not called if the connection has closed.
	Reply(r *Request)
	// End frees what Reply has left, on the loop. It is always called, and last.
	End()
}

// MayWait is called where a command leaves its end to a goroutine, as none may within a
// transaction.
func (r *Request) MayWait() {
	if r.Holding {
		panic("BUG: " + r.Cmd.Name + " waits within a transaction")
	}
}
