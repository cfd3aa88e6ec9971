package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// Gathered is a reply that is made in several runs, or by a goroutine, before any of it is sent. Its
// text lies outside the Go heap, in pieces that are charged before they are there. What is long of it
// is sent from where it lies:
//
//	runs      ──Take──▶  [ 128 KiB ][ 128 KiB ][ 20 KB ]  ──Answer──▶  pinned, pinned, copied
//	goroutine ─Append─▶
//
// The zero Gathered is empty. Behind Append or Take it needs an End.
type Gathered struct {
	Head []byte // comes first: short, and on the Go heap

	pieces []engine.Staged
	size   int      // bytes in pieces
	values []Pinned // pinned values; At counts the bytes in pieces
	lost   bool     // there was no memory for some of it
}

// minPiece is the length of the shortest piece, in bytes. A piece is as long as all before it, up to
// engine.ReplyPiece, so that at most half of the memory is unused.
const minPiece = 4 << 10

// Empty reports whether nothing was gathered.
func (g *Gathered) Empty() bool {
	return len(g.Head) == 0 && g.size == 0 && len(g.values) == 0 && !g.lost
}

// Append adds text, which is copied. It reports false if there is no memory: then all of the reply is
// lost.
func (g *Gathered) Append(heap Heap, text []byte) (ok bool) {
	for len(text) > 0 && !g.lost {
		n := len(g.pieces)
		if n == 0 || g.pieces[n-1].Left() == 0 {
			size := max(minPiece, g.size, roundUp(len(text)))
			piece, err := heap.StageReply(min(size, engine.ReplyPiece))
			if err != nil {
				g.lose()
				break
			}
			g.pieces, n = append(g.pieces, piece), n+1
		}
		last := &g.pieces[n-1]
		part := text[:min(len(text), last.Left())]
		if last.Write(part) != nil {
			g.lose()
			break
		}
		text = text[len(part):]
		g.size += len(part)
	}
	return !g.lost
}

func roundUp(n int) int { return (n + minPiece - 1) &^ (minPiece - 1) }

// lose frees what was gathered.
func (g *Gathered) lose() {
	g.End()
	g.lost = true
}

// Take moves the reply that begins at r.Out[start], with the pins from r.Pins[firstPin] on, behind
// what was gathered. It reports false if there is no memory: then all of the reply is lost.
func (g *Gathered) Take(r *Request, start, firstPin int) (ok bool) {
	before := g.size
	if !g.Append(r.Heap, r.Out[start:]) {
		r.Undo(start)
		return false
	}
	for i := firstPin; i < len(r.Pins); i++ {
		p := r.Pins[i]
		p.At += before - start
		g.values = append(g.values, p)
		r.pinnedBytes -= len(p.Bytes)
	}
	clear(r.Pins[firstPin:])
	r.Out, r.Pins = r.Out[:start], r.Pins[:firstPin]
	return true
}

// Answer moves the reply to the output. The command was executed, even if its reply is lost.
func (g *Gathered) Answer(r *Request) {
	fate := r.fateOf(g.values)
	switch {
	case fate == isLost:
		g.lose()
		r.failPinned()
		return
	case g.lost:
		r.Fail(ErrReplyLost)
		return
	}
	r.replyText(g.Head)
	at := 0 // in the text
	for len(g.pieces) > 0 {
		piece := &g.pieces[0]
		text := piece.Value()
		end := at + len(text)
		for len(g.values) > 0 && g.values[0].At < end {
			p := g.values[0]
			g.values = g.values[1:]
			r.replyText(text[:p.At-at])
			text, at = text[p.At-at:], p.At
			if fate == isCopied {
				r.replyText(p.Bytes)
				p.Release()
			} else {
				r.Insert(p.Bytes, p.Pin)
			}
		}
		// The last piece is copied: a reply ends in Out, where the next one begins, see Undo.
		if len(text) < PinFrom || len(g.pieces) == 1 {
			r.replyText(text)
			piece.Discard()
		} else {
			r.Insert(text, piece.Pin())
		}
		at, g.pieces = end, g.pieces[1:]
	}
}

// replyText appends a part of a reply.
func (r *Request) replyText(text []byte) {
	if r.Room(len(text)) {
		r.Out = append(r.Out, text...)
	}
}

// End frees what is left of the reply.
func (g *Gathered) End() {
	for i := range g.pieces {
		g.pieces[i].Discard()
	}
	for i := range g.values {
		g.values[i].Release()
	}
	*g = Gathered{}
}
