package stream

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// outgoing is a large value that is being sent.
type outgoing struct {
	pin      engine.Pin
	section  uint16
	key      []byte
	typ      engine.Type
	expireAt int64
	uses     int
	sent     int
}

func (v *outgoing) end() {
	if v.pin.Live() {
		v.pin.Release()
	}
	*v = outgoing{}
}

// beginValue pins the value under key. If it is not large any more, what the key holds now is
// appended to out.
func (s *Sender) beginValue(shard int, section uint16, key, out []byte) (_ []byte, began bool) {
	key = bytes.Clone(key)
	t := s.cfg.Engine.Lock(section, s.cfg.UnixMilli())
	defer t.Unlock()
	if item, found := t.Peek(key); found {
		if pin, ok := t.Pin(item); ok {
			s.values[shard] = outgoing{pin: pin, section: section, key: key, typ: item.Type(), expireAt: item.ExpireAt(), uses: item.Uses()}
			s.sending++
			return out, true
		}
	}
	return t.AppendEffect(out, key), false
}

// sendPieces goes on with a shard's value. It reports whether there is none any more.
func (s *Sender) sendPieces(shard int) (done bool) {
	v := &s.values[shard]
	for i := 0; v.pin.Live() && i < valuePieces && s.room(); i++ {
		value := v.pin.Value()
		piece := value[v.sent:min(v.sent+replica.PayloadMost, len(value))]
		s.piece(v, piece)
		if s.ofSnapshot(engine.PartitionOf(v.section), shard) {
			s.pass(len(piece))
		}
		if v.sent += len(piece); v.sent == len(value) {
			v.end()
			s.sending--
		}
	}
	return !v.pin.Live()
}

func (s *Sender) ofSnapshot(p uint16, shard int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.OfSnapshot(p, shard)
}

// piece makes a batch of a piece of a value.
func (s *Sender) piece(v *outgoing, piece []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.window
	b := s.beginLocked(member.VerbValue, 10, len(v.key)+len(piece))
	w.Number(int64(v.section))
	w.Bulk(v.key)
	w.Number(v.expireAt)
	w.Number(int64(v.typ))
	w.Number(int64(v.uses))
	w.Number(int64(len(v.pin.Value())))
	w.Number(int64(v.sent))
	w.Bulk(piece)
	w.End(b)
	s.batched += len(piece)
}

// dropValues gives up the values that are being sent.
func (s *Sender) dropValues() {
	for i := range s.values {
		s.values[i].end()
	}
	s.sending = 0
}
