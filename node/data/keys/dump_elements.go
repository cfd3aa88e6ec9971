package keys

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// elementsDump is the Dumper of a collection.
type elementsDump struct {
	e     *engine.Engine
	c     *exec.Collection
	v     engine.Parts
	w     rdb.Writer
	head  []byte
	place int

	elements []rdb.Element // of one lock: copied, or views of what is pinned
	text     []byte        // where they are copied to
	long     []engine.Pin
	slice    []byte // of the payload
}

func dumpElements(r *exec.Request, c *exec.Collection, v engine.Parts, pin *engine.ValuePin) *elementsDump {
	d := &elementsDump{e: r.Engine, c: c, v: v, w: c.Form(false, v)}
	if r.DumpForValkey {
		d.w.Form = d.w.Form.ForValkey()
	}
	d.head = d.w.AppendHead(nil, c.Len(pin.Own()))
	return d
}

// How many elements are read under one lock, and how many long strings are pinned, about.
const (
	dumpAtOnce = 1024
	longAtOnce = 16
)

// Take reads elements.
func (d *elementsDump) Take(pin *engine.ValuePin) (done bool) {
	for !done && len(d.text) < dumpSlice && len(d.elements) < dumpAtOnce && len(d.long) < longAtOnce {
		d.place, done = d.c.Piece(d.v, pin, d.place, d.take)
	}
	return done
}

// take keeps an element until the shard is unlocked.
func (d *elementsDump) take(x rdb.Element) {
	x.First, x.Second = d.view(x.First), d.view(x.Second)
	d.elements = append(d.elements, x)
}

// view returns a string that stays as it is: a copy, or the string itself, pinned.
func (d *elementsDump) view(s []byte) []byte {
	if len(s) >= exec.LongElement {
		if pin, ok := d.e.PinView(s); ok {
			d.long = append(d.long, pin)
			return s
		}
	}
	n := len(d.text)
	d.text = append(d.text, s...)
	return d.text[n:len(d.text):len(d.text)]
}

// Write writes the elements that were taken.
func (d *elementsDump) Write(out func(piece []byte) error) error {
	if d.slice == nil {
		d.slice = make([]byte, 0, 2*dumpSlice)
	}
	slice := d.slice
	for _, x := range d.elements {
		if max(len(x.First), len(x.Second)) < exec.LongElement {
			slice = d.w.AppendElement(slice, x)
			continue
		}
		var last []byte
		slice, last = d.w.AppendLong(slice, x)
		for len(last) > 0 {
			n := min(len(last), dumpSlice)
			d.w.Pass(last[:n])
			slice, last = append(slice, last[:n]...), last[n:]
			if err := out(slice); err != nil {
				return err
			}
			slice = slice[:0]
		}
		slice = d.w.AppendBehind(slice, x)
	}
	d.Release()
	d.slice = slice[:0]
	return out(slice)
}

// End writes the foot.
func (d *elementsDump) End(out func(piece []byte) error) (head []byte, err error) {
	return d.head, out(d.w.AppendFoot(nil))
}

// Release forgets the elements that were taken.
func (d *elementsDump) Release() {
	for i := range d.long {
		d.long[i].Release()
	}
	d.elements, d.text, d.long = d.elements[:0], d.text[:0], d.long[:0]
}
