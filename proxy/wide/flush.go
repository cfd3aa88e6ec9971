package wide

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// FLUSHALL and FLUSHDB, and all other commands that nodes execute without returning anything.

// done is the reply +OK when all partitions are covered.
type done struct{}

func askFlush(c *Call, q *Question) error {
	q.OfDatabase = c.Command.ID == command.FlushDB
	return askOK(q)
}

func askOK(q *Question) error {
	q.merge = done{}
	return nil
}

// Begin has nothing to forget.
func (done) Begin() {}

// Add has nothing to keep.
func (done) Add(Answer) error { return nil }

// Reply appends +OK.
func (done) Reply(dst []byte) []byte { return resp.AppendSimple(dst, "OK") }
