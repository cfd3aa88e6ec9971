package node

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command that changes several of its keys has their owners hold the partitions, looks in all of
// them, and then changes them (internal/member, reserve.go). Everybody reserves in the order of the
// partitions, so nobody waits for somebody who waits for him. As long as it looks, the command can
// end at any moment and begin anew.

const (
	// lookPatience is how long a command takes at most until it has looked everywhere, before it
	// begins anew: less than what it has reserved lasts.
	lookPatience = time.Second
	// changePatience is how long the owners have then to do what they are told.
	changePatience = 3 * time.Second
)

var (
	errAnew   = errors.New("nothing is executed, and the partitions are not reserved any more")
	errSilent = errors.New("a node does not answer, and may have executed what it was told")
)

// attempt is one try to reserve the partitions of a command.
type attempt struct {
	*gatherRun
	ctx    context.Context
	limit  *time.Timer           // ends ctx
	leave  func() bool           // has ctx not end with the client any more
	nodes  map[string]*reserving // by their addresses
	places map[uint16]*reserving // by partition
}

// reserving is a node of which partitions are reserved.
type reserving struct {
	reserver
	left   int  // partitions
	broken bool // it is not in step, or what was changed there is to be undone
}

// reserver is a connection to a node, which may be of use behind the end, or this node
// (reservedHere).
type reserver interface {
	Reserve(database uint8, args ...[]byte) (reply []byte, err error)
	Within(further member.Further, args ...[]byte) (reply []byte, err error)
	Release() (partitions int, err error)
	end(inStep bool) // undoes what was stored and not released
}

// reservedThere is a connection to another node.
type reservedThere struct {
	*lender
	node *Node
	stop func() bool
}

func (r *reservedThere) end(inStep bool) {
	if r.stop() && inStep {
		r.node.lenders.give(r.lender)
	} else {
		r.close()
	}
}

// reserving calls f until it does not return errAnew.
func (w *gatherRun) reserving(ctx context.Context, f func(a *attempt) error) error {
	for {
		if err := w.attempt(ctx, f); !errors.Is(err, errAnew) {
			return err
		}
		if err := w.node.gathers.rest(ctx); err != nil {
			return err
		}
	}
}

func (w *gatherRun) attempt(ctx context.Context, f func(a *attempt) error) error {
	a := &attempt{gatherRun: w, nodes: make(map[string]*reserving), places: make(map[uint16]*reserving)}
	own, cancel := context.WithCancel(w.node.ctx)
	defer cancel()
	a.ctx = own
	a.limit = time.AfterFunc(lookPatience, cancel)
	defer a.limit.Stop()
	a.leave = context.AfterFunc(ctx, cancel)
	defer a.leave()
	defer a.end()
	return f(a)
}

// reserve reserves the partition of a key, and returns the reply to a command on the key, which is
// copied. If that is an error, reserve returns it as a textError; all other errors are errAnew.
func (a *attempt) reserve(key []byte, args ...[]byte) (reply []byte, err error) {
	p := ring.PartitionOf(key)
	for {
		v := a.node.view.Load()
		switch {
		case v.Table == nil:
			return nil, errAnew
		case a.node.placing.Load().Pins(a.database):
			return nil, textError(exec.ErrClosed)
		}
		c := a.places[p]
		if c == nil {
			if c, err = a.connect(v.Table.OwnerOf(p).Addr, int(v.Table.Owner[p]) == v.Self); err != nil {
				return nil, errAnew
			}
		}
		reply, err = c.Reserve(a.database, args...)
		switch {
		case isLapsed(err):
			c.broken = true // and whatever else it has reserved
			return nil, errAnew
		case err == nil, isRefusal(err) && !mayAskAgain(err):
			if a.places[p] == nil {
				a.places[p] = c
				c.left++
			}
			return bytes.Clone(reply), answered(err)
		case !isRefusal(err):
			c.broken = true
			return nil, errAnew
		}
		if a.node.gathers.rest(a.ctx) != nil {
			return nil, errAnew
		}
	}
}

// connect returns the command's connection to a node. here: it is this one, and needs none.
func (a *attempt) connect(addr string, here bool) (c *reserving, err error) {
	if c = a.nodes[addr]; c != nil {
		if c.broken {
			return nil, errAnew
		}
		return c, nil
	}
	c = &reserving{}
	if here {
		c.reserver = a.newReservedHere()
	} else if c.reserver, err = a.dial(addr); err != nil {
		return nil, err
	}
	a.nodes[addr] = c
	return c, nil
}

func (a *attempt) dial(addr string) (reserver, error) {
	p := a.node.lenders.take(addr)
	if p == nil {
		var err error
		if p, err = a.node.lenders.dial(a.ctx, addr); err != nil {
			return nil, err
		}
	}
	return &reservedThere{p, a.node, context.AfterFunc(a.ctx, p.cancel)}, nil
}

// change begins the part that nobody stops. It returns errAnew if the time to look is over.
func (a *attempt) change() error {
	if !a.leave() || !a.limit.Stop() {
		return errAnew
	}
	a.limit.Reset(changePatience)
	return nil
}

// within executes a command on a key in its partition, which is reserved. The reply is valid until
// the next one of that node. An error reply is returned as a textError. errAnew: the partition is
// not reserved any more. errSilent: nobody knows whether the command was executed.
func (a *attempt) within(further member.Further, key []byte, args ...[]byte) (reply []byte, err error) {
	c := a.places[ring.PartitionOf(key)]
	if c.broken {
		return nil, errAnew
	}
	reply, err = c.Within(further, args...)
	switch {
	case err != nil && !isRefusal(err):
		c.broken = true
		return nil, errSilent
	case isLapsed(err):
		c.left--
		return nil, errAnew
	}
	if further != member.GoesOn {
		c.left--
	}
	return reply, answered(err)
}

// isLapsed reports whether an error reply says that the partition is not reserved any more.
func isLapsed(err error) bool {
	var refused *member.Refusal
	return errors.As(err, &refused) && strings.HasPrefix(refused.Text, member.Lapsed)
}

// end ends what is reserved still, and keeps the connections.
func (a *attempt) end() {
	for _, c := range a.nodes {
		if !c.broken && c.left > 0 {
			_, err := c.Release()
			c.broken = err != nil
		}
		c.end(!c.broken)
	}
}
