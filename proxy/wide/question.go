package wide

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// nodesPatience is how long a question about nodes waits for all of them. After that it is answered
// without the nodes that are missing.
const nodesPatience = time.Second

// maxArgs bounds the arguments of a command over the whole cluster, in bytes.
const maxArgs = 16 << 10

var errArgs = errors.New("ERR the arguments are too long: a command over the whole cluster takes 16384 bytes of them")

// Accept returns how many bytes the arguments of a command over the whole cluster have. An error's
// text is the reply to the client: they are too long to be sent to every node.
func Accept(cmd *command.Command, args [][]byte) (size int, err error) {
	for _, a := range args {
		size += len(a)
	}
	if size > maxArgs && (cmd.ID != command.ScriptLoad || size > command.MaxScript+len("SCRIPT")+len("LOAD")) {
		return size, errArgs
	}
	return size, nil
}

// errMerge is the reply to the client when a node's answer is malformed.
var errMerge = errors.New("ERR a node gave a reply that cannot be merged with the others")

// Host appends the replies that need figures of the proxy itself.
type Host interface {
	// AppendInfo appends the reply to INFO: what the nodes said, and the proxy's own figures.
	AppendInfo(dst []byte, v resp.Version, sections [][]byte, of figures.Info) []byte
	// Config returns the proxy's own settings.
	Config() *config.Config
	// SlowLog returns the proxy's own slow log.
	SlowLog() *figures.SlowLog
	// KeepScript, HasScript and FlushScripts are about the bodies of scripts that the proxy keeps.
	KeepScript(text []byte)
	HasScript(sha []byte) bool
	FlushScripts()
}

// Call is a client's call of a command over the whole cluster.
type Call struct {
	Command  *command.Command
	Args     [][]byte     // owned, and accepted by Accept
	Version  resp.Version // of the reply
	Now      time.Duration
	Patience time.Duration // how long a command may wait for nodes
	Host     Host
	Level    uint8 // of the cluster

	PartitionOf func(key []byte) uint16 // in the database that the command is about
}

// Merge gathers the answers of the nodes.
type Merge interface {
	// Begin begins a round: the first one, or one more because partitions were not covered. No
	// answer of the previous round is in flight.
	Begin()
	// Add takes a node's answer. An error is the reply to the client.
	Add(a Answer) error
	// Reply appends the reply to the client.
	Reply(dst []byte) []byte
}

// Finisher is a Merge that decides itself whether a round was the last one. Without it, a round is
// the last one when all partitions are covered.
type Finisher interface {
	// Finished reports whether Reply can be called. missing is what no answer has covered.
	Finished(missing *ring.PartitionSet) bool
}

// Sized is a Merge whose answers can take much memory.
type Sized interface {
	// Size is the bytes that the answers take so far.
	Size() int
}

// Answer is what one node has said.
type Answer struct {
	Node    string             // its ring.Member.ID
	Covered *ring.PartitionSet // of the partitions that it was asked about
	Reply   []byte             // encoded; valid during the call
}

// Question is a command over the whole cluster while nodes are asked about it.
type Question struct {
	Words  [][]byte // what each node is asked
	Rounds Rounds
	// AboutNodes: the question is about nodes rather than about partitions. When the time is up it
	// is answered for the nodes that there are. Each round asks everybody.
	AboutNodes bool
	// OfDatabase: the question is about the database that the client has selected.
	OfDatabase bool
	// Checks: what the nodes are asked now changes nothing, whatever the command does.
	Checks bool

	merge  Merge
	failed error
}

// questions lists the commands that concern the whole cluster.
var questions = map[command.ID]func(c *Call, q *Question) error{
	command.ClusterCountKeysInSlot: askSlots,
	command.ClusterGetKeysInSlot:   askSlots,
	command.ClusterSlotStats:       askSlots,

	command.ConfigGet:           askConfigGet,
	command.ConfigSet:           askConfigSet,
	command.ConfigResetStat:     askResetStat,
	command.DBSize:              askDBSize,
	command.FlushAll:            askFlush,
	command.FlushDB:             askFlush,
	command.FunctionKill:        askScriptKill,
	command.FunctionStats:       askFunctionStats,
	command.HotKeysBig:          askHotKeysBig,
	command.HotKeysGet:          askHotKeysGet,
	command.HotKeysReset:        askHotKeysReset,
	command.Info:                askInfo,
	command.Keys:                askKeys,
	command.LatencyHistogram:    askLatency,
	command.MemoryStats:         askMemory,
	command.PubSubChannels:      askChannels,
	command.PubSubNumPat:        askNumPat,
	command.PubSubNumSub:        askNumSub,
	command.PubSubShardChannels: askChannels,
	command.PubSubShardNumSub:   askNumSub,
	command.RandomKey:           askRandomKey,
	command.Scan:                askScan,
	command.ScriptExists:        askScript,
	command.ScriptFlush:         askScriptFlush,
	command.ScriptKill:          askScriptKill,
	command.ScriptLoad:          askScript,
	command.ScriptShow:          askScript,
	command.SlowLogGet:          askSlowLogGet,
	command.SlowLogLen:          askSlowLogLen,
	command.SlowLogReset:        askSlowLogReset,
}

// New returns the question that a call asks. An error's text is the reply to the client.
func New(c *Call) (*Question, error) {
	ask := questions[c.Command.ID]
	if ask == nil {
		panic("BUG: nobody asks the nodes about " + c.Command.Name)
	}
	q := &Question{Words: c.Args}
	q.Rounds.Deadline = c.Now + c.Patience
	if err := ask(c, q); err != nil {
		return nil, err
	}
	if q.AboutNodes {
		q.Rounds.Deadline = min(q.Rounds.Deadline, c.Now+nodesPatience)
	}
	q.Rounds.Anew = q.Rounds.Anew || q.AboutNodes
	return q, nil
}

// Begin begins a round. Call it before the nodes are asked.
func (q *Question) Begin() { q.merge.Begin() }

// Add merges a node's answer. The first error among the answers becomes the reply to the client.
func (q *Question) Add(a Answer) { q.Fail(q.merge.Add(a)) }

// Fail makes err the reply to the client once the round is over, unless there is an error already.
// A nil err changes nothing.
func (q *Question) Fail(err error) {
	if q.failed == nil {
		q.failed = err
	}
}

// FailMalformed is Fail for an answer that cannot be read.
func (q *Question) FailMalformed() { q.Fail(errMerge) }

// Size returns the bytes that the answers take so far, 0 for a Merge that is not Sized.
func (q *Question) Size() int {
	if m, ok := q.merge.(Sized); ok {
		return m.Size()
	}
	return 0
}

// Finished reports whether the round that has just ended was the last one.
func (q *Question) Finished() bool {
	if q.failed != nil {
		return true
	}
	if m, ok := q.merge.(Finisher); ok {
		return m.Finished(&q.Rounds.want)
	}
	return q.Rounds.Covered()
}

// Reply appends the reply to the client, from the answers so far.
func (q *Question) Reply(dst []byte) []byte {
	if q.failed != nil {
		return resp.AppendError(dst, q.failed.Error())
	}
	return q.merge.Reply(dst)
}
