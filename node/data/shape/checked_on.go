//go:build checked

package shape

import "math/rand/v2"

// Verifies reports whether Verify does anything. It allocates.
const Verifies = true

// Verify walks through the tree and its index after some of the changes, and panics if they do not
// fit together.
func (t *Tree) Verify() {
	if t.Len() > 5000 || rand.IntN(1+t.Len()/8) > 0 {
		return
	}
	if err := t.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
}
