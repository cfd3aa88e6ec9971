package node

import (
	"context"
	"errors"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// MSETNX over several partitions: while all of them are held, none of the keys exists, all of them
// are stored, and then the partitions are released one after the other. Until then nobody has seen
// anything, and whatever fails, all is undone: a connection that closes undoes what it has not
// released. If a node dies or loses its partitions while they are released, others may have been
// released, and the reply says so.

const (
	// maxNewBytes is how long the keys and values are together: a loop copies them.
	maxNewBytes = 1 << 20

	errLongNew = "CROSSSLOT the keys, which lie in several slots, and their values are longer than 1 MiB together, or one " +
		"than 64 KiB: give the keys a common hash tag"
	errSomeNew = textError("ERR some of the keys may be set now, and others not: a node has not answered")
)

// newKeys is MSETNX.
type newKeys struct {
	*gatherRun
	parts []newPart // in the order of their partitions
}

// newPart is what MSETNX stores in one partition.
type newPart struct {
	partition uint16
	looks     [][]byte
	stores    [][]byte
}

// areLong reports whether keys and values are longer than a command over several partitions may store.
func areLong(words [][]byte) bool {
	return wordBytes(words) > maxNewBytes || slices.ContainsFunc(words, func(word []byte) bool { return len(word) > maxElement })
}

// setNew executes MSETNX.
func (w *gatherRun) setNew(ctx context.Context) error {
	if len(w.args)%2 == 0 {
		return textError(command.AppendWrongArity(nil, w.cmd))
	}
	m := &newKeys{gatherRun: w}
	places := make(map[uint16]int)
	for i := 1; i < len(w.args); i += 2 {
		p := ring.PartitionOf(w.args[i])
		at, known := places[p]
		if !known {
			at = len(m.parts)
			places[p] = at
			m.parts = append(m.parts, newPart{p, spell("EXISTS"), spell("MSETNX")})
		}
		part := &m.parts[at]
		part.looks, part.stores = append(part.looks, w.args[i]), append(part.stores, w.args[i], w.args[i+1])
	}
	slices.SortFunc(m.parts, func(a, b newPart) int { return int(a.partition) - int(b.partition) })
	return w.reserving(ctx, m.try)
}

func (m *newKeys) try(a *attempt) error {
	for _, part := range m.parts {
		reply, err := a.reserve(part.looks[1], part.looks...)
		if err != nil {
			return err
		}
		if n, _ := resp.DecodeInt(reply); n > 0 {
			return m.answer(resp.AppendInt(nil, 0))
		}
	}
	if err := a.change(); err != nil {
		return err
	}
	for _, part := range m.parts {
		reply, err := a.within(member.GoesOn, part.looks[1], part.stores...)
		if n, _ := resp.DecodeInt(reply); err == nil && n == 1 {
			continue
		}
		a.undo()
		if err == nil || errors.Is(err, errSilent) {
			return errAnew
		}
		return err
	}
	if err := a.release(); err != nil {
		return err
	}
	return m.answer(resp.AppendInt(nil, 1))
}

// undo has the owners undo what was stored.
func (a *attempt) undo() {
	for _, c := range a.nodes {
		c.broken = true
	}
}

// release has the owners keep what was stored. It returns errAnew if none of them has.
func (a *attempt) release() error {
	kept, failed := 0, false
	for _, c := range a.nodes {
		n, err := c.Release()
		switch {
		case err != nil:
			c.broken = true
			kept, failed = kept+1, true // perhaps
		case n < c.left && kept+n == 0:
			a.undo()
			return errAnew
		default:
			kept, failed = kept+n, failed || n < c.left
		}
		c.left = 0
	}
	if failed {
		return errSomeNew
	}
	return nil
}
