package lists

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// gather gathers the reply, or what is to be stored.
func (s *sorting) gather(ctx context.Context, under func(do func(t engine.Txn))) {
	columns := max(1, len(s.gets))
	if s.store == nil {
		s.emitText(resp.AppendArray(nil, len(s.all)*columns))
	}
	if len(s.gets) == 0 {
		for i := range s.all {
			if text := s.all[i].text; s.ran && len(text) >= exec.LongElement {
				s.emitLong(text)
			} else {
				s.emit(text, true)
			}
			if s.ran && len(s.slice) > textPiece {
				s.flush()
			}
		}
		return
	}
	total := len(s.all) * columns
	for i := 0; i < total && s.problem == "" && !s.tooLong && ctx.Err() == nil; {
		var long []byte
		var pin engine.Pin
		under(func(t engine.Txn) {
			for end := min(i+lookupAtOnce, total); i < end && long == nil && !s.isFull(); i++ {
				long, pin = s.get(t, s.gets[i%columns], s.all[i/columns].text)
			}
		})
		if long != nil {
			s.emitLong(long)
		}
		if pin.Live() {
			pin.Release()
		}
	}
}

// get adds what GET names for an element. What is too long to be copied under the lock it returns,
// pinned unless it is the element.
func (s *sorting) get(t engine.Txn, pattern, element []byte) (long []byte, pin engine.Pin) {
	if isElement(pattern) {
		if len(element) >= exec.LongElement && s.ran {
			return element, pin
		}
		s.emit(element, true)
		return nil, pin
	}
	if !s.byPattern(t, pattern, element, func(text []byte) {
		if len(text) >= exec.LongElement {
			if s.tooLong = !s.ran; s.tooLong {
				return
			}
			var ok bool
			if pin, ok = s.engine.PinView(text); ok {
				long = text
				return
			}
		}
		s.emit(text, true)
	}) {
		s.emit(nil, false)
	}
	return long, pin
}

// emit adds a string to the result, or that there is none.
func (s *sorting) emit(text []byte, found bool) {
	switch {
	case s.problem != "":
	case s.store != nil:
		s.results = append(s.results, s.keepResult(text))
	case !found:
		s.emitText(resp.AppendNull(nil, s.version))
	default:
		s.copied += len(text)
		s.slice = resp.AppendBulk(s.slice, text)
	}
}

// emitLong adds a long string to the result, with no shard locked.
func (s *sorting) emitLong(text []byte) {
	if s.store != nil {
		s.emit(text, true)
		return
	}
	s.slice = resp.AppendBulkHeader(s.slice, len(text))
	s.flush()
	if s.problem == "" && !s.reply.Append(s.heap, text) {
		s.problem = exec.ErrOOM
	}
	s.slice = append(s.slice, "\r\n"...)
}

// keepResult returns what is to be stored: an element stays until the end.
func (s *sorting) keepResult(text []byte) []byte {
	if len(text) >= exec.LongElement && len(s.gets) == 0 && len(s.long) > 0 {
		return text
	}
	return s.keep(text)
}

// emitText adds a piece of the reply, which flush passes on when the shard is not locked.
func (s *sorting) emitText(text []byte) { s.slice = append(s.slice, text...) }

// flush adds the slice to the reply.
func (s *sorting) flush() {
	if s.problem == "" && !s.reply.Append(s.heap, s.slice) {
		s.problem = exec.ErrOOM
	}
	if s.slice = s.slice[:0]; cap(s.slice) > 4*textPiece {
		s.slice = nil
	}
}
