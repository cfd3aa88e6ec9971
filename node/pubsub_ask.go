package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// PUBSUB: who listens to this broker. Its part of a reply is about the channels of the partitions that it
// covers, so that each channel is counted at one node. A client of a node is told of the whole cluster's channels and
// patterns (pubsub_others.go), and of that node's own shard channels, as in a Redis Cluster.

// pubSubChannels: PUBSUB CHANNELS [pattern], PUBSUB SHARDCHANNELS [pattern]
func pubSubChannels(r *request) {
	kind := pubsub.Channel
	if r.Cmd.ID == command.PubSubShardChannels {
		kind = pubsub.Shard
	}
	var pattern *glob.Pattern
	switch {
	case len(r.Args) > 3:
		r.Fail(command.WrongSubArgs(r.Args))
		return
	case len(r.Args) == 3:
		var err error
		if pattern, err = glob.Compile(r.Args[2]); err != nil {
			r.Fail(err.Error())
			return
		}
	}
	if kind == pubsub.Channel && r.asksOthers() {
		r.askOthers(&namesMerge{})
		return
	}
	b, heap := r.node.broker, r.Heap
	r.CoverLater(func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered) {
		list := channelList{ctx: ctx, heap: heap, reply: reply, covered: covered, pattern: pattern}
		if problem := list.gather(b, kind); problem != "" {
			reply.End()
			reply.Head = resp.AppendError(nil, problem)
			return
		}
		reply.Head = resp.AppendArray(nil, list.found)
	})
}

// maxChannelsReply limits the reply of PUBSUB CHANNELS, in bytes, as that of KEYS is.
const maxChannelsReply = 32 << 20

// channelList gathers the names of channels as a reply, in a goroutine.
type channelList struct {
	ctx     context.Context // when it ends, nobody waits for the names
	heap    exec.Heap
	reply   *exec.Gathered
	covered *ring.PartitionSet
	pattern *glob.Pattern // nil: all channels
	batch   []byte        // names that were found since the last rest
	size    int           // bytes of all names
	found   int
	problem string // what went wrong
}

func (l *channelList) gather(b *broker.Broker, kind pubsub.Kind) (problem string) {
	b.Each(kind, l.visit, l.rest)
	if l.problem == "" {
		l.rest()
	}
	return l.problem
}

func (l *channelList) visit(channel string) (cost int) {
	name := []byte(channel)
	if l.covered.Has(ring.PartitionOf(name)) && (l.pattern == nil || l.pattern.Match(name)) {
		l.batch = resp.AppendBulk(l.batch, name)
		l.found++
	}
	return l.pattern.Cost(name) + len(name)/channelStep
}

// channelStep bytes of a name take as long as another channel.
const channelStep = 512

// rest takes over what was found, and rests if others wait.
func (l *channelList) rest() (goOn bool) {
	l.size += len(l.batch)
	switch {
	case exec.Step(l.ctx) != nil:
		l.problem = exec.ErrBusy
	case l.size > maxChannelsReply:
		l.problem = errManyChannels
	case !l.reply.Append(l.heap, l.batch):
		l.problem = exec.ErrOOM
	}
	l.batch = l.batch[:0]
	return l.problem == ""
}

// pubSubNumSub: PUBSUB NUMSUB [channel...], PUBSUB SHARDNUMSUB [channel...]
func pubSubNumSub(r *request) {
	kind := pubsub.Channel
	if r.Cmd.ID == command.PubSubShardNumSub {
		kind = pubsub.Shard
	}
	names := r.Args[2:]
	if kind == pubsub.Channel && r.asksOthers() {
		r.askOthers(&countsMerge{counts: make([]int64, len(names))})
		return
	}
	covered := r.Cover()
	r.Out = resp.AppendArray(r.Out, 2*len(names))
	for _, name := range names {
		count := 0
		if covered.Has(ring.PartitionOf(name)) {
			count = r.node.broker.Count(kind, name)
		}
		r.ReplyBulk(name)
		r.ReplyInt(int64(count))
	}
}

// pubSubNumPat: PUBSUB NUMPAT. All nodes know the patterns of the whole cluster.
func pubSubNumPat(r *request) {
	r.Cover()
	r.ReplyInt(int64(r.node.broker.Patterns()))
}
