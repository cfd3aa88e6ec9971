package exec

import (
	"context"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Segments are the reply of a command about several values, in order: what is made already, and
// what is yet to be made of a pinned value, in slices. The zero Segments are empty. Behind the
// first segment they need Answer, ReplySegments or End.
type Segments struct {
	all []segment
}

type segment struct {
	text Gathered // what is made

	pin  *engine.ValuePin // nil: nothing is to be made
	head func() []byte    // stands in front of that, and is called behind it
	next func(pin *engine.ValuePin, t *Text) (done bool)
}

// Empty reports whether there are no segments.
func (s *Segments) Empty() bool { return len(s.all) == 0 }

// Text moves a text behind the segments. It reports false if there is no memory: then the text is lost.
func (s *Segments) Text(heap Heap, t *Text) (ok bool) {
	if len(t.Bytes) == 0 {
		return true
	}
	if n := len(s.all); n == 0 || s.all[n-1].pin != nil {
		s.all = append(s.all, segment{})
	}
	return s.all[len(s.all)-1].text.AppendText(heap, t)
}

// Gathered moves what was gathered behind the segments, with a head in front of it. It reports false if there is no
// memory: then all of that is lost.
func (s *Segments) Gathered(heap Heap, head []byte, g *Gathered) (ok bool) {
	before := Text{Bytes: head}
	if ok = s.Text(heap, &before); ok {
		s.all[len(s.all)-1].text.join(g)
	} else {
		g.End()
	}
	return ok
}

// Pinned adds what next makes of a value as it is now, see Request.ReplyPinnedText. It reports
// false if the value cannot be pinned.
func (s *Segments) Pinned(v engine.Parts, head func() []byte, next func(pin *engine.ValuePin, t *Text) (done bool)) (ok bool) {
	pin, err := v.PinValue()
	if err == nil {
		s.all = append(s.all, segment{pin: pin, head: head, next: next})
	}
	return err == nil
}

// End frees the segments.
func (s *Segments) End() {
	for i := range s.all {
		s.all[i].end()
	}
	s.all = nil
}

func (s *segment) end() {
	s.text.End()
	if s.pin != nil {
		s.pin.Release()
		s.pin = nil
	}
}

// ReplySegments answers with the segments, and with what head appends in front of them.
func (r *Request) ReplySegments(head []byte, s *Segments) {
	all := *s
	*s = Segments{}
	if !all.pins() {
		var reply Gathered
		all.join(&reply)
		if reply.lost && r.Cmd.Flags&command.Write == 0 {
			r.Fail(ErrOOM)
			return
		}
		reply.Head = head
		reply.Answer(r)
		return
	}
	heap, text := r.Heap, r.NewText(nil)
	r.Host.GatherLater(func(ctx context.Context, reply *Gathered) {
		defer all.End()
		if problem := all.gather(ctx, heap, &text); problem != "" {
			reply.Head = resp.AppendError(nil, problem)
			return
		}
		all.join(reply)
		reply.Head = head
	})
}

func (s *Segments) pins() bool {
	for i := range s.all {
		if s.all[i].pin != nil {
			return true
		}
	}
	return false
}

// gather makes what is to be made, and returns what went wrong, if anything did.
func (s *Segments) gather(ctx context.Context, heap Heap, text *Text) (problem string) {
	for i := range s.all {
		at := &s.all[i]
		if at.pin == nil {
			continue
		}
		var made Gathered
		if problem = gatherSlices(ctx, heap, &made, at.pin, text, at.next); problem == "" && !at.text.Append(heap, at.head()) {
			problem = ErrOOM
		}
		if problem != "" {
			made.End()
			return problem
		}
		at.text.join(&made)
		at.pin.Release()
		at.pin = nil
	}
	return ""
}

// join moves all texts behind what was gathered.
func (s *Segments) join(reply *Gathered) {
	for i := range s.all {
		reply.join(&s.all[i].text)
	}
}

// join moves what another one has gathered behind this, without copying.
func (g *Gathered) join(other *Gathered) {
	for _, p := range other.values {
		p.At += g.size
		g.values = append(g.values, p)
	}
	g.pieces = append(g.pieces, other.pieces...)
	g.size += other.size
	g.lost = g.lost || other.lost
	*other = Gathered{}
	if g.lost {
		g.lose()
	}
}

// Insert puts bytes into a text, in front of what was appended from an index in Bytes on.
func (t *Text) Insert(at int, b []byte) {
	t.Bytes = append(t.Bytes, b...)
	copy(t.Bytes[at+len(b):], t.Bytes[at:])
	copy(t.Bytes[at:], b)
	for i := range t.pins {
		if p := &t.pins[i]; p.At > at {
			p.At += len(b)
		}
	}
}

// Split removes what was appended from an index in Bytes on, and returns it. That stays where it lies: it is valid
// until something is appended to t.
func (t *Text) Split(at int) (rest Text) {
	n := len(t.pins)
	for n > 0 && t.pins[n-1].At > at {
		n--
	}
	rest = Text{Bytes: t.Bytes[at:], engine: t.engine, pins: slices.Clip(t.pins[n:])}
	for i := range rest.pins {
		rest.pins[i].At -= at
		rest.pinned += len(rest.pins[i].Bytes)
	}
	t.Bytes, t.pins, t.pinned = t.Bytes[:at], t.pins[:n], t.pinned-rest.pinned
	return rest
}

// Truncate removes what was appended from an index in Bytes on.
func (t *Text) Truncate(at int) {
	n := len(t.pins)
	for ; n > 0 && t.pins[n-1].At > at; n-- {
		p := &t.pins[n-1]
		t.pinned -= len(p.Bytes)
		p.Release()
		*p = Pinned{}
	}
	t.Bytes, t.pins = t.Bytes[:at], t.pins[:n]
}
