// Package tokenlist keeps what waits on a connection under its token. Tokens ascend, so all is sorted as it comes:
//
//	pieces   [3 5 6 … 190] [192 193 … 402] [403 407]
//
// An entry takes 8 bytes, and there may be 100,000. It is found by two binary searches.
package tokenlist

import (
	"slices"
	"sort"
)

// Tokened has a token, which never changes.
type Tokened interface{ Token() uint64 }

// List is a list by token. The zero List is empty.
type List[T Tokened] struct {
	pieces [][]T // none is empty, and no two neighbors fit into half a piece
	length int
}

// most is how many entries a piece has at most.
const most = 128

// Len returns how many entries there are.
func (l *List[T]) Len() int { return l.length }

// Add appends x, whose token is greater than all others.
func (l *List[T]) Add(x T) {
	l.length++
	if last := len(l.pieces) - 1; last >= 0 && len(l.pieces[last]) < most {
		l.pieces[last] = append(l.pieces[last], x)
		return
	}
	l.pieces = append(l.pieces, []T{x})
}

// Last returns the entry with the greatest token. ok is false if the list is empty.
func (l *List[T]) Last() (x T, ok bool) {
	if l.length == 0 {
		return x, false
	}
	p := l.pieces[len(l.pieces)-1]
	return p[len(p)-1], true
}

// From returns the first entry whose token is not less than the given one. ok is false if there is none.
func (l *List[T]) From(token uint64) (x T, ok bool) {
	if i, at := l.find(token); i < len(l.pieces) {
		return l.pieces[i][at], true
	}
	return x, false
}

// Get returns the entry with the token. ok is false if there is none.
func (l *List[T]) Get(token uint64) (x T, ok bool) {
	if first, found := l.From(token); found && first.Token() == token {
		return first, true
	}
	return x, false
}

// Remove removes the entry with the token, if there is one, and returns it.
func (l *List[T]) Remove(token uint64) (x T, ok bool) {
	if x, ok = l.Get(token); !ok {
		return x, false
	}
	if l.length--; l.length == 0 {
		l.pieces = nil
		return x, true
	}
	i, at := l.find(token)
	if l.pieces[i] = slices.Delete(l.pieces[i], at, at+1); len(l.pieces[i]) == 0 {
		l.pieces = slices.Delete(l.pieces, i, i+1)
		return x, true
	}
	l.join(i)
	l.join(i - 1)
	return x, true
}

// find returns where the first entry is whose token is not less than the given one.
func (l *List[T]) find(token uint64) (piece, at int) {
	piece = sort.Search(len(l.pieces), func(i int) bool {
		p := l.pieces[i]
		return p[len(p)-1].Token() >= token
	})
	if piece < len(l.pieces) {
		p := l.pieces[piece]
		at = sort.Search(len(p), func(i int) bool { return p[i].Token() >= token })
	}
	return piece, at
}

// join makes one piece of a piece and the next one, if both are there and it is half full at most.
func (l *List[T]) join(i int) {
	if i < 0 || i+1 >= len(l.pieces) || len(l.pieces[i])+len(l.pieces[i+1]) > most/2 {
		return
	}
	l.pieces[i] = append(l.pieces[i], l.pieces[i+1]...)
	l.pieces = slices.Delete(l.pieces, i+1, i+2)
}
