package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

var errShort = errors.New("ends too early")

// reader decodes an encoding. The first error sticks, and every later read returns zeros, so only
// loops and the end need to check it. The reader never allocates by a declared count before it has
// bounded the count.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// take returns the next n bytes: a view or, after an error, zeros that the caller must not keep.
func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.fail(errShort)
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// upTo reads a varint that must not exceed limit.
func (r *reader) upTo(limit uint64, what string) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.rest = r.rest[n:]
	if v > limit {
		r.fail(fmt.Errorf("%s is %d, want at most %d", what, v, limit))
		return 0
	}
	return v
}

func (r *reader) string(limit int, what string) string {
	n := r.upTo(uint64(limit), what)
	return string(r.take(int(n)))
}

func (r *reader) member() Member {
	m := Member{
		Role:        Role(r.byte()),
		State:       State(r.byte()),
		Boot:        int64(r.uint64()),
		Fingerprint: r.uint32(),
		ID:          r.string(MaxID, "length of an id"),
		Addr:        r.string(MaxAddr, "length of an address"),
		Admin:       r.string(MaxAddr, "length of an admin address"),
		Epoch:       r.upTo(maxEpoch, "epoch"),
		Issuer:      r.string(maxIssuer, "length of an issuer"),
	}
	if r.err != nil {
		return Member{}
	}
	if err := m.Validate(); err != nil {
		r.fail(err)
	}
	return m
}

func (r *reader) version() Version {
	return Version{
		Epoch:  r.upTo(maxEpoch, "epoch"),
		Issuer: r.string(maxIssuer, "length of an issuer"),
	}
}

func (r *reader) table(leveled bool) *Table {
	t := &Table{}
	if leveled {
		r.level(t)
	}
	v := r.version()
	t.Epoch, t.Issuer, t.Seed = v.Epoch, v.Issuer, r.uint64()
	if r.err == nil && v.IsZero() {
		r.fail(errors.New("epoch is 0"))
	}
	if r.err == nil && t.Gone > t.Epoch {
		r.fail(fmt.Errorf("a node that has gone joined at epoch %d, want at most %d", t.Gone, t.Epoch))
	}
	r.ancestors(t)
	r.nodes(t)
	for p := 0; p < Partitions && r.err == nil; p++ {
		r.partition(t, p)
	}
	r.moves(t)
	if len(r.rest) > 0 && r.rest[0] == pausedFlag {
		t.Paused = true
		r.rest = r.rest[1:]
	}
	return t
}

// level reads the fields that only tables with a level have.
func (r *reader) level(t *Table) {
	level := r.upTo(maxLevel, "level")
	if r.err != nil {
		return
	}
	if level > Level {
		r.fail(&LevelError{Need: level})
		return
	}
	if level == 0 {
		r.fail(errors.New("level 0 is left out"))
	}
	t.Level = uint8(level)
	t.Settings.Version = r.upTo(maxEpoch, "version of the settings")
	if t.Settings.Version > 0 {
		copy(t.Settings.Hash[:], r.take(len(t.Settings.Hash)))
	}
	if t.Level >= GoneLevel {
		t.Gone = r.upTo(maxEpoch, "epoch of a node that has gone")
	}
}

func (r *reader) ancestors(t *Table) {
	n := r.upTo(maxAncestors, "number of ancestors")
	for ; n > 0 && r.err == nil; n-- {
		v := r.version()
		if v.IsZero() || v.Epoch >= t.Epoch {
			r.fail(fmt.Errorf("ancestor has epoch %d, want 1 to %d", v.Epoch, t.Epoch-1))
		}
		t.Ancestors = append(t.Ancestors, v)
	}
}

func (r *reader) nodes(t *Table) {
	n := r.upTo(MaxNodes, "number of nodes")
	if n == 0 {
		r.fail(errors.New("no nodes"))
	}
	for ; n > 0 && r.err == nil; n-- {
		t.Joined = append(t.Joined, r.upTo(t.Epoch, "epoch of a node"))
		t.Nodes = append(t.Nodes, r.member())
	}
	sorted := slices.IsSortedFunc(t.Nodes, func(a, b Member) int {
		if a.ID > b.ID {
			return 1
		}
		return -1 // equal ids are out of order, too
	})
	if !sorted {
		r.fail(errors.New("nodes are not sorted by id"))
	}
	if slices.Contains(t.Joined, 0) {
		r.fail(errors.New("a node joined at epoch 0"))
	}
	for _, m := range t.Nodes {
		if m.Role != RoleNode || m.State != Serving || !m.Version().IsZero() {
			r.fail(fmt.Errorf("%v %q is %v, want a serving node", m.Role, m.ID, m.State))
		}
	}
}

func (r *reader) partition(t *Table, p int) {
	last := uint64(len(t.Nodes)) - 1
	t.Owner[p] = uint16(r.upTo(last, "owner"))
	t.Follower[p] = uint16(r.upTo(last+1, "follower")) - 1 // 0 becomes NoNode
	t.Since[p] = t.Epoch - r.upTo(t.Epoch-1, "age of a partition")
	if t.Owner[p] == t.Follower[p] {
		r.fail(fmt.Errorf("partition %d follows itself", p))
	}
}

func (r *reader) moves(t *Table) {
	n := r.upTo(Partitions, "number of moves")
	last := uint64(len(t.Nodes)) - 1
	next := 0 // the first partition that the next move may name
	for ; n > 0 && r.err == nil; n-- {
		m := Move{
			Partition: uint16(r.upTo(Partitions-1, "partition")),
			From:      uint16(r.upTo(last, "source of a move")),
			To:        uint16(r.upTo(last, "goal of a move")),
		}
		p := m.Partition
		switch {
		case r.err != nil:
		case int(p) < next:
			r.fail(fmt.Errorf("move of partition %d is out of order", p))
		case m.From != t.Owner[p] || m.To == t.Owner[p] || m.To == t.Follower[p]:
			r.fail(fmt.Errorf("partition %d of node %d moves from %d to %d", p, t.Owner[p], m.From, m.To))
		}
		next = int(p) + 1
		t.Moves = append(t.Moves, m)
	}
}
