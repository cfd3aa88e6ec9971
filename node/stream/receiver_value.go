package stream

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// incoming is a large value of a stream, of which pieces have arrived.
type incoming struct {
	staged  engine.Staged
	section uint16
	key     []byte
	total   int
	come    int
	failed  bool // no memory, or not to be taken: the rest is thrown away
}

// Piece is a piece of a large value, of a batch of its own.
type Piece struct {
	Section  uint16
	Key      []byte // engine.MaxKeyLen bytes at most
	ExpireAt int64  // by the sender's clock, in unix milliseconds; 0: never
	Type     engine.Type
	Uses     int // what eviction knows of the key
	Total    int // length of the value
	Offset   int // of the piece; it ends within Total
	Bytes    []byte
}

// Value stages a piece of a large value, unless that was done before, and publishes the value if it
// is the last piece. It appends the answer to dst. Key and Bytes are copied. The caller has checked
// the bounds of v.
func (c *Connection) Value(dst []byte, b Batch, v *Piece) ([]byte, error) {
	return c.take(dst, b, func(r *receiver) bool { return r.stage(v, b.shift(), b.Now) })
}

// stage stages a piece. It reports false if the piece does not continue what has arrived of the
// value.
func (r *receiver) stage(v *Piece, shift, nowMilli int64) bool {
	p := engine.PartitionOf(v.Section)
	in := r.values[p]
	if v.Offset == 0 {
		r.dropValue(p)
		in = r.beginValue(v)
	}
	if in == nil || in.come != v.Offset || in.total != v.Total || in.section != v.Section || !bytes.Equal(in.key, v.Key) {
		return false
	}
	in.come += len(v.Bytes)
	if !in.failed && in.staged.Live() {
		in.failed = in.staged.Write(v.Bytes) != nil
	}
	if in.come < in.total {
		return true
	}
	r.publish(in, v, shift, nowMilli)
	r.dropValue(p)
	return true
}

// beginValue is called for the first piece of a value.
func (r *receiver) beginValue(v *Piece) *incoming {
	in, p := &incoming{section: v.Section, key: bytes.Clone(v.Key), total: v.Total}, engine.PartitionOf(v.Section)
	if r.values == nil {
		r.values = make(map[uint16]*incoming)
	}
	r.values[p] = in
	e := r.cfg.Engine
	if !r.taker.Admits(p) {
		in.failed = true
	} else if e.IsLarge(len(v.Key), v.Total) {
		var err error
		in.staged, err = e.StageFor(v.Section, v.Key, v.Total)
		in.failed = err != nil
	} else if len(v.Bytes) != v.Total {
		in.failed = true // what is small here comes whole
	}
	return in
}

// publish stores a value that has arrived whole. If there is no memory for it, the older value goes
// all the same.
func (r *receiver) publish(in *incoming, v *Piece, shift, nowMilli int64) {
	t := r.cfg.Engine.Lock(v.Section, nowMilli)
	defer t.Unlock()
	if !r.taker.Admits(engine.PartitionOf(v.Section)) {
		return
	}
	at := engine.ShiftExpiry(v.ExpireAt, shift)
	var err error
	switch {
	case in.failed:
		err = engine.ErrMemory
	case at != 0 && at <= nowMilli:
		t.Delete(v.Key)
		return
	case r.cfg.Admits(v.Type, in.value(v)) != nil:
		err = engine.ErrEffects
	case in.staged.Live():
		err = t.SetStaged(&in.staged, v.Type, at)
	default:
		err = t.Set(v.Key, v.Bytes, v.Type, at)
	}
	if err != nil {
		t.Delete(v.Key)
		return
	}
	t.SetUses(v.Key, v.Uses)
}

// value is the value that has arrived whole.
func (in *incoming) value(v *Piece) []byte {
	if in.staged.Live() {
		return in.staged.Value()
	}
	return v.Bytes
}

func (r *receiver) dropValue(p uint16) {
	if in := r.values[p]; in != nil {
		if in.staged.Live() {
			in.staged.Discard()
		}
		delete(r.values, p)
	}
}

func (r *receiver) dropValues() {
	for p := range r.values {
		r.dropValue(p)
	}
}
