package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// PUBSUB CHANNELS and NUMSUB of a client of a node are about the channels of the whole cluster. The node asks all
// nodes at once, itself among them, about their partitions, as a proxy does (DUNLIN EACH), until all are covered.

// asksOthers reports whether the present command, which is about channels, concerns other nodes, too.
func (r *request) asksOthers() bool {
	return !r.Part && r.conn.pipe == nil && !r.conn.peer && hasOthers(r.view) && r.relays()
}

// merge puts the nodes' parts of a reply together.
type merge interface {
	// add takes a part, which is an array of so many elements. It is called under the asking's lock.
	add(a *asking, elements int, body []byte) (problem string)
	// end completes the reply.
	end(a *asking)
}

// asking is a command that asks all nodes, in a goroutine.
type asking struct {
	node    *Node
	heap    exec.Heap
	words   [][]byte // of the command
	names   [][]byte // of these, those behind the subcommand
	into    merge
	charged int64

	mu    sync.Mutex // of into, and what it changes
	reply *exec.Gathered
}

// asksAtOnce is how many nodes a command asks at once.
const asksAtOnce = 16

// askOthers answers the present command with what all nodes say.
func (r *request) askOthers(into merge) {
	a := &asking{node: r.node, heap: r.Heap, into: into}
	size := 0
	for _, arg := range r.Args {
		size += 3*len(arg) + exec.LineRoom // here, in the question, and in the reply
	}
	if !a.room(size) {
		r.Fail(exec.ErrOOM)
		return
	}
	a.words = exec.CloneArgs(r.Args)
	a.names = a.words[2:]
	r.gatherLater(waits, covers, func(ctx context.Context, reply *exec.Gathered) {
		ctx, cancel := context.WithTimeout(ctx, publishPatience)
		defer cancel()
		a.reply = reply
		if problem := a.ask(ctx); problem != "" {
			reply.End()
			reply.Head = resp.AppendError(nil, problem)
		}
	}, func() { a.heap.Refund(a.charged) })
}

// room takes memory until the command is answered.
func (a *asking) room(bytes int) bool {
	ok := a.heap.Charge(int64(bytes))
	if ok {
		a.charged += int64(bytes)
	}
	return ok
}

// askRound are the questions of a command to nodes.
type askRound struct {
	a       *asking
	want    ring.PartitionSet // that nobody has covered, and nobody is asked about
	asked   map[string]*asked // by address
	rests   map[string]bool   // who has not covered all is asked again after a while, by address
	answers chan *asked
}

// asked is a question to one node.
type asked struct {
	addr    string
	share   ring.PartitionSet
	cancel  context.CancelFunc
	covered ring.PartitionSet
	problem string
}

