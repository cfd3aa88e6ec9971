package node

import (
	"bytes"
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// SMOVE, LMOVE and RPOPLPUSH from one partition to another: while both are held, the element is
// stored at the second key, and then taken from the first one, as soon as a follower of the second
// one has it too. So it is lost only if its new owner dies and had no follower that answered within
// copyPatience. Others see it at both keys for the time of that answer, at most: nobody else uses
// the first key meanwhile. It stays in both if one of the nodes dies in between, or its answer is
// lost; then the reply says so, if there is somebody to give one.

const errBoth = textError("ERR the element may be at both keys now: a node has not answered")

// elementMove is such a command.
type elementMove struct {
	*gatherRun
	from, to     []byte
	look, lookTo [][]byte // at the first key for the element, at the second one for its type
	put, take    [][]byte // put lacks the element
	element      []byte
}

// moveElement executes SMOVE, LMOVE or RPOPLPUSH.
func (w *gatherRun) moveElement(ctx context.Context) error {
	m, ok := w.elementMove()
	if !ok {
		return textError(exec.ErrSyntax)
	}
	err := w.reserving(ctx, m.try)
	if !errors.Is(err, errNotTaken) {
		return err
	}
	ctx, cancel := context.WithDeadline(w.node.ctx, w.deadline.Add(movePatience)) // nobody may stop it halfway
	defer cancel()
	if err := w.reserving(ctx, m.takeAgain); err != nil {
		return errBoth
	}
	return nil
}

// errNotTaken: the element is stored at the second key, and was not taken from the first one.
var errNotTaken = errors.New("the element is at both keys")

// elementMove returns how the command moves an element. ok is false if it says that wrongly.
func (w *gatherRun) elementMove() (m *elementMove, ok bool) {
	args := w.args
	m = &elementMove{gatherRun: w, from: args[1], to: args[2]}
	if w.cmd.ID == command.SMove {
		m.element = args[3]
		m.look, m.lookTo = spell("SISMEMBER", m.from, m.element), spell("SCARD", m.to)
		m.take, m.put = spell("SREM", m.from, m.element), spell("SADD", m.to)
		return m, true
	}
	first, last, front := false, false, true // RPOPLPUSH
	if w.cmd.ID == command.LMove {
		first, front = command.EqualFold(args[3], "LEFT"), command.EqualFold(args[4], "LEFT")
		last = command.EqualFold(args[3], "RIGHT")
		if !first && !last || !front && !command.EqualFold(args[4], "RIGHT") {
			return nil, false
		}
	}
	m.look, m.take, m.put = spell("LINDEX", m.from, []byte("-1")), spell("RPOP", m.from), spell("RPUSH", m.to)
	if first {
		m.look, m.take = spell("LINDEX", m.from, []byte("0")), spell("LPOP", m.from)
	}
	if front {
		m.put = spell("LPUSH", m.to)
	}
	m.lookTo = spell("LLEN", m.to)
	return m, true
}

// spell returns a command.
func spell(name string, args ...[]byte) [][]byte { return append([][]byte{[]byte(name)}, args...) }

// try moves the element, or answers that there is none.
func (m *elementMove) try(a *attempt) error {
	fromFirst := ring.PartitionOf(m.from) <= ring.PartitionOf(m.to)
	var refusal error
	lookTo := func() error {
		_, err := a.reserve(m.to, m.lookTo...)
		if refusal = err; errors.Is(err, errAnew) {
			return err
		}
		return nil
	}
	if !fromFirst {
		if err := lookTo(); err != nil {
			return err
		}
	}
	element, err := m.find(a)
	if err != nil {
		return err
	}
	if element == nil && !m.isThere(a) {
		return m.answerNothing()
	}
	if fromFirst {
		if err := lookTo(); err != nil {
			return err
		}
	}
	switch {
	case refusal != nil:
		return refusal
	case element == nil:
		return m.answerNothing()
	}
	if err := a.change(); err != nil {
		return err
	}
	m.element = element
	return m.pass(a)
}

// find returns the element that is to be moved; nil if the first key does not have it.
func (m *elementMove) find(a *attempt) (element []byte, err error) {
	reply, err := a.reserve(m.from, m.look...)
	if err != nil {
		return nil, err
	}
	if m.cmd.ID == command.SMove {
		if n, _ := resp.DecodeInt(reply); n == 1 {
			return m.element, nil
		}
		return nil, nil
	}
	if element, found := resp.DecodeBulk(reply); found {
		return element, nil
	}
	return nil, nil
}

// isThere reports whether the first key has a value in which the element is not.
func (m *elementMove) isThere(a *attempt) bool {
	if m.cmd.ID != command.SMove {
		return false // a list that is there has an element
	}
	reply, err := a.within(member.GoesOn, m.from, spell("SCARD", m.from)...)
	n, _ := resp.DecodeInt(reply)
	return err == nil && n > 0
}

// pass stores the element, and then takes it.
func (m *elementMove) pass(a *attempt) error {
	further := member.IsCopied
	if ring.PartitionOf(m.from) == ring.PartitionOf(m.to) {
		further = member.GoesOn // both in one moment
	}
	_, err := a.within(further, m.to, append(m.put, m.element)...)
	switch {
	case errors.Is(err, errSilent):
		return errBoth
	case err != nil && !isReplyLost(err):
		return err
	}
	if err = m.takeFrom(a); errors.Is(err, errAnew) {
		return errNotTaken
	}
	return err
}

// takeFrom takes the element from the first key and answers, or returns errAnew if it has not done so.
func (m *elementMove) takeFrom(a *attempt) error {
	_, err := a.within(member.IsLast, m.from, m.take...)
	switch {
	case err == nil, isReplyLost(err):
		return m.answerMoved()
	case errors.Is(err, errSilent):
		return errBoth
	}
	return errAnew
}

// isReplyLost reports whether a command was executed whose owner had no memory for the reply.
func isReplyLost(err error) bool {
	var text textError
	return errors.As(err, &text) && string(text) == exec.ErrReplyLost
}

// takeAgain takes the element, which is stored, from the first key if that has it still.
func (m *elementMove) takeAgain(a *attempt) error {
	element, err := m.find(a)
	switch {
	case errors.Is(err, errAnew):
		return err
	case err != nil || !bytes.Equal(element, m.element):
		return errBoth // somebody else has it
	}
	if err := a.change(); err != nil {
		return err
	}
	return m.takeFrom(a)
}

func (m *elementMove) answerNothing() error {
	if m.cmd.ID == command.SMove {
		return m.answer(resp.AppendInt(nil, 0))
	}
	return m.answer(resp.AppendNull(nil, m.version))
}

func (m *elementMove) answerMoved() error {
	if m.cmd.ID == command.SMove {
		return m.answer(resp.AppendInt(nil, 1))
	}
	return m.answer(resp.AppendBulk(nil, m.element))
}
