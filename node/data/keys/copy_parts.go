package keys

import (
	"context"
	"errors"
	"runtime"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// copying copies a value with parts, part by part, to one that is built aside. The copy's parts
// have the numbers of the original's, so what names them is copied as it is. What followers need is
// logged behind that, as for a snapshot. A long value is copied by a goroutine, in slices, while
// the command holds its partition.
type copying struct {
	from, to []byte
	dump     func(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool)

	key     engine.AsideKey
	live    bool // the copy is there, or was
	plane   int
	number  int
	long    engine.Pin    // the next part, if it is too long to be copied under a lock
	staged  engine.Staged // its copy
	fillers []int         // numbers of this plane that the original does not use
	place   engine.Place  // in the log's snapshot
	noted   bool          // that is complete

	e        *engine.Engine
	section  uint16 // of the original
	database uint8  // of the copy
	now      int64
	err      error
}

const (
	copyParts = 64       // parts that are copied under one lock
	copyBytes = 64 << 10 // and bytes
	copyNow   = 32 << 10 // bytes of a value all of which is copied under one lock
)

// step copies a few parts.
func (c *copying) step(t engine.Txn) (done bool, err error) {
	d := t.Select(c.database)
	item, _ := t.Peek(c.from)
	v, ok := t.Parts(item)
	if !ok {
		return false, errEvicted
	}
	if !c.live {
		if !c.e.MayHave(v.Bytes()) {
			return false, engine.ErrTooBig
		}
		if c.key, _, err = d.NewAsideLike(v); err != nil {
			return false, err
		}
		c.live = true
	}
	to, ok := d.Aside(&c.key)
	switch {
	case !ok:
		return false, errEvicted
	case c.plane == engine.Planes && !c.noted:
		return c.note(to), nil
	case c.plane == engine.Planes:
		return true, nil
	case c.number == v.Len(c.plane):
		for _, n := range c.fillers {
			to.Free(c.plane, n)
		}
		c.fillers, c.number = c.fillers[:0], 0
		if c.plane++; c.plane == engine.Planes {
			copy(to.Own(), v.Own())
			to.SetDue(v.Due())
		}
		return false, nil
	}
	return false, c.parts(t, v, to)
}

func (c *copying) parts(t engine.Txn, v, to engine.Parts) error {
	if c.staged.Live() {
		return c.longPart(t, v, to)
	}
	var sizes [copyParts]int
	n, bytes := 0, 0
	for n < copyParts && c.number+n < v.Len(c.plane) && bytes < copyBytes {
		sizes[n] = max(1, v.SizeOf(c.plane, c.number+n))
		if sizes[n] > copyBytes {
			break
		}
		bytes += sizes[n]
		n++
	}
	if n == 0 {
		c.long, _ = v.Pin(c.plane, c.number)
		return nil
	}
	if err := t.Reserve(engine.Room{Parts: sizes[:n], Spared: []engine.Parts{v, to}}); err != nil {
		return err
	}
	for _, size := range sizes[:n] {
		number, part, err := to.Add(c.plane, size)
		if err != nil {
			return err
		}
		if number != c.number {
			panic("BUG: a copied part has another number")
		}
		if old := v.Part(c.plane, number); old == nil {
			c.fillers = append(c.fillers, number)
		} else {
			copy(part, old)
		}
		c.number++
	}
	return nil
}

// longPart adds the copy of a long part.
func (c *copying) longPart(t engine.Txn, v, to engine.Parts) error {
	if err := t.Reserve(engine.Room{Parts: []int{engine.StagedRoom}, Spared: []engine.Parts{v, to}}); err != nil {
		return err
	}
	number, err := to.AddStaged(c.plane, &c.staged)
	if err == nil && number != c.number {
		panic("BUG: a copied part has another number")
	}
	c.number++
	return err
}

// stage copies a long part, without a lock.
func (c *copying) stage(ctx context.Context) (err error) {
	if !c.long.Live() {
		return nil
	}
	defer c.long.Release()
	part := c.long.Value()
	if c.staged, err = c.e.StagePart(len(part)); err != nil {
		return err
	}
	for ; len(part) > 0 && err == nil; err = errors.Join(err, ctx.Err()) {
		n := min(len(part), exec.RewriteStep)
		err = c.staged.Write(part[:n])
		part = part[n:]
	}
	return err
}

// noteBytes is how many bytes of the copy are logged under one lock.
const noteBytes = 32 << 10

// note logs a piece of the copy.
func (c *copying) note(to engine.Parts) (done bool) {
	if !to.Fed() {
		c.noted = true
		return false
	}
	var delta []byte
	delta, c.place, c.noted = c.dump(to, c.place, nil, noteBytes)
	to.Note(delta)
	return false
}

// publish gives the copy its key.
func (c *copying) publish(t engine.Txn) error {
	item, _ := t.Peek(c.from)
	d := t.Select(c.database)
	to, ok := d.Aside(&c.key)
	if !ok {
		return errEvicted
	}
	err := d.Rename(to, c.to, item.ExpireAt())
	if err == nil {
		c.live = false
	}
	return err
}

// drop removes a copy that is not complete.
func (c *copying) drop(t engine.Txn) {
	if v, ok := t.Select(c.database).Aside(&c.key); ok && c.live {
		v.Delete()
	}
	c.live = false
}

// copyValue answers COPY of a value with parts. d is t for the database of the copy.
func copyValue(r *exec.Request, t, d engine.Txn, v engine.Parts) {
	c := &copying{
		from: r.Args[1], to: r.Args[2], dump: r.Types.ByID(v.Type()).Form.Dump,
		e: r.Engine, section: t.Section(), database: engine.DatabaseOf(d.Section()), now: r.Now,
	}
	if v.Bytes() <= copyNow {
		done := false
		for err := error(nil); !done; {
			if done, err = c.step(t); err != nil {
				c.drop(t)
				replyCopied(r, c.database, c.to, false, err)
				return
			}
		}
		replaced := exec.Exists(d, c.to)
		replyCopied(r, c.database, c.to, replaced, c.publish(t))
		return
	}
	kept := exec.CloneArgs(r.Args[:3])
	c.from, c.to = kept[1], kept[2]
	if r.Hold == nil {
		r.Host.HoldOn(t)
	}
	r.Host.Later(c)
}

// Run makes the copy.
func (c *copying) Run(ctx context.Context) {
	hold := c.e.Holder(engine.PartitionOf(c.section))
	for done := false; !done && c.err == nil; {
		if c.err = ctx.Err(); c.err != nil {
			return
		}
		t := hold.Lock().Select(engine.DatabaseOf(c.section))
		done, c.err = c.step(t)
		t.Unlock()
		if c.err == nil {
			c.err = c.stage(ctx)
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
}

// Reply gives the copy its key, and answers.
func (c *copying) Reply(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	replaced := exec.Exists(t.Select(c.database), c.to)
	if c.err == nil {
		c.err = c.publish(t)
	}
	replyCopied(r, c.database, c.to, replaced, c.err)
}

// End removes the copy if it got no key.
func (c *copying) End() {
	if c.staged.Live() {
		c.staged.Discard()
	}
	if c.live {
		t := c.e.Lock(c.section, c.now)
		defer t.Unlock()
		c.drop(t)
	}
}

// replyCopied answers and announces COPY to a key of a database. replaced: there was a key of that name.
func replyCopied(r *exec.Request, database uint8, to []byte, replaced bool, err error) {
	switch n := r.NoticesOf(database); {
	case err == nil:
		notifyNew(&n, replaced, to)
		n.Notify(keyevent.Generic, "copy_to", to)
		r.ReplyInt(1)
	case errors.Is(err, errEvicted):
		r.Fail(exec.ErrOOM)
	default:
		r.ReplyStoreErrorOf(to, err)
	}
}
