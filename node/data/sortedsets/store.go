package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// store stores some members of a result under a key, over whatever it has, and answers how many there
// are when that was the last one.
func (d *delivery) store(r *exec.Request, t engine.Txn, key []byte, x *Result, steps int) progress {
	if !d.begun && d.total <= shape.MaxEntries {
		done, err := storeSmall(r, t, key, x)
		if err != nil {
			r.ReplyValueError(err)
			return failed
		}
		if done {
			r.ReplyInt(int64(d.total))
			return answered
		}
	}
	if err := d.storeSome(r, t, key, x, steps); err != nil {
		t.Delete(key)
		r.ReplyValueError(err)
		return failed
	}
	if len(x.list) > 0 {
		return goesOn
	}
	r.ReplyInt(int64(d.total))
	return answered
}

// storeSmall stores a result that a record has room for. It returns false if there is none.
func storeSmall(r *exec.Request, t engine.Txn, key []byte, x *Result) (done bool, err error) {
	if len(x.list) == 0 {
		t.Delete(key)
		return true, nil
	}
	p := &r.Worker.Pack
	p.Open(&shape.PackedZSet, nil, r.Now)
	for _, s := range x.list {
		if !putPacked(p, x.Member(s), 0, false, s.Score) {
			return false, nil
		}
	}
	return true, t.Set(key, p.Bytes(), engine.TypeZSet, 0)
}

// storeSome stores some members in a set with parts, which it makes first.
func (d *delivery) storeSome(r *exec.Request, t engine.Txn, key []byte, x *Result, steps int) error {
	w := &r.Worker.Work
	put := func(b *big) error {
		for ; steps > 0 && len(x.list) > 0; steps-- {
			s := x.First()
			if _, err := b.put(w, x.Member(s), s.Score); err != nil {
				w.Forget()
				return err
			}
			b.note(w, x.Member(s), s.Score)
		}
		w.Note(b.v)
		return nil
	}
	if d.begun {
		item, found := t.Peek(key)
		v, ok := t.Parts(item)
		if !found || !ok {
			return engine.ErrMemory
		}
		b := openBig(v, nil)
		return put(&b)
	}
	d.begun = true
	_, err := shape.Rebuild(t, key, engine.TypeZSet, own, 0, nil, func(v engine.Parts) error {
		b := openBig(v, nil)
		return put(&b)
	})
	return err
}

// Storing stores a result under a key, over whatever it has, in runs.
type Storing struct {
	Result   *Result
	delivery *delivery
}

// Run stores some members. When it is done it has answered the command, with an error if ok is false.
func (x *Storing) Run(r *exec.Request, t engine.Txn, key []byte) (done, ok bool) {
	if !x.Result.Order(stepsAtOnce) {
		return false, true
	}
	if x.delivery == nil {
		x.delivery = &delivery{total: x.Result.Len()}
	}
	p := x.delivery.store(r, t, key, x.Result, stepsAtOnce)
	return p != goesOn, p != failed
}
