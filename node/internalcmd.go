package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Commands between members, on the same port as clients:
//
//	DUNLIN CHALLENGE, PIPE, PEER   who is it? (pipes.go)
//	DUNLIN RETRY                   a proxy repeats what was refused on this pipe (pipes.go)
//	DUNLIN FETCH                   a piece of a large reply, for a proxy (ticket.go)
//	DUNLIN EXEC, WATCH             a proxy's client's transaction (transaction.go)
//	DUNLIN EACH                    a proxy's command over all keys, for a set of partitions
//	DUNLIN STREAM, EFFECTS, VALUE  what another node's partitions hold (stream_receive.go)
//	DUNLIN TABLE, TAKE             reading the table, handing over a newer one
//	DUNLIN REPORT                  which copies are in sync (copies.go)
//
// They are not for clients' passwords: what lets a member in is the secret.

// trusted tells whether the connection is a member's.
func (r *request) trusted() bool {
	return r.node.secret == nil || r.conn.pipe != nil || r.conn.peer
}

// dispatchInternal executes DUNLIN.
func (r *request) dispatchInternal() {
	c, refusal := command.ResolvePeer(nil, r.args)
	if c == nil {
		r.fail(string(refusal))
		return
	}
	h := internalHandlers[c.ID]
	if h == nil { // DUNLIN alone
		r.fail(string(command.AppendWrongArity(nil, c)))
		return
	}
	if !h.open && !r.trusted() {
		r.fail(errNoAuth)
		return
	}
	r.cmd = c
	r.worker.count.commands[c.ID]++
	h.run(r)
}

// sendReport: DUNLIN REPORT
func sendReport(r *request) {
	r.out = member.AppendReport(r.out, r.node.report())
}

// sendTable: DUNLIN TABLE
func sendTable(r *request) {
	t := r.view.Table
	if t == nil {
		r.replyNull()
		return
	}
	r.replyBulk(t.Encode())
}

// takeTable: DUNLIN TAKE table. When it is answered, this node executes nothing
// under an older table any more, and the new owners of what it lost have all of it.
func takeTable(r *request) {
	t, err := ring.DecodeTable(r.args[2])
	if err != nil {
		r.fail(errBadTable + ": " + err.Error())
		return
	}
	n := r.node
	r.answerLater(func() []byte {
		switch answer, epoch := n.obeyTaken(t); answer {
		case ownership.Obeyed:
			return member.AppendTaken(nil, epoch, n.name())
		case ownership.NotOfOurOwn:
			return resp.AppendError(nil, errForeignTable)
		default:
			return resp.AppendError(nil, errHandingOver)
		}
	})
}

// each: DUNLIN EACH bitmap command arguments... The reply is an array of the
// partitions covered and the command's reply. Those that were wanted and are
// not covered are asked of another node, or again.
func each(r *request) {
	if r.outdated() {
		r.replyWait()
		return
	}
	asked, words, ok := member.ParseEach(r.args[2:])
	if !ok {
		r.fail(errBadBitmap)
		return
	}
	wanted := *asked
	r.args = words
	c, refusal := command.Resolve(nil, r.args)
	if c == nil {
		r.fail(string(refusal))
		return
	}
	n := r.node
	r.cmd = c
	switch c.ID {
	case command.SlowLogGet, command.SlowLogLen, command.SlowLogReset:
		reply := n.slow.AppendReply(nil, r.args)
		if !resp.IsError(reply) {
			_, covered := n.coverage(&wanted)
			r.out = member.AppendCovered(r.out, &covered)
		}
		r.out = append(r.out, reply...)
	case command.HotKeysGet, command.HotKeysBig:
		r.eachLater(wanted, func(*ring.PartitionSet) []byte { return n.keyFigures(c.ID == command.HotKeysBig) })
	case command.HotKeysReset:
		n.forgetHotKeys()
		_, covered := n.coverage(&wanted)
		r.out = member.AppendCovered(r.out, &covered)
		r.replyOK()
	case command.DBSize:
		_, covered := n.coverage(&wanted)
		r.out = member.AppendCovered(r.out, &covered)
		r.replyInt(n.countKeys(&covered))
	case command.Scan:
		r.eachScan(&wanted)
	case command.RandomKey:
		r.eachRandomKey(&wanted)
	case command.Keys:
		pattern, now := bytes.Clone(r.args[1]), r.now
		r.eachLater(wanted, func(covered *ring.PartitionSet) []byte { return n.gatherKeys(covered, pattern, now) })
	case command.Wait:
		r.eachWait(wanted)
	case command.FlushAll, command.FlushDB:
		if !flushOptionsOK(r.args[1:]) {
			r.fail(errSyntax)
			return
		}
		r.eachLater(wanted, n.dropPartitions)
	case command.Info:
		if len(r.args) > 1 {
			r.eachLater(wanted, n.infoCalls)
			return
		}
		r.eachLater(wanted, n.infoCounters)
	case command.ConfigGet, command.ConfigSet, command.ConfigResetStat:
		args := cloneArgs(r.args)
		r.eachLater(wanted, func(*ring.PartitionSet) []byte { return n.configure(c.ID, args) })
	default:
		r.fail(errNotEach)
	}
}

// eachScan answers EACH SCAN.
func (r *request) eachScan(wanted *ring.PartitionSet) {
	q, errText := parseScan(r.args[1:])
	if errText != "" {
		r.fail(errText)
		return
	}
	_, covered := r.node.coverage(wanted)
	body, found, next, done := r.scanKeys(&q, &covered, r.worker.body[:0])
	if done {
		next = member.EndOfScan
	}
	r.out = member.AppendCovered(r.out, &covered)
	r.out = member.AppendStop(r.out, next)
	r.replyKeys(found, body)
}

// coverage returns the present view and which of the partitions wanted may be
// served by it.
func (n *Node) coverage(wanted *ring.PartitionSet) (*ownership.View, ring.PartitionSet) {
	fenced := n.fenced.Load() // first, see worker.begin
	v := n.view.Load()
	if fenced {
		return v, ring.PartitionSet{}
	}
	return v, served(v, wanted)
}

// eachTries is how often a command over all keys begins again because a new
// table came.
const eachTries = 5

// eachLater answers an EACH that takes long, from a goroutine. No barrier waits
// for that one: when the view has changed, what it found may be of a partition
// that was lost meanwhile, and it begins again.
func (r *request) eachLater(wanted ring.PartitionSet, f func(covered *ring.PartitionSet) (reply []byte)) {
	n := r.node
	r.answerLater(func() []byte {
		for range eachTries {
			before, covered := n.coverage(&wanted)
			reply := f(&covered)
			if resp.IsError(reply) {
				return reply
			}
			if after := n.view.Load(); after == before {
				return append(member.AppendCovered(nil, &covered), reply...)
			}
		}
		return resp.AppendError(nil, errTakingOver)
	})
}
