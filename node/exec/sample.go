package exec

import "math/rand/v2"

// Sample chooses some elements in one pass, each choice of as many with the same probability (Knuth
// 3.4.2, algorithm S).
type Sample struct {
	Left int // elements that the pass has still to come to
	Want int
}

// Takes reports whether the next element is chosen.
func (x *Sample) Takes() bool {
	takes := x.Want > 0 && rand.IntN(max(x.Left, x.Want)) < x.Want
	x.Left--
	if takes {
		x.Want--
	}
	return takes
}
