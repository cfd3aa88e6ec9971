package node

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// COPY, RENAME and RENAMENX of a key to one of another slot need no scratch. RENAME stores the value under the new key
// first, and then has the owner of the old one delete that, if it has not changed since it was lent. If it has, the
// value is stored anew. So no change is lost, and both names exist for a moment. They exist for good if one of the
// nodes dies in between, and then nobody may have been told so.

const (
	errBothNames = textError("TRYAGAIN the key has both names now: its old name has not been deleted, " +
		"try again in a moment")
	errBothKeys = textError("ERR both keys exist now: the old one has changed while it was renamed, " +
		"and then the new one")
)

// movePatience is for how much longer than others a command may take that has stored something and not ended.
const movePatience = time.Second

// move executes COPY, RENAME or RENAMENX.
func (w *gatherRun) move(ctx context.Context) error {
	m := gatherMove{gatherRun: w, from: w.args[1], to: w.args[2], replace: w.cmd.ID == command.Rename}
	m.stored = keyChange{keyevent.Generic, "rename_to"}
	if w.how == command.GatherCopy {
		m.stored.event = "copy_to"
		x := &hand{node: w.node}
		x.equip(new(exec.Worker))
		x.state.Executing, x.state.Version = true, w.version
		x.prepare(w.args)
		x.Database = w.database
		database, replace, ok := keys.CopyOptions(&x.Request)
		if !ok {
			defer x.EndScripted()
			return w.answer(x.take())
		}
		if w.node.placing.Load().Pins(database) { // whose keys lie elsewhere
			return textError(errCrossSlot)
		}
		m.replace, w.target = replace, database
	}
	err := w.again(ctx, m.try)
	if m.mark != nil && err != nil && !errors.Is(err, errBothKeys) {
		return errBothNames
	}
	return err
}

// gatherMove is COPY, RENAME or RENAMENX.
type gatherMove struct {
	*gatherRun
	from, to []byte
	replace  bool // what the second key holds
	stored   keyChange
	mark     []byte // the version of the second key since the value was stored there; nil: it was not
}

// try executes the command, or returns errKeyChanged if it has to begin anew.
func (m *gatherMove) try(ctx context.Context) error {
	if m.mark != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(m.node.ctx, m.deadline.Add(movePatience)) // nobody may stop it halfway
		defer cancel()
	}
	left := newAllowance()
	moves := m.how == command.GatherMove
	l, err := m.borrowHere(ctx, m.from, moves, left)
	if l == nil && err == nil {
		l, err = m.node.borrow(ctx, m.database, m.from, moves, left)
	}
	if err != nil {
		return err
	}
	defer l.end()
	if !l.Found {
		return m.missing()
	}
	m.lent = len(l.payload())
	if done, err := m.storeAt(ctx, l); done || err != nil {
		return err
	}
	if !moves {
		return m.answer(resp.AppendInt(nil, 1))
	}
	ctx, cancel := context.WithDeadline(m.node.ctx, m.deadline.Add(movePatience))
	defer cancel()
	switch ceded, err := m.node.cede(ctx, m.database, m.from, l.Version); {
	case err != nil:
		return err
	case !ceded:
		return errKeyChanged
	}
	return m.answerMoved()
}

// missing answers that the first key is not there: from the start, or any more once its value is stored.
func (m *gatherMove) missing() error {
	switch {
	case m.mark != nil:
		return m.answerMoved()
	case m.how == command.GatherCopy:
		return m.answer(resp.AppendInt(nil, 0))
	}
	return textError(keys.ErrNoKey)
}

func (m *gatherMove) answerMoved() error {
	if m.cmd.ID == command.RenameNX {
		return m.answer(resp.AppendInt(nil, 1))
	}
	return m.answer(resp.AppendOK(nil))
}

// storeAt stores what was lent under the second key. done: that key exists and must not, which is answered.
func (m *gatherMove) storeAt(ctx context.Context, l *loan) (done bool, err error) {
	err = m.atHome(ctx, m.stored, func(x *home) error {
		if m.mark != nil && !m.replace && !bytes.Equal(m.mark, x.version(m.to)) {
			return errBothKeys
		}
		reply := x.restore(m.to, l.payload(), l.expireAt(x.Now), m.replace || m.mark != nil)
		switch {
		case bytes.HasPrefix(reply, []byte("-"+keys.ErrBusyKey)):
			done = true
			return m.answer(resp.AppendInt(nil, 0))
		case resp.IsError(reply):
			return replyError(reply)
		}
		m.mark = x.version(m.to)
		return nil
	})
	return done, err
}