// ask asks nodes, many at once, until all partitions are covered. It gives up a node from which a newer table has taken
// what it was asked about: it may not answer any more.
func (a *asking) ask(ctx context.Context) (problem string) {
	round := askRound{
		a: a, want: allPartitions, asked: make(map[string]*asked), rests: make(map[string]bool),
		answers: make(chan *asked, asksAtOnce),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer round.end()
	defer cancel()
	looks := time.NewTicker(loanPause)
	defer looks.Stop()
	for {
		round.begin(ctx)
		select {
		case of := <-round.answers:
			if round.took(of); of.problem != "" {
				return of.problem
			}
			if round.want.Empty() && len(round.asked) == 0 {
				a.into.end(a)
				return ""
			}
		case <-looks.C:
			clear(round.rests)
		case <-ctx.Done():
			return errNotAsked
		}
	}
}

// begin asks the nodes that have what is wanted, and gives up those that have nothing of what they were asked about.
func (q *askRound) begin(ctx context.Context) {
	t := q.a.node.view.Load().Table
	for _, of := range q.shares(t) {
		ofOne, cancel := context.WithCancel(ctx)
		of.cancel = cancel
		q.asked[of.addr] = of
		q.want.RemoveAll(&of.share)
		go func() {
			of.covered, of.problem = q.a.askOne(ofOne, of.addr, &of.share)
			q.answers <- of
		}()
	}
	for _, of := range q.asked {
		if !of.owns(t) {
			of.cancel()
		}
	}
}

// shares returns whom to ask now, and about what, by node of the table.
func (q *askRound) shares(t *ring.Table) (all map[uint16]*asked) {
	all = make(map[uint16]*asked)
	for p := range uint16(ring.Partitions) {
		node := t.Owner[p]
		if !q.want.Has(p) {
			continue
		}
		of := all[node]
		if of == nil {
			addr := t.Nodes[node].Addr
			if q.asked[addr] != nil || q.rests[addr] || len(q.asked)+len(all) == asksAtOnce {
				continue
			}
			of = &asked{addr: addr}
			all[node] = of
		}
		of.share.Add(p)
	}
	return all
}

// took takes what a node has answered.
func (q *askRound) took(of *asked) {
	of.cancel()
	delete(q.asked, of.addr)
	of.share.RemoveAll(&of.covered)
	q.want.AddAll(&of.share)
	if !of.share.Empty() {
		q.rests[of.addr] = true
	}
}

// end returns when nobody is asked any more.
func (q *askRound) end() {
	for len(q.asked) > 0 {
		q.took(<-q.answers)
	}
}

// owns reports whether the table gives the node something of what it was asked about.
func (of *asked) owns(t *ring.Table) bool {
	for p := range uint16(ring.Partitions) {
		if of.share.Has(p) && t.OwnerOf(p).Addr == of.addr {
			return true
		}
	}
	return false
}

// askOne asks a node about some partitions, and returns those that it has covered: none if it is to be asked again.
func (a *asking) askOne(ctx context.Context, addr string, share *ring.PartitionSet) (covered ring.PartitionSet, problem string) {
	question := member.AppendEach(nil, share, a.words...)
	taken := 0
	err := a.node.lenders.ask(ctx, addr, func(p *member.Peer) error {
		set, part, err := p.Each(question, func(bytes int) bool {
			if taken+bytes > member.MaxReply {
				return false
			}
			ok := a.heap.Charge(int64(bytes))
			if ok {
				taken += bytes
			}
			return ok
		})
		if err != nil {
			return err
		}
		covered = *set
		elements, header, ok := resp.DecodeArray(part)
		if !ok {
			return textError(errNotAsked)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		problem = a.into.add(a, elements, part[header:])
		return nil
	})
	a.heap.Refund(int64(taken))
	var text textError
	var refused *member.Refusal
	switch {
	case err == nil:
		return covered, problem
	case errors.As(err, &text):
		return covered, string(text)
	case errors.Is(err, member.ErrNoRoom) && taken > member.MaxReply/4: // the next step would be too much
		return covered, errManyAsked
	case errors.Is(err, member.ErrNoRoom):
		return covered, exec.ErrOOM
	case errors.As(err, &refused) && !mayAskAgain(err):
		return covered, refused.Text
	}
	return ring.PartitionSet{}, ""
}

// namesMerge is PUBSUB CHANNELS: each node has others.
type namesMerge struct{ found, size int }

func (m *namesMerge) add(a *asking, elements int, body []byte) (problem string) {
	m.found += elements
	switch m.size += len(body); {
	case m.size > maxChannelsReply:
		return errManyChannels
	case !a.reply.Append(a.heap, body):
		return exec.ErrOOM
	}
	return ""
}

func (m *namesMerge) end(a *asking) { a.reply.Head = resp.AppendArray(nil, m.found) }

// countsMerge is PUBSUB NUMSUB: all nodes but the owner of a channel say 0.
type countsMerge struct{ counts []int64 }

func (m *countsMerge) add(_ *asking, elements int, body []byte) (problem string) {
	if elements != 2*len(m.counts) {
		return errNotAsked
	}
	var scan resp.Scanner
	for i := range elements {
		if scan.Scan(body) != resp.Done {
			return errNotAsked
		}
		if i%2 == 1 {
			count, ok := resp.DecodeInt(body[:scan.Len()])
			if !ok {
				return errNotAsked
			}
			m.counts[i/2] += count
		}
		body = body[scan.Len():]
	}
	return ""
}

func (m *countsMerge) end(a *asking) {
	a.reply.Head = resp.AppendArray(nil, 2*len(a.names))
	for i, name := range a.names {
		a.reply.Head = resp.AppendInt(resp.AppendBulk(a.reply.Head, name), m.counts[i])
	}
}
