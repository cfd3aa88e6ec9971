package order

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Request is one command, or a part of one, on its way to a node.
type Request struct {
	Session *Session // that the command belongs to; nil for the pipe's own requests
	Part    Part     // gathers the parts of a command that was split; nil for a whole command
	Seq     uint64   // the command's number in its session
	end     uint64   // offset in the pipe's stream one past its last byte
	ID      int32    // which part
	asks    bool     // its Part is an Asker
	// replaced: the pipe broke, and the node may have executed a later write of the session to its key.
	replaced bool
	aged     bool // its bytes in the pipe's stream say for how long its command has waited (member.AppendWaited)
	Origin
}

// Origin is what a request keeps while it is sent again, and what the parts inherit into which it
// is divided.
type Origin struct {
	Partition uint16        // of its keys; of several partitions: see Scattered
	Database  uint8         // that it is about; the Machine tells nodes (member.AppendDatabase), it is not in the bytes
	Keyless   bool          // it concerns no partition: whoever owns Partition executes it
	hops      uint8         // -MOVED replies followed so far
	begun     bool          // a pipe broke after it had begun to be written: it may have changed something
	Chunk     uint32        // which chunk of the command; each has parts of its own
	since     time.Duration // when it was first parked; 0 if never
}

// Part gathers the replies to the requests that one command was divided into.
type Part interface {
	// Done takes the final reply to the request with that ID. The reply is valid during the call.
	Done(id int32, reply []byte)
}

// Asker is a Part that asks again by itself: its requests are never parked, and do not count as
// outstanding.
type Asker interface {
	Part
	// Undone is the event that a request came back without a reply.
	Undone()
}

// Scattered is a Part whose requests have keys in several partitions.
type Scattered interface {
	Part
	// Partitions lists those of a request's keys, in the order of the keys. It returns nil if the keys have more
	// than atMost bytes together.
	Partitions(raw []byte, atMost int) []uint16
	// Divide replaces the request with that ID, whose bytes are raw, by one for each owner of some
	// of its keys. Raw of each piece is copied; it must not be a view of the argument. A request of
	// several keys has at most HugeRequest bytes.
	Divide(id int32, raw []byte, owner func(partition uint16) *Node) []Piece
}

// Piece is what one node gets of a request that is divided.
type Piece struct {
	Node *Node // nil: the partitions have no owner
	ID   int32
	Raw  []byte
}

// Body has the memory of a request that is too long to be copied.
type Body interface {
	// Release gives the memory back. Nobody uses a view of it afterwards.
	Release()
}

func release(b Body) {
	if b != nil {
		b.Release()
	}
}

// bare returns the bytes of a request without its prefix, given those in its pipe's buffer. A request that was not
// copied never has it there.
func (r *Request) bare(raw []byte, copied bool) []byte {
	if r.Database > 0 && copied {
		raw = raw[member.DatabaseRoom:]
	}
	if r.aged {
		raw = raw[member.WaitedRoom:]
	}
	return raw
}

var (
	execWords = [][]byte{[]byte(member.Name), []byte(member.VerbExec)}
	execVerb  = resp.AppendBulk(resp.AppendBulk(nil, execWords[0]), execWords[1])
)

// words parses a request again, which is rare: remembering what it was would cost every command. The
// result is a view of raw, empty if raw is not a whole request. Of a transaction, which may have a million words,
// it is the verb: nobody asks for more.
func words(raw []byte) [][]byte {
	if end := bytes.IndexByte(raw, '\n'); bytes.HasPrefix(raw[end+1:], execVerb) {
		return execWords
	}
	var p resp.Parser
	p.SetLimits(resp.Limits{})
	if p.Parse(raw) != resp.Done {
		return nil
	}
	return p.Args()
}

