package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// Commands over the whole keyspace or node that only look, such as DBSIZE, SCAN, KEYS and INFO, take a loop as long as
// hundreds of others. While loops are strained, a client that sends one directly rests behind its reply, as those of a
// proxy rest together (proxy/pace.go). Those of one loop rest one after the other, so all of them together take no more
// than a sixth of its time:
//
//	client 1   DBSIZE ── 5 x as long ──▶ next command
//	client 2      DBSIZE ──────────────── 5 x as long ──▶ next command

const (
	// lookFactor is how many times as long as a command took its client rests, up to lookRest.
	lookFactor = 5
	// lookRest bounds a rest, and is how often a client looks whether loops are strained still.
	lookRest = 100 * time.Millisecond
)

// looksOnly reports whether a command is one that rests.
func looksOnly(c *command.Command) bool {
	return c.Route == command.AllNodes && c.Flags&(command.Write|command.Blocking) == 0 && c.Group != "scripting"
}

// beginLook notes when a command begins behind which the client is to rest.
func (r *request) beginLook() {
	if cn := r.conn; cn.pipe == nil && !cn.peer && r.transaction == nil && r.node.strained() {
		cn.looked = max(r.worker.loop.Clock(), 1)
		r.longEnough = true // what comes behind it waits
	}
}

// restBehindLook has the client rest, if the command that was just answered is one for that.
func (cn *conn) restBehindLook() {
	if cn.looked == 0 || cn.Answering {
		return // the reply is still to come
	}
	w := cn.worker
	now := w.loop.Clock()
	took := now - cn.looked
	cn.looked = 0
	w.looksUntil = max(w.looksUntil, now) + min(lookFactor*took, lookRest)
	cn.pause()
	cn.restUntil(w.looksUntil)
}

// restUntil goes on with the client's requests then, or when no loop is strained any more.
func (cn *conn) restUntil(until time.Duration) {
	w := cn.worker
	left := until - w.loop.Clock()
	if cn.closed || left <= 0 || !cn.node.strained() {
		cn.resume(func(*request) {})
		return
	}
	w.turns.takeAfter(min(left, lookRest), func() { cn.restUntil(until) })
}
