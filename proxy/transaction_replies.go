package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// The replies to the parts of a transaction become one, in the order of its commands.

// Done receives the reply to a part.
func (t *transaction) Done(id int32, reply []byte) {
	n, header, ok := resp.DecodeArray(reply)
	t.refused = t.refused || !isExecuted(reply)
	switch {
	case t.failed != nil:
	case resp.IsError(reply), len(t.parts) == 1 && (n < 0 || reply[0] == '_'): // null: a watched key has changed
		t.failed = append(t.failed, reply...)
	case !t.fits(id, len(reply)):
		t.failed = errRepliesLarge
	case !ok || n != t.parts[id].commands:
		t.failed = errMerge
	default:
		t.parts[id].replies = append([]byte(nil), reply[header:]...)
	}
	n = len(t.parts[id].replies)
	if t.bytes += n; !t.s.gatherFor(t.seq, n) {
		return
	}
	t.done()
}

// fits notes the size of a part's reply, n bytes, and reports whether the replies of all parts stay
// within maxReplies. One reply alone always fits.
func (t *transaction) fits(id int32, n int) bool {
	p := &t.parts[id]
	t.replies += n - p.size
	p.size = n
	return t.replies == n || t.replies <= maxReplies
}

// done counts a finished part. After the last one it delivers the whole reply.
func (t *transaction) done() {
	t.pending--
	if t.pending > 0 || t.s.isClosed() {
		return
	}
	whole := 0
	if t.failed == nil {
		if whole = t.bytes; !t.s.gather(whole) {
			return
		}
		out, ok := t.merge()
		if t.failed = errMerge; ok {
			t.failed = out
		}
		t.parts, t.entries = nil, nil
	}
	t.s.gather(-t.bytes)
	t.s.gathered -= whole // so that its own bytes do not forbid an early reply; charged until it is copied
	if t.s.selecting && t.s.selection.seq == t.seq && !t.refused {
		t.s.selected(true) // whether or not the reply says so
	}
	t.s.reply(t.seq, t.failed)
	t.s.chargeOther()
}

// merge returns the replies to all commands as one array.
func (t *transaction) merge() (out []byte, ok bool) {
	out = resp.AppendArray(nil, len(t.entries))
	for i := range t.entries {
		e := &t.entries[i]
		elements := make([][]byte, len(e.parts))
		for j, p := range e.parts {
			if elements[j], ok = t.parts[p].next(); !ok {
				return nil, false
			}
		}
		switch {
		case len(elements) == 0:
			out = append(out, e.local...)
		case e.partOf == nil:
			out = append(out, elements[0]...)
		default:
			out = e.appendMerged(out, elements)
		}
	}
	for i := range t.parts {
		if len(t.parts[i].replies) > 0 {
			return nil, false
		}
	}
	return out, true
}

// next removes and returns the next element of the part's reply, a view.
func (p *slotPart) next() (element []byte, ok bool) {
	var scan resp.Scanner
	if scan.Scan(p.replies) != resp.Done {
		return nil, false
	}
	element, p.replies = p.replies[:scan.Len()], p.replies[scan.Len():]
	return element, true
}

// appendMerged appends the reply to a command that was divided, from the replies to its parts.
func (e *entry) appendMerged(out []byte, elements [][]byte) []byte {
	f := fan{cmd: e.Cmd, partOf: e.partOf, replies: elements, parts: int32(len(elements))}
	for i, element := range elements {
		if resp.IsError(element) {
			return append(out, element...)
		}
		if !f.merge(int32(i), element) {
			return append(out, errMerge...)
		}
	}
	switch e.Cmd.Merge {
	case command.MergeSum:
		return resp.AppendInt(out, f.sum)
	case command.MergeArray:
		return append(out, f.appendArray(nil)...)
	}
	return resp.AppendSimple(out, "OK")
}
