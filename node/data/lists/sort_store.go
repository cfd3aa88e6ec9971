package lists

import (
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// isNextLong reports whether the next element to be stored is to be staged.
func (s *sorting) isNextLong() bool {
	return s.stored < len(s.results) && s.engine.IsLarge(0, len(s.results[s.stored])) && !s.staged.Live()
}

// stageNext stages the next element that is to be stored, if it is long.
func (s *sorting) stageNext(ctx context.Context) {
	if s.problem != "" || s.store == nil || !s.isNextLong() {
		return
	}
	staged, view, err := exec.StageElement(ctx, s.engine, s.results[s.stored])
	if s.staged = staged; err != nil {
		s.problem = exec.Unbuilt(s.store)
		return
	}
	s.results[s.stored] = view
}

// storeSome stores results of one run, and reports whether it has stored all. Until then, and after
// an error, the key has what it had.
func (s *sorting) storeSome(r *exec.Request, t engine.Txn) (done bool) {
	s.built.Type = &listType
	if s.isNextLong() {
		return false
	}
	if s.staged.Live() {
		t.Offer(&s.staged)
	}
	var err error
	bytes, first := 0, s.stored
	goesOn := func() bool { return s.stored < len(s.results) && bytes < exec.RunBytes && !s.isNextLong() }
	for err == nil && s.stored-first < sortAtOnce && goesOn() {
		all := s.elements[:0]
		for ; len(all) < exec.AddAtOnce && goesOn(); s.stored++ {
			all = append(all, rdb.Element{First: s.results[s.stored]})
			bytes += len(s.results[s.stored])
		}
		err = s.built.Add(t, all)
		s.elements = all
	}
	if err == nil {
		if s.stored < len(s.results) {
			return false
		}
		found := exec.Exists(t, s.store)
		if err = s.built.Publish(t, s.store); err == nil {
			r.NotifyStored(found, int64(len(s.results)), keyevent.List, "sortstore", s.store)
		}
	}
	if err != nil {
		s.built.Drop(t)
		if s.problem = exec.Unbuilt(s.store); errors.Is(err, engine.ErrTooBig) {
			s.problem = exec.TooBig(s.store)
		}
	}
	return true
}
