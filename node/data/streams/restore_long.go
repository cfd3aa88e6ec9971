package streams

import (
	"context"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// stagedEntry is an entry that does not stand in a block. Its payload, if it is long, and the strings that
// are parts of their own are staged: then the lock only attaches them.
type stagedEntry struct {
	there   bool
	id      ID
	long    long
	payload staging
	staged  []engine.Staged // of the strings
}

// stage makes an entry. It stops with ctx's error when ctx ends.
func (s *stagedEntry) stage(ctx context.Context, e *engine.Engine, id ID, strings [][]byte) (err error) {
	s.there, s.id = true, id
	var payload []byte
	var own [][]byte
	if isStaged(strings, maxOwn) {
		s.payload = staging{most: maxOwn}
		for !s.payload.isWhole(strings) {
			if err = ctx.Err(); err == nil {
				err = s.payload.step(e, strings)
			}
			if err != nil {
				return err
			}
		}
		payload, own = s.payload.view(), s.payload.own(strings)
	} else {
		payload, own = appendPayload(nil, strings, nil)
	}
	for i := range own {
		st, view, err := exec.StageElement(ctx, e, own[i])
		if st.Live() {
			s.staged = append(s.staged, st)
		}
		if err != nil {
			return err
		}
		own[i] = view
	}
	s.long = longOf(payload, own)
	return nil
}

// offers is what is staged, for engine.Txn.Offer.
func (s *stagedEntry) offers() (all []*engine.Staged) {
	if s.payload.st.Live() {
		all = append(all, &s.payload.st)
	}
	for i := range s.staged {
		all = append(all, &s.staged[i])
	}
	return all
}

// discard forgets the entry, and frees what the value has not taken over.
func (s *stagedEntry) discard() {
	s.payload.End()
	for i := range s.staged {
		if s.staged[i].Live() {
			s.staged[i].Discard()
		}
	}
	*s = stagedEntry{}
}
