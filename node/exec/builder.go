package exec

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Builder makes a value of a type from elements, for a command that stores a result. While the
// value is small, it is packed, in the Go heap; then it is built aside in the engine
// (engine.Txn.NewAside). Nobody sees it before Publish. The caller ends it with Publish or Drop.
type Builder struct {
	Type *Type // whose Collection is not nil

	pack   *shape.Pack
	key    engine.AsideKey
	isBig  bool
	count  int
	work   shape.Work
	buffer []rdb.Element
}

// Len is how many elements were added.
func (b *Builder) Len() int { return b.count }

// Add adds elements that the value does not have, at most AddAtOnce. t is of the partition of the
// key.
func (b *Builder) Add(t engine.Txn, all []rdb.Element) error {
	b.count += len(all)
	c := b.Type.Collection
	if !b.isBig {
		if b.pack == nil {
			b.pack = new(shape.Pack)
			b.pack.Open(c.Packed, nil, 0)
		}
		for len(all) > 0 {
			fits, err := c.AddPacked(b.pack, all[0])
			if err != nil {
				return err
			}
			if !fits {
				break
			}
			all = all[1:]
		}
		if len(all) == 0 {
			return nil
		}
		if err := b.unpack(t); err != nil {
			return err
		}
	}
	v, ok := t.Aside(&b.key)
	if !ok {
		return engine.ErrMemory
	}
	return c.Add(v, &b.work, all)
}

// unpack begins a value with parts, with what is packed.
func (b *Builder) unpack(t engine.Txn) (err error) {
	c := b.Type.Collection
	p := shape.ReadPacked(c.Packed, b.pack.Bytes())
	b.pack = nil
	key, v, err := t.NewAside(b.Type.ID, c.Own)
	if err != nil {
		return err
	}
	b.key, b.isBig = key, true
	b.buffer = make([]rdb.Element, 0, AddAtOnce)
	c.each(&p, func(x rdb.Element) {
		x.First, x.Second = append([]byte(nil), x.First...), append([]byte(nil), x.Second...)
		if b.buffer = append(b.buffer, x); len(b.buffer) == AddAtOnce && err == nil {
			err, b.buffer = c.Add(v, &b.work, b.buffer), b.buffer[:0]
		}
	})
	if err == nil && len(b.buffer) > 0 {
		err = c.Add(v, &b.work, b.buffer)
	}
	b.buffer = nil
	return err
}

// Publish gives the value the key, over any value that was there; it never expires. Without
// elements the key is deleted. After an error nothing has changed but by eviction, and the caller
// calls Drop.
func (b *Builder) Publish(t engine.Txn, key []byte) error {
	switch {
	case b.count == 0:
		t.Delete(key)
		return nil
	case !b.isBig:
		t.Overwrite(key)
		return t.Set(key, b.pack.Bytes(), b.Type.ID, 0)
	}
	v, ok := t.Aside(&b.key)
	if !ok {
		return engine.ErrMemory
	}
	err := t.Rename(v, key, 0)
	if err == nil {
		b.isBig = false
	}
	return err
}

// Drop removes a value that was not published. t is of any partition if there is none in the
// engine.
func (b *Builder) Drop(t engine.Txn) {
	if v, ok := t.Aside(&b.key); ok && b.isBig {
		v.Delete()
	}
	b.isBig = false
}

// End is Drop outside of any lock; section is that of the key.
func (b *Builder) End(e *engine.Engine, section uint16, now int64) {
	if b.isBig {
		t := e.Lock(section, now)
		defer t.Unlock()
		b.Drop(t)
	}
}

// IsAside reports whether Drop has something to remove.
func (b *Builder) IsAside() bool { return b.isBig }
