package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// incoming is a large value of a stream, of which pieces have arrived.
type incoming struct {
	staged engine.Staged
	key    []byte
	total  int
	come   int
	failed bool // no memory, or not to be taken: the rest is thrown away
}

// valuePiece is what a DUNLIN VALUE says.
type valuePiece struct {
	p             uint16
	key           []byte
	expireAt      int64
	typ           engine.Type
	uses          int
	total, offset int
	piece         []byte
}

// takeValue: DUNLIN VALUE seq milli partition key expireAt type uses total offset piece
func takeValue(r *request) {
	r.takeBatch(func(s *stream, shift int64) bool {
		v, ok := parseValuePiece(r.Args[4:])
		return ok && s.take(&v, shift, r.Now)
	})
}

func parseValuePiece(args [][]byte) (v valuePiece, ok bool) {
	var n [6]int64
	for i, at := range []int{0, 2, 3, 4, 5, 6} {
		if n[i], ok = resp.ParseInt(args[at]); !ok || n[i] < 0 {
			return v, false
		}
	}
	v = valuePiece{
		p: uint16(n[0]), key: args[1], expireAt: n[1], typ: engine.Type(n[2]), uses: int(n[3]),
		total: int(n[4]), offset: int(n[5]), piece: args[7],
	}
	return v, n[0] < ring.Partitions && types.Admits(n[2], n[4]) &&
		n[5]+int64(len(v.piece)) <= n[4] && len(v.key) <= engine.MaxKeyLen
}

// take stages a piece. It reports false if the piece does not continue what has arrived of the value.
func (s *stream) take(v *valuePiece, shift, nowMilli int64) bool {
	in := s.values[v.p]
	if v.offset == 0 {
		s.dropValue(v.p)
		in = s.beginValue(v)
	}
	if in == nil || in.come != v.offset || in.total != v.total || !bytes.Equal(in.key, v.key) {
		return false
	}
	in.come += len(v.piece)
	if !in.failed && in.staged.Live() {
		in.failed = in.staged.Write(v.piece) != nil
	}
	if in.come < in.total {
		return true
	}
	s.publish(in, v, shift, nowMilli)
	s.dropValue(v.p)
	return true
}

// beginValue is called for the first piece of a value.
func (s *stream) beginValue(v *valuePiece) *incoming {
	in := &incoming{key: bytes.Clone(v.key), total: v.total}
	if s.values == nil {
		s.values = make(map[uint16]*incoming)
	}
	s.values[v.p] = in
	e := s.node.engine
	if !s.taker.Admits(v.p) {
		in.failed = true
	} else if e.IsLarge(len(v.key), v.total) {
		var err error
		in.staged, err = e.StageFor(v.p, v.key, v.total)
		in.failed = err != nil
	} else if len(v.piece) != v.total {
		in.failed = true // what is small here comes whole
	}
	return in
}

// publish stores a value that has arrived whole. If there is no memory for it, the older value goes
// all the same.
func (s *stream) publish(in *incoming, v *valuePiece, shift, nowMilli int64) {
	t := s.node.engine.Lock(v.p, nowMilli)
	defer t.Unlock()
	if !s.taker.Admits(v.p) {
		return
	}
	at := engine.ShiftExpiry(v.expireAt, shift)
	var err error
	switch {
	case in.failed:
		err = engine.ErrMemory
	case at != 0 && at <= nowMilli:
		t.Delete(v.key)
		return
	case in.staged.Live():
		err = t.SetStaged(&in.staged, v.typ, at)
	default:
		err = t.Set(v.key, v.piece, v.typ, at)
	}
	if err != nil {
		t.Delete(v.key)
		return
	}
	t.SetUses(v.key, v.uses)
}

func (s *stream) dropValue(p uint16) {
	if in := s.values[p]; in != nil {
		if in.staged.Live() {
			in.staged.Discard()
		}
		delete(s.values, p)
	}
}

func (s *stream) dropValues() {
	for p := range s.values {
		s.dropValue(p)
	}
}
