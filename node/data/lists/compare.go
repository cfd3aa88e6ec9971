package lists

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// Elements are compared compareBytes at a time, and compareStep bytes count as an element that a run
// looks at: two equal elements of 512 MiB would keep a shard locked for 0.1 s.
const (
	compareBytes = 16 << 10
	compareStep  = 64
)

// searchCost is how many elements the comparison with one of a length counts for, at most.
func searchCost(length int) int { return 1 + length/compareStep }

// comparison compares a string with elements. It is made for the command, and may stop in the middle
// of an element.
type comparison struct {
	element []byte
	same    int // so many bytes of the present element are equal
}

// is looks at an element, and takes from left what that costs. ended is false if that was too much: the
// next run goes on with the same element.
func (c *comparison) is(x shape.Item, left *int) (equal, ended bool) {
	if *left <= 0 {
		return false, false
	}
	*left--
	var number shape.Decimal
	text := x.Text(&number)
	if len(text) != len(c.element) {
		c.same = 0
		return false, true
	}
	for equal = true; equal && c.same < len(text); {
		if *left <= 0 {
			return false, false
		}
		end := min(c.same+compareBytes, len(text))
		equal = bytes.Equal(text[c.same:end], c.element[c.same:end])
		*left -= (end - c.same) / compareStep
		c.same = end
	}
	c.same = 0
	return equal, true
}
