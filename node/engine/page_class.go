package engine

import "math/bits"

// classes is the ladder of cell sizes: every multiple of the grain up to 64 grains, then sixteen
// steps a doubling up to a whole page. A cell wastes at most a sixteenth, a thirty-second on
// average; a few for each page are as large as they can be, and their classes are one, so that
// nothing is left over at the page's end.
type classes struct {
	grainShift uint8
	pageUnits  uint32             // size of a page in grains
	units      [numClasses]uint32 // size of a cell in grains, which is the distance of two handles
	perPage    [numClasses]uint32 // cells in a page
	smallest   [numClasses]uint8  // the class that stands for all with as many cells in a page
}

const (
	linearClasses = 64
	stepsPerTwo   = 16
	stepBits      = 5                             // of the number of a step, which is stepsPerTwo or more
	stepShift     = 2                             // linearClasses are 1<<stepShift times stepsPerTwo
	numClasses    = linearClasses + 8*stepsPerTwo // 128 KiB in grains of 8
)

func makeClasses(pageSize int, grainShift uint8) classes {
	pageUnits := uint32(pageSize >> grainShift)
	c := classes{grainShift: grainShift, pageUnits: pageUnits}
	for i := range numClasses {
		c.perPage[i] = pageUnits / classUnits(i)
		c.smallest[i] = uint8(i)
		if i > 0 && c.perPage[i] == c.perPage[i-1] {
			c.smallest[i] = c.smallest[i-1]
		}
		if c.perPage[i] > 0 {
			c.units[i] = pageUnits / c.perPage[i]
		}
	}
	return c
}

func classUnits(class int) uint32 {
	if class < linearClasses {
		return uint32(class) + 1
	}
	doubling, step := (class-linearClasses)/stepsPerTwo, (class-linearClasses)%stepsPerTwo
	return uint32(stepsPerTwo+step+1) << (doubling + stepShift)
}

// of is the class of the smallest cell that holds n > 0 bytes.
func (c *classes) of(n int) int {
	last := uint32(n-1) >> c.grainShift // the grain that the last byte falls into
	if last < linearClasses {
		return int(last)
	}
	shift := bits.Len32(last) - stepBits
	class := linearClasses + (shift-stepShift)*stepsPerTwo + int(last>>shift) - stepsPerTwo
	if below := c.smallest[class-1]; last < c.units[below] { // which is larger than its step
		return int(below)
	}
	return int(c.smallest[class])
}

func (c *classes) size(class int) int { return int(c.units[class]) << c.grainShift }

// unitsFor is how many grains n bytes take.
func (c *classes) unitsFor(n int) uint32 { return uint32((n-1)>>c.grainShift) + 1 }
