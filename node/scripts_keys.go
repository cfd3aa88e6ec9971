package node

import (
	"bytes"
	"context"

	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A script may call KEYS if all keys that match are in its partition. A runner does that, which holds the partition.

// isLocalPattern reports whether all keys that match a pattern are in the script's partition: the pattern is a key, or
// has a tag in front of what stands for other characters, or the database is pinned.
func (x *runner) isLocalPattern(pattern []byte) bool {
	if x.Placement.Pins(x.Database) {
		return x.isLocalKey(nil)
	}
	same := pattern
	if i := bytes.IndexAny(pattern, `*?[\`); i >= 0 {
		same = pattern[:i]
		open := bytes.IndexByte(same, '{')
		if open < 0 || bytes.IndexByte(same[open+1:], '}') <= 0 {
			return false
		}
	}
	return x.isLocalKey(same)
}

// scriptKeys is the exec.Keyspace of a runner: its partition.
type scriptKeys struct{ x *runner }

// Cover returns the script's partition.
func (k scriptKeys) Cover() (covered ring.PartitionSet) {
	covered.Add(k.x.run.partition)
	return covered
}

// CoverLater has f called when the handler has returned.
func (k scriptKeys) CoverLater(f func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered)) {
	covered := k.Cover()
	k.x.Host.GatherLater(func(ctx context.Context, reply *exec.Gathered) { f(ctx, &covered, reply) })
}

// DropLater is not called.
func (k scriptKeys) DropLater() { panic("BUG: a script drops partitions") }
