package node

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// loan is what the owner of a key has lent, for a command that this node executes.
type loan struct {
	member.Lent
	lentAt time.Duration // by the clock of the group, which does not step

	node    *Node
	left    *allowance    // what the command may still borrow
	taken   int           // of that
	small   []byte        // the payload, or what has come of it
	charged int64         // for that
	staged  engine.Staged // or this, if it is long
}

const (
	// maxLent is how long the payloads of all values are together that one command borrows, in bytes.
	maxLent = keys.MaxDump
	// stagedLoan is from how many bytes on a payload is staged.
	stagedLoan = 64 << 10
	// loanPause is how long it takes until a key is asked for again, somewhere else perhaps.
	loanPause = 20 * time.Millisecond
)

// allowance is how many bytes a command may still borrow.
type allowance struct{ left atomic.Int64 }

func newAllowance() *allowance {
	a := new(allowance)
	a.left.Store(maxLent)
	return a
}

// textError is an error whose text a client gets.
type textError string

func (e textError) Error() string { return string(e) }

// errLent is returned if a command would borrow more than maxLent.
const errLent = textError("CROSSSLOT the values of the keys, which lie in several slots, are longer than 64 MiB " +
	"together: give the keys a common hash tag")

func isRefusal(err error) bool {
	var refused *member.Refusal
	return errors.As(err, &refused)
}

// begin makes room for a payload of n bytes. Its owner has proved that it is a member, and yet memory is taken only as
// the bytes come.
func (l *loan) begin(n int) (io.Writer, error) {
	l.taken = n
	if l.left.left.Add(int64(-n)) < 0 {
		return nil, errLent
	}
	if n < stagedLoan {
		if !(scratchBudget{l.node}).Charge(int64(n)) {
			return nil, textError(exec.ErrOOM)
		}
		l.charged, l.small = int64(n), make([]byte, 0, n)
		return l, nil
	}
	st, err := l.node.engine.Stage(0, nil, n)
	if err != nil {
		return nil, textError(exec.ErrOOM)
	}
	l.staged = st
	return l, nil
}

// Write takes a piece of the payload.
func (l *loan) Write(piece []byte) (int, error) {
	if !l.staged.Live() {
		l.small = append(l.small, piece...)
		return len(piece), nil
	}
	if l.staged.Write(piece) != nil {
		return 0, textError(exec.ErrOOM)
	}
	return len(piece), nil
}

// payload returns what was lent, valid until end.
func (l *loan) payload() []byte {
	if l.staged.Live() {
		return l.staged.Value()
	}
	return l.small
}

// fill takes the whole payload, which is copied. If there is an error, nothing is kept of it.
func (l *loan) fill(payload []byte) error {
	to, err := l.begin(len(payload))
	if err == nil {
		_, err = to.Write(payload)
	}
	if err != nil {
		l.drop()
	}
	return err
}

// drop is end for a loan that has not come about.
func (l *loan) drop() {
	l.end()
	l.left.left.Add(int64(l.taken))
	l.taken = 0
}

// end gives the memory back.
func (l *loan) end() {
	if l.staged.Live() {
		l.staged.Discard()
	}
	scratchBudget{l.node}.Refund(l.charged)
	l.small, l.charged = nil, 0
}

// borrow asks the owner of a key for its value, by ever newer tables, until one answers or ctx ends, if it is no more
// than left. The caller ends the loan, if there is no error.
func (n *Node) borrow(ctx context.Context, database uint8, key []byte, versioned bool, left *allowance) (*loan, error) {
	l := &loan{node: n, left: left}
	err := n.askOwner(ctx, database, key, func(addr string) (err error) {
		l.Lent, err = n.lenders.borrow(ctx, addr, database, key, versioned, l.begin)
		if err != nil {
			l.drop()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	l.lentAt = n.cfg.Group.Clock()
	return l, nil
}

// expireAt is when the key expires, in unix milliseconds, if it is now then; 0: never.
func (l *loan) expireAt(now int64) int64 {
	if l.TTL < 0 {
		return 0
	}
	return now + l.TTL - (l.node.cfg.Group.Clock() - l.lentAt).Milliseconds()
}

// cede has the owner of a key delete it, if it has that version.
func (n *Node) cede(ctx context.Context, database uint8, key, version []byte) (ceded bool, err error) {
	err = n.askOwner(ctx, database, key, func(addr string) (err error) {
		ceded, err = n.lenders.cede(ctx, addr, database, key, version)
		return err
	})
	return ceded, err
}

// askOwner calls f with the address of the key's owner, until f has an answer or ctx ends. It does
// not when the database is pinned: then the keys lie elsewhere.
func (n *Node) askOwner(ctx context.Context, database uint8, key []byte, f func(addr string) error) error {
	p := ring.PartitionOf(key)
	for {
		if n.placing.Load().Pins(database) {
			return textError(exec.ErrClosed)
		}
		if t := n.view.Load().Table; t != nil {
			if err := f(t.OwnerOf(p).Addr); err == nil || !mayAskAgain(err) {
				return answered(err)
			}
		}
		if err := n.gathers.rest(ctx); err != nil {
			return err
		}
	}
}

// mayAskAgain reports whether the owner of a key may answer something else next time: it did not answer, or does not
// know yet that it is the owner, or is not any more.
func mayAskAgain(err error) bool {
	var text textError
	var refused *member.Refusal
	switch {
	case errors.As(err, &text):
		return false
	case errors.As(err, &refused):
		code, _, _ := strings.Cut(refused.Text, " ")
		return code == "MOVED" || code == "TRYAGAIN" || code == "CLUSTERDOWN"
	}
	return true
}

// answered returns the error for a client.
func answered(err error) error {
	var refused *member.Refusal
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Text == keys.ErrDumpTooLarge:
		return errLent
	}
	return textError(refused.Text)
}