// repeatable reports whether a request may be executed twice.
func (m *Machine) repeatable(args [][]byte) bool {
	switch {
	case m.broken.repeatsAll():
		return true
	case len(args) == 0:
		return false
	}
	cmd := command.Row(args)
	if isGathered(cmd) {
		args = args[2:]
		cmd = command.Row(args)
	}
	if cmd != nil && cmd.Flags&command.Internal != 0 {
		return cmd.ID != command.DunlinExec && cmd.ID != command.DunlinReturn
	}
	return cmd != nil && cmd.IdempotentCall(args)
}

// written is what a session writes to: a key, all of a partition, or everything.
type written struct {
	session   *Session
	database  uint8
	partition int    // everywhere: all of them
	key       string // "": all of the partition
}

const (
	everywhere = -1
	// mostWritten is how many keys of a request are told from each other.
	mostWritten = 64
)

// around returns what a write is part of, and itself.
func (w written) around() [3]written {
	return [3]written{{session: w.session, partition: everywhere}, {session: w.session, partition: w.partition}, w}
}

// markReplaced marks the writes of a queue that broke behind which its session had sent another one
// to the same key. The node may have executed both, and others may have seen the second one: sent
// again, the first one would show once more. begin and sent are offsets in the pipe's stream: where
// the oldest request begins, and what was written; buf begins at base.
func (m *Machine) markReplaced(queue *fifo, buf []byte, base, begin, sent uint64) {
	if queue.len() < 2 || m.broken.repeatsOld() {
		return
	}
	whole, touched := map[written]bool{}, map[written]bool{} // by the later ones
	for i := queue.len() - 1; i >= 0; i-- {
		r, from := queue.at(i), begin
		if i > 0 {
			from = queue.at(i - 1).end
		}
		if r.Session == nil || r.asks || r.Keyless || from >= sent {
			continue
		}
		raw := r.bare(buf[from-base:r.end-base], true)
		args := words(raw)
		if onlyReads(args) {
			continue
		}
		all := r.writes(raw, args)
		for _, w := range all {
			r.replaced = r.replaced || touched[w]
			for _, outer := range w.around() {
				r.replaced = r.replaced || whole[outer]
			}
		}
		for _, w := range all {
			whole[w] = true
			for _, outer := range w.around() {
				touched[outer] = true
			}
		}
	}
}

// writes returns what a request writes to; args are its words. Where nobody knows the keys, it is all
// of its partitions, and where they are many, everything.
func (r *Request) writes(raw []byte, args [][]byte) []written {
	if len(args) > 2*mostWritten {
		return []written{{session: r.Session, partition: everywhere}}
	}
	partitions := []uint16{r.Partition}
	if part, ok := r.Part.(Scattered); ok {
		partitions = part.Partitions(raw, HugeRequest)
	}
	var keys []int
	if cmd := command.Row(args); cmd != nil && cmd.Flags&command.Internal == 0 {
		keys, _ = cmd.AppendKeys(nil, args)
	}
	all := make([]written, max(len(partitions), len(keys)))
	for i := range all {
		all[i] = written{session: r.Session, partition: int(partitions[min(i, len(partitions)-1)])}
		if i < len(keys) {
			all[i].database, all[i].key = r.Database, string(args[keys[i]])
		}
	}
	return all
}

// onlyReads reports whether a request that is executed late changes nothing.
func onlyReads(args [][]byte) bool {
	if len(args) == 0 {
		return false
	}
	cmd := command.Row(args)
	if cmd != nil && cmd.ID == command.DunlinEach {
		_, args, _ = member.ParseEach(args[2:])
		cmd = command.Row(args)
	} else if isGathered(cmd) {
		cmd = command.Row(args[2:])
	}
	return cmd != nil && (cmd.Flags&command.ReadOnly != 0 || cmd.ID == command.DunlinWatch)
}

// isGathered reports whether a request is a command whose keys lie in several slots (DUNLIN GATHER). Its session sends
// nothing else before that is answered, and its node stores what it stores in one moment. So it keeps nobody from its
// partition while it is deferred, though it may write.
func isGathered(cmd *command.Command) bool { return cmd != nil && cmd.ID == command.DunlinGather }
