package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// The strings of an entry may be too many, or too long, to be copied under a lock. Then XADD makes the
// payload in runs, outside the lock, in memory that the value takes over. Strings that arrive as uploads are
// not copied at all: each becomes a part, up to maxOwn of them. In MULTI and in scripts there are no uploads.

const (
	// stageFrom is how many bytes of strings are copied under a lock. A string counts for stringCost more.
	stageFrom  = 64 << 10
	stringCost = 32
	// stageStep is how many of these bytes are copied in one run.
	stageStep = 256 << 10
)

// staging is the payload of a long entry while it is made. It is the state of its command.
type staging struct {
	st    engine.Staged
	i     int // the next string
	from  int // of which so many bytes are copied
	parts int // strings that are parts of their own
	size  int // of the payload, as far as it is known
	sized bool
	most  int // strings that are parts of their own, at most
}

// End forgets a payload that was not used.
func (s *staging) End() {
	if s.st.Live() {
		s.st.Discard()
	}
}

// view is the payload, for a value that takes it over.
func (s *staging) view() []byte { return s.st.Value()[len(shape.AwayHead(0)):] }

// isStaged reports whether the payload of fields is to be staged. own is how many strings become parts of their
// own at most (mostOwn).
func isStaged(fields [][]byte, own int) bool {
	if len(fields)*stringCost > stageFrom {
		return true
	}
	n := len(fields) * stringCost
	for _, s := range fields {
		if len(s) >= ownFrom && own > 0 {
			own--
		} else {
			n += len(s)
		}
	}
	return n > stageFrom
}

// isLong reports whether the strings of an entry are many or long: what is noted of it may take several runs.
func isLong(fields [][]byte) bool {
	n := len(fields) * stringCost
	for _, s := range fields {
		if n += len(s); n > stageFrom {
			break
		}
	}
	return n > stageFrom
}

// mostOwn is how many strings of a command become parts of their own, at most.
func mostOwn(r *exec.Request) int {
	if r.Upload == nil {
		return 0
	}
	return maxOwn
}

// own returns the strings that are parts of their own.
func (s *staging) own(fields [][]byte) (own [][]byte) {
	for _, text := range fields {
		if len(text) >= ownFrom && len(own) < s.most {
			own = append(own, text)
		}
	}
	return own
}

// stage has the stream take over the payload of a command's fields, when runs of the command have made it. In
// each of those ok is false: the command goes on, or is answered. The fields are shown (UseElements).
func (s *stream) stage(locks *exec.KeyLocks, fields [][]byte) (ok bool) {
	x, begun := locks.State.(*staging)
	if !begun {
		x = &staging{most: mostOwn(s.r)}
	}
	if x.isWhole(fields) {
		s.staged = x
		x.offer(s.r, s.txn)
		return true
	}
	s.goesOn = true
	if locks.State = x; s.r.InTransaction { // which has its partition locked until it holds it
		locks.Hold()
		locks.Stop(1, 0)
		return false
	}
	locks.Release()
	if err := x.step(s.r.Engine, fields); err != nil {
		s.goesOn = false
		s.r.ReplyStoreError(err)
		return false
	}
	locks.Stop(1, 0)
	return false
}

func (s *staging) isWhole(fields [][]byte) bool { return s.sized && s.i == len(fields) }

// step passes over the fields twice: first for the size of the payload.
func (s *staging) step(e *engine.Engine, fields [][]byte) error {
	if s.size == 0 {
		s.size = len(binary.AppendUvarint(nil, uint64(len(fields)/2)))
	}
	w := spares.Get().(*spare)
	defer giveSpare(w)
	for left := stageStep; left > 0 && s.i < len(fields); {
		text := fields[s.i]
		if len(text) >= ownFrom && s.parts < s.most {
			w.payload = append(w.payload[:0], codeOwn, byte(s.parts))
			s.parts++
			text = nil
		} else if s.from == 0 {
			w.payload = appendCodedHead(w.payload[:0], text)
			if len(text) <= shape.MaxCoded {
				text = nil
			}
		} else {
			w.payload = w.payload[:0]
		}
		left -= stringCost
		if !s.sized {
			s.size += len(w.payload) + len(text)
			s.i++
			continue
		}
		piece := text[min(s.from, len(text)):]
		piece = piece[:min(len(piece), max(left, stringCost))]
		if err := s.st.Write(w.payload); err != nil {
			return err
		}
		if err := s.st.Write(piece); err != nil {
			return err
		}
		left -= len(w.payload) + len(piece)
		if s.from += len(piece); s.from >= len(text) {
			s.i, s.from = s.i+1, 0
		}
	}
	if !s.sized && s.i == len(fields) {
		return s.begin(e)
	}
	return nil
}

// appendCodedHead appends a coded string, or of a long one what stands in front of its bytes.
func appendCodedHead(dst, s []byte) []byte {
	if len(s) <= shape.MaxCoded {
		return shape.AppendCoded(dst, s)
	}
	return binary.AppendUvarint(append(dst, codeLong), uint64(len(s)))
}

// begin stages memory for the payload, of which the size is known now.
func (s *staging) begin(e *engine.Engine) (err error) {
	fields := uint64(s.i / 2)
	s.sized, s.i, s.parts = true, 0, 0
	head := shape.AwayHead(s.size)
	if s.st, err = e.StagePart(len(head) + s.size); err != nil {
		return err
	}
	if err = s.st.Write(head[:]); err != nil {
		return err
	}
	return s.st.Write(binary.AppendUvarint(nil, fields))
}

// offer has the stream take over what is staged, and the strings that were uploaded.
func (s *staging) offer(r *exec.Request, t engine.Txn) {
	all := []*engine.Staged{&s.st}
	if r.Upload != nil {
		for i := range r.Upload.Values {
			if st := &r.Upload.Values[i].Staged; st.Live() {
				all = append(all, st)
			}
		}
	}
	t.Offer(all...)
}
