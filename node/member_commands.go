package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// Commands between members, on the port of the clients:
//
//	DUNLIN CHALLENGE, PIPE, PEER   which member this is (pipes.go)
//	DUNLIN RETRY                   a proxy sends again what this pipe refused (pipes.go)
//	DUNLIN CLAIM, PASS             a proxy's blocking command that names keys of several nodes (claim.go)
//	DUNLIN RETURN                  what a proxy's blocking command has popped goes back (return.go)
//	DUNLIN AS                      whose request comes next (tracking.go)
//	DUNLIN LISTEN                  how many subscribers of a topic a proxy's loop has (listen.go)
//	DUNLIN TOPICS, MISSED, HANDED  who listens to channels that another node hands over (topics.go)
//	DUNLIN GATHER                  a proxy's command whose keys lie in several slots (gather.go)
//	DUNLIN PUBLISH                 a message of a transaction or a script that another node executes (publication.go)
//	DUNLIN LEND, CEDE              what a key holds, for a command that another node executes (lend.go)
//	DUNLIN RESERVE, WITHIN         a partition is held for a command that another node executes; RELEASE
//	                               ends that (reserve.go)
//	DUNLIN FETCH                   a piece of a large reply, for a proxy (pipes.go)
//	DUNLIN EXEC, WATCH             a proxy's client's transaction (transaction.go)
//	DUNLIN EACH                    a proxy's command over all keys, for a set of partitions
//	DUNLIN STREAM, EFFECTS, VALUE  what another node's partitions hold (replication.go)
//	DUNLIN CONFIGURE, SETTINGS     what holds for the whole cluster (config.go)
//	DUNLIN TABLE, TAKE             reading the table, handing over a newer one
//	DUNLIN REPORT                  which copies are in sync (replication.go)
//
// A client's password does not allow them: a member proves that it knows the cluster's secret.

// trusted reports whether the connection is a member's.
func (r *request) trusted() bool {
	return r.node.cfg.Secret.First() == nil || r.conn.pipe != nil || r.conn.peer
}

// dispatchInternal executes DUNLIN.
func (r *request) dispatchInternal() {
	c, refusal := command.ResolvePeer(nil, r.Args)
	if c == nil {
		r.Fail(string(refusal))
		return
	}
	h := internalHandlers[c.ID]
	if h == nil { // DUNLIN alone
		r.Fail(string(command.AppendWrongArity(nil, c)))
		return
	}
	if !h.open && !r.trusted() {
		r.Fail(errNoAuth)
		return
	}
	r.Cmd = c
	r.worker.Count.Commands[c.ID]++
	if !h.clients {
		r.worker.Count.Internal++
	}
	h.run(r)
}

// sendReport: DUNLIN REPORT
func sendReport(r *request) {
	r.Out = member.AppendReport(r.Out, r.node.report())
}

// sendTable: DUNLIN TABLE [name]. Who names a node means no other one that has come to its address.
func sendTable(r *request) {
	t := r.view.Table
	switch {
	case len(r.Args) > 3:
		r.Fail(string(command.AppendWrongArity(nil, r.Cmd)))
	case len(r.Args) == 3 && string(r.Args[2]) != r.node.name():
		r.Fail(errOtherNode)
	case t == nil:
		r.ReplyNull()
	default:
		r.ReplyBulk(t.Encode())
	}
}

// takeTable: DUNLIN TAKE table. When the node answers, it executes nothing under an older table any
// more, and the new owners have all of what it has lost, but for what the answer names as held.
func takeTable(r *request) {
	t, err := ring.DecodeTable(r.Args[2])
	if err != nil {
		r.Fail(errBadTable + ": " + err.Error())
		return
	}
	n := r.node
	r.answerLater(func() []byte {
		switch reply := n.obeyTaken(t); reply.Answer {
		case ownership.Obeyed:
			return member.AppendTaken(nil, &member.Taken{Epoch: reply.Epoch, Name: n.name(), Held: reply.Held})
		case ownership.NotOfOurOwn:
			return resp.AppendError(nil, errForeignTable)
		default:
			return resp.AppendError(nil, errHandingOver)
		}
	})
}

// each: DUNLIN EACH bitmap command arguments... The reply is an array of two: the partitions
// covered, and the node's part of the command's reply. The proxy asks again, or another node, about
// partitions that are not covered.
func each(r *request) {
	if r.gate().Outdated(r.view) {
		r.replyWait()
		return
	}
	asked, words, ok := member.ParseEach(r.Args[2:])
	if !ok {
		r.Fail(errBadBitmap)
		return
	}
	r.wanted, r.Args = *asked, words
	c, refusal := command.Resolve(nil, r.Args)
	if c == nil {
		r.Fail(string(refusal))
		return
	}
	r.Cmd = c
	if h := eachHandlers[c.ID]; h != nil {
		r.Part = true
		defer func() { r.Part = false }()
		h(&r.Request)
		return
	}
	r.Fail(errNotEach)
}

// coverage returns the present view, and which of the wanted partitions this node may serve under
// it.
func (n *Node) coverage(wanted *ring.PartitionSet) (*ownership.View, ring.PartitionSet) {
	fenced := n.isFenced(n.cfg.Group.Clock()) // first, see worker.begin
	v := n.view.Load()
	if fenced {
		return v, ring.PartitionSet{}
	}
	return v, served(v, wanted)
}
