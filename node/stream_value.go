package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value is not logged. When its turn in the log comes, the sender pins it as it is then, and sends it in pieces. Changes
// of its shard wait meanwhile, those of other shards do not.

// outgoing is a large value that is being sent.
type outgoing struct {
	pin       engine.Pin
	partition uint16
	key       []byte
	typ       engine.Type
	expireAt  int64
	uses      int
	sent      int
}

func (v *outgoing) end() {
	if v.pin.Live() {
		v.pin.Release()
	}
	*v = outgoing{}
}

// beginValue pins the value under key. If it is not large any more, what the key holds now is appended to out.
func (s *sender) beginValue(shard int, p uint16, key, out []byte) (_ []byte, began bool) {
	key = bytes.Clone(key)
	t := s.node.engine.Lock(p, s.node.cfg.Group.UnixMilli())
	defer t.Unlock()
	if item, found := t.Peek(key); found {
		if pin, ok := t.Pin(item); ok {
			s.values[shard] = outgoing{pin: pin, partition: p, key: key, typ: item.Type(), expireAt: item.ExpireAt(), uses: item.Uses()}
			s.sending++
			return out, true
		}
	}
	return t.AppendEffect(out, key), false
}

// sendPieces goes on with a shard's value. True: there is none any more.
func (s *sender) sendPieces(shard int) (done bool) {
	v := &s.values[shard]
	for i := 0; v.pin.Live() && i < valuePieces && s.room(); i++ {
		value := v.pin.Value()
		piece := value[v.sent:min(v.sent+payloadMost, len(value))]
		s.piece(v, piece)
		s.mu.Lock()
		f := s.fed[v.partition]
		snapshot := f != nil && (f.state == feedFilled || s.empty[shard] <= f.logged)
		s.mu.Unlock()
		if snapshot {
			s.pass(int64(len(piece)))
		}
		if v.sent += len(piece); v.sent == len(value) {
			v.end()
			s.sending--
		}
	}
	return !v.pin.Live()
}

// piece makes a batch of a piece of a value.
func (s *sender) piece(v *outgoing, piece []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.window
	f := w.begin(member.VerbValue, 10, s.node.cfg.Group.UnixMilli())
	w.number(int64(v.partition))
	w.bulk(v.key)
	w.number(v.expireAt)
	w.number(int64(v.typ))
	w.number(int64(v.uses))
	w.number(int64(len(v.pin.Value())))
	w.number(int64(v.sent))
	w.bulk(piece)
	w.end(f)
}

// dropValues gives up the values that are being sent.
func (s *sender) dropValues() {
	for i := range s.values {
		s.values[i].end()
	}
	s.sending = 0
}
