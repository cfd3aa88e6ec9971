package node

import (
	"bytes"
	"context"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// scratch is an engine in which a gathered command finds what was lent for it, under the names that its keys have. So
// the handler of the command is the one that executes it otherwise, and nobody sees what was lent: neither clients nor
// followers, and no eviction.
type scratch struct {
	hand
	engine *engine.Engine
	limit  int64 // of the engine; charged

	database uint8 // that the command is about: here its keys are in database 0
	halfway  bool  // a command was not executed to its end

	stored keyChange // what the last command has done to the key that it stores under
	key    []byte    // that key; nil: none
}

// keyChange is a keyspace notification.
type keyChange struct {
	class keyevent.Class
	event string
}

const (
	// scratchBytes is the first limit of a scratch. It doubles when it is too little.
	scratchBytes = 1 << 20
	// scratchPages is how many of its pages keep their memory for the next command.
	scratchPages = 8
	// scratchWorker is what its hand takes in the Go heap, about.
	scratchWorker = 32 << 10
)

// newScratch returns an empty scratch for a command that stores under key, if that is not nil. The
// caller closes it.
func (n *Node) newScratch(version resp.Version, database uint8, key []byte) (s *scratch, err error) {
	if s = n.gathers.scratches.take(); s == nil {
		if s, err = n.makeScratch(); err != nil {
			return nil, err
		}
	}
	s.database, s.key, s.state.Version, s.Now = database, key, version, n.cfg.Group.UnixMilli()
	s.Worker.Count.Hits, s.Worker.Count.Misses = 0, 0
	t := s.engine.Lock(0, s.Now)
	s.Hold = t.Hold()
	t.Unlock()
	return s, nil
}

func (n *Node) makeScratch() (*scratch, error) {
	heap := scratchBudget{n}
	if !heap.Charge(scratchBytes + scratchWorker) {
		return nil, textError(exec.ErrOOM)
	}
	e, err := engine.New(engine.Config{
		MaxBytes: scratchBytes, Shards: 1, Policy: engine.NoEviction, Forms: types.Forms(), Warm: scratchPages,
	})
	if err != nil {
		heap.Refund(scratchBytes + scratchWorker)
		n.log.Warn("cannot make room for a command whose keys lie in several slots", "error", err)
		return nil, textError(exec.ErrOOM)
	}
	s := &scratch{hand: hand{node: n}, engine: e, limit: scratchBytes}
	s.equip(new(exec.Worker))
	s.state.Executing = true
	s.Engine, s.Announce, s.DumpForValkey = e, s.note, false // this build reads what it dumps
	return s, nil
}

// note keeps what happens to the key that is stored under, which the key's owner announces. What else happens is that
// keys are missing.
func (s *scratch) note(class keyevent.Class, event string, _ uint8, key []byte) {
	switch {
	case s.key != nil && class != keyevent.KeyMiss && bytes.Equal(key, s.key):
		s.stored = keyChange{class, event}
	case class == keyevent.KeyMiss:
		s.node.events.note(class, event, s.database, key)
	}
}

// do executes a command, with as much memory as it needs and there is. Its reply is valid until the next one.
func (s *scratch) do(ctx context.Context, args ...[]byte) (reply []byte, err error) {
	s.halfway = true
	for {
		reply = s.call(ctx, args...)
		if err := ctx.Err(); err != nil {
			return nil, err // what it says may be nonsense
		}
		if !bytes.HasPrefix(reply, refusedOOM) || !s.grow() {
			s.halfway = false
			return reply, nil
		}
	}
}

// grow doubles the limit. It reports false if there is no memory for that.
func (s *scratch) grow() bool {
	heap := scratchBudget{s.node}
	if !heap.Charge(s.limit) {
		return false
	}
	if s.engine.SetMaxBytes(2*s.limit) != nil {
		heap.Refund(s.limit)
		return false
	}
	s.limit *= 2
	return true
}

// put puts what was lent under its key.
func (s *scratch) put(ctx context.Context, key []byte, l *loan) error {
	if !l.Found {
		return nil
	}
	reply, err := s.do(ctx, []byte("RESTORE"), key, []byte("0"), l.payload(), []byte("REPLACE"))
	if err == nil && resp.IsError(reply) {
		err = replyError(reply)
	}
	return err
}

// close empties the scratch, and keeps it for another command or gives its memory back.
func (s *scratch) close() {
	if s.later != nil { // behind a panic
		s.later.End()
		s.later = nil
	}
	s.EndScripted()
	s.Hold.End()
	s.Hold, s.key, s.stored = nil, nil, keyChange{}
	if s.halfway || s.limit > scratchBytes {
		s.free()
		return
	}
	s.engine.Clear(0)
	s.node.gathers.scratches.give(s)
}

// free gives the memory back.
func (s *scratch) free() {
	if err := s.engine.Close(); err != nil {
		s.node.log.Warn("cannot give memory back", "error", err)
	}
	scratchBudget{s.node}.Refund(s.limit + scratchWorker)
}

// replyError returns an error reply as an error.
func replyError(reply []byte) error {
	return textError(bytes.TrimSuffix(reply[1:], []byte("\r\n")))
}

// expiryArg is when something expires as an argument of RESTORE with ABSTTL.
func expiryArg(at int64) []byte { return strconv.AppendInt(nil, at, 10) }
