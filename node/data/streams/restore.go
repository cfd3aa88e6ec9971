package streams

import (
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// smallPayload is how many bytes of a payload are decompressed for a small stream.
const smallPayload = 16 << 10

// restoreSmall makes the record of a small stream.
func restoreSmall(dst, payload []byte) (value []byte, fits bool, err error) {
	s, err := rdb.ReadStream(payload)
	if err != nil {
		return dst, false, err
	}
	s.Most = smallPayload
	value, fits, err = readRecord(dst, s)
	if errors.Is(err, rdb.ErrTooLong) { // it may fit into a big stream
		err = nil
	}
	return value, fits, err
}

// readRecord appends the record of a small stream. fits is false if there are groups, or too many entries.
func readRecord(dst []byte, s *rdb.Stream) (value []byte, fits bool, err error) {
	w := spares.Get().(*spare)
	defer giveSpare(w)
	var to small
	for x, ok := s.Entry(); ok; x, ok = s.Entry() {
		if to.blk == nil {
			to.blk = initBlock(w.small[:], ID(x.ID))
		}
		if !isShort(x.Strings) {
			return dst, false, nil
		}
		w.payload, _ = appendPayload(w.payload[:0], x.Strings, nil)
		if !to.blk.add(ID(x.ID), w.payload, nil, w.block[:]) || to.blk.used() > shape.MaxPacked {
			return dst, false, nil
		}
	}
	i, ok := s.Info()
	if !ok || i.Groups > 0 {
		return dst, false, s.Err()
	}
	to.meta = meta{last: ID(i.Last), maxDeleted: ID(i.MaxDeleted), added: uint64(i.Added)}
	value = to.append(dst)
	return value, len(value)-len(dst) <= shape.MaxPacked, nil
}

// restorer is the exec.Restorer of a big stream. Each Read is of one kind of parts.
type restorer struct {
	e *engine.Engine
	s *rdb.Stream
	// next reads parts of a kind. more is false if there are no more of them; then next is of another kind.
	next  func(ctx context.Context) (more bool, err error)
	group group // whose name is a copy
	place int   // of the next consumer

	// What Read has read.
	add       func(b *big) error
	text      []byte // of names and payloads
	entries   []restoredEntry
	long      stagedEntry
	info      rdb.StreamInfo
	read      rdb.StreamGroup
	consumers []rdb.StreamConsumer
	pending   []rdb.StreamPending
}

type restoredEntry struct {
	id      ID
	payload []byte // stands in a block
}

// How many parts are added under one lock, and how many bytes of entries.
const (
	restoreEntries   = 128
	restoreText      = 16 << 10
	restoreConsumers = 48
	restorePending   = 64
)

// restore begins to read a payload.
func restore(payload []byte, w *exec.Rewrite) (exec.Restorer, error) {
	s, err := rdb.ReadStream(payload)
	if err != nil {
		return nil, err
	}
	s.Room = w.Charge
	r := &restorer{e: w.Engine, s: s}
	r.next = r.readEntries
	return r, nil
}

// Read reads the next parts.
func (r *restorer) Read(ctx context.Context) (more bool, err error) {
	r.text = r.text[:0]
	r.long.discard()
	for r.next != nil {
		if more, err = r.next(ctx); more || err != nil {
			return more, err
		}
		if err = r.s.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Add adds them.
func (r *restorer) Add(t engine.Txn, v engine.Parts) error {
	w := spares.Get().(*spare)
	defer giveSpare(w)
	b := &big{v: v, spare: w}
	t.Offer(r.long.offers()...)
	err := r.add(b)
	b.flush()
	return err
}

// Release forgets a long entry.
func (r *restorer) Release() { r.long.discard() }

// keep copies text, which the next part overwrites.
func (r *restorer) keep(s []byte) []byte {
	begun := len(r.text)
	r.text = append(r.text, s...)
	return r.text[begun:len(r.text):len(r.text)]
}

// readEntries reads short entries, or one long one.
func (r *restorer) readEntries(ctx context.Context) (more bool, err error) {
	r.entries = r.entries[:0]
	for !r.long.there && len(r.entries) < restoreEntries && len(r.text) < restoreText {
		x, ok := r.s.Entry()
		if !ok {
			r.next = r.readInfo
			break
		}
		if !isShort(x.Strings) {
			if err := r.long.stage(ctx, r.e, ID(x.ID), x.Strings); err != nil {
				return false, err
			}
			continue
		}
		begun := len(r.text)
		r.text, _ = appendPayload(r.text, x.Strings, nil)
		r.entries = append(r.entries, restoredEntry{ID(x.ID), r.text[begun:len(r.text):len(r.text)]})
	}
	r.add = r.addEntries
	return len(r.entries) > 0 || r.long.there, nil
}

func (r *restorer) addEntries(b *big) error {
	for _, x := range r.entries {
		if err := b.append(x.id, x.payload); err != nil {
			return err
		}
	}
	if !r.long.there {
		return nil
	}
	return b.appendLong(r.long.id, &r.long.long)
}

func (r *restorer) readInfo(_ context.Context) (more bool, err error) {
	r.info, more = r.s.Info()
	r.next, r.add = r.readGroup, r.addInfo
	return more, nil
}

func (r *restorer) addInfo(b *big) error {
	b.setMeta(meta{last: ID(r.info.Last), maxDeleted: ID(r.info.MaxDeleted), added: uint64(r.info.Added)})
	return nil
}

func (r *restorer) readGroup(_ context.Context) (more bool, err error) {
	if r.read, more = r.s.Group(); !more {
		r.next = nil
		return false, nil
	}
	r.read.Name = append([]byte{}, r.read.Name...)
	r.next, r.add, r.place = r.readConsumers, r.addGroup, 0
	return true, nil
}

func (r *restorer) addGroup(b *big) (err error) {
	if _, found := b.group(r.read.Name); found {
		return rdb.ErrFormat
	}
	r.group, err = b.createGroup(0, r.read.Name, ID(r.read.Last), r.read.Read)
	return err
}

func (r *restorer) readConsumers(_ context.Context) (more bool, err error) {
	r.consumers = r.consumers[:0]
	for len(r.consumers) < restoreConsumers {
		c, ok := r.s.Consumer()
		if !ok {
			r.next = r.readPending
			break
		}
		c.Name = r.keep(c.Name)
		r.consumers = append(r.consumers, c)
	}
	r.add = r.addConsumers
	return len(r.consumers) > 0, nil
}

// addConsumers adds consumers. Their numbers are those of a new group: their places among its consumers,
// and one more.
func (r *restorer) addConsumers(b *big) error {
	for _, c := range r.consumers {
		if _, found := b.consumer(&r.group, c.Name); found {
			return rdb.ErrFormat
		}
		r.place++
		active := b.relative(max(c.Active, never))
		if _, err := b.createConsumer(&r.group, uint32(r.place), c.Name, c.Seen-b.base(), active); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) readPending(_ context.Context) (more bool, err error) {
	r.pending = r.pending[:0]
	for len(r.pending) < restorePending {
		p, ok := r.s.Pending()
		if !ok {
			r.next = r.readGroup
			break
		}
		r.pending = append(r.pending, p)
	}
	r.add = r.addPending
	return len(r.pending) > 0, nil
}

func (r *restorer) addPending(b *big) error {
	for _, p := range r.pending {
		x := pending{ID(p.ID), uint32(p.Consumer) + 1, p.Delivered, uint64(p.Count)}
		if err := b.setPending(&r.group, &x); err != nil {
			return err
		}
	}
	return nil
}
