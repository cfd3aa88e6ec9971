package sortedsets

// Scored is a member and its score.
type Scored struct {
	Score  float64
	Hash   float64 // of a place: the score that the member has in the searched set
	member []byte
	place  int // how many were added before
}

// listPiece is how many entries a piece of a list has: to add one copies no more than a piece.
const listPiece = 512

// scoredList is a list in pieces, of which the first one grows and the others are whole.
type scoredList struct {
	pieces [][]Scored
	length int
}

func (l *scoredList) at(i int) *Scored { return &l.pieces[i/listPiece][i%listPiece] }

func (l *scoredList) add(s Scored) {
	if i := l.length / listPiece; i == len(l.pieces) {
		var piece []Scored
		if i > 0 {
			piece = make([]Scored, 0, listPiece)
		}
		l.pieces = append(l.pieces, piece)
	}
	last := &l.pieces[len(l.pieces)-1]
	*last = append(*last, s)
	l.length++
}
