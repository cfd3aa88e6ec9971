package sortedsets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// store stores some members of a result under a key, over whatever it has, and answers how many
// there are when that was the last one. Until then, and after an error, the key has what it had.
func (d *delivery) store(r *exec.Request, t engine.Txn, key []byte, x *Result, steps int) progress {
	existed := exec.Exists(t, key)
	if d.value == nil && d.total <= shape.MaxEntries {
		done, err := storeSmall(r, t, key, x)
		if err != nil {
			r.ReplyValueError(err)
			return failed
		}
		if done {
			notifyStored(r, existed, int64(d.total), key)
			r.ReplyInt(int64(d.total))
			return answered
		}
	}
	if d.value == nil {
		d.value = &exec.Builder{Type: &sortedType}
		d.engine, d.section, d.now = r.Engine, r.Section(), r.Now
	}
	err := d.build(t, x, steps)
	if err == nil && x.list.length > 0 {
		return goesOn
	}
	if err == nil {
		err = d.value.Publish(t, key)
	}
	if err != nil {
		d.value.Drop(t)
		r.ReplyValueError(err)
		return failed
	}
	notifyStored(r, existed, int64(d.total), key)
	r.ReplyInt(int64(d.total))
	return answered
}

// notifyStored announces a result. Redis names the event after the command, without what it searches by.
func notifyStored(r *exec.Request, existed bool, length int64, key []byte) {
	event := r.Cmd.Name
	if r.Cmd.ID == command.GeoRadius || r.Cmd.ID == command.GeoRadiusByMember {
		event = "georadiusstore"
	}
	r.NotifyStored(existed, length, keyevent.SortedSet, event, key)
}

// storeSmall stores a result that a record has room for. It returns false if there is none.
func storeSmall(r *exec.Request, t engine.Txn, key []byte, x *Result) (done bool, err error) {
	if x.list.length == 0 {
		t.Delete(key)
		return true, nil
	}
	p := &r.Worker.Pack
	p.Open(&shape.PackedZSet, nil, r.Now)
	for i := range x.list.length {
		s := *x.list.at(i)
		if !putPacked(p, x.Member(s), 0, false, s.Score) {
			return false, nil
		}
	}
	t.Overwrite(key)
	return true, t.Set(key, p.Bytes(), engine.TypeZSet, 0)
}

// build adds some members to the value. A place that a search has found twice comes twice in a row.
func (d *delivery) build(t engine.Txn, x *Result, steps int) (err error) {
	for steps > 0 && x.list.length > 0 && err == nil {
		all := d.elements[:0]
		for ; steps > 0 && x.list.length > 0 && len(all) < exec.AddAtOnce; steps-- {
			s := x.First()
			member := x.Member(s)
			steps -= exec.LongSteps(len(member))
			if d.last != nil && bytes.Equal(d.last, member) {
				continue
			}
			d.last = member
			all = append(all, rdb.Element{First: member, Score: s.Score})
		}
		err = d.value.Add(t, all)
		d.elements = all
	}
	return err
}

// End removes what was not stored. Nobody has locked the partition if there is something.
func (d *delivery) End() {
	if d != nil && d.value != nil {
		d.value.End(d.engine, d.section, d.now)
	}
}

// Storing stores a result under a key, over whatever it has, in runs.
type Storing struct {
	Result   *Result
	delivery *delivery
}

// Run stores some members. When it is done it has answered the command, with an error if ok is
// false.
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

// End frees what Run has not stored.
func (x *Storing) End() { x.delivery.End() }
