package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// PUBSUB: who listens to this broker. Its part of a reply is about the channels of the partitions that it
// covers, so that each channel is counted at one node.

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
	covered := r.Cover()
	names, ok := r.node.broker.Names(kind, pattern, func(name string) bool { return covered.Has(ring.PartitionOf([]byte(name))) }, exec.MaxReply)
	if !ok {
		r.Fail(errManyChannels)
		return
	}
	if !r.Room(exec.LineRoom) {
		return
	}
	r.Out = resp.AppendArray(r.Out, len(names))
	for _, name := range names {
		if !r.Room(len(name) + exec.LineRoom) {
			return
		}
		r.Out = resp.AppendBulkString(r.Out, name)
	}
}

// pubSubNumSub: PUBSUB NUMSUB [channel...], PUBSUB SHARDNUMSUB [channel...]
func pubSubNumSub(r *request) {
	kind := pubsub.Channel
	if r.Cmd.ID == command.PubSubShardNumSub {
		kind = pubsub.Shard
	}
	covered := r.Cover()
	names := r.Args[2:]
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

// pubSubNumPat: PUBSUB NUMPAT
func pubSubNumPat(r *request) {
	r.Cover()
	r.ReplyInt(int64(r.node.broker.Patterns()))
}
