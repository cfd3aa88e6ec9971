package engine

import "math/bits"

// classes is the ladder of cell sizes: every multiple of the grain up to 16 grains, then eight steps a doubling up to
// a whole page. A cell wastes at most an eighth, a sixteenth on average.
type classes struct {
	grainShift uint8
	units      [numClasses]uint32 // size of a cell in grains, which is the distance of two handles
	perPage    [numClasses]uint32 // cells in a page
}

const (
	linearClasses = 16
	stepsPerTwo   = 8
	numClasses    = linearClasses + 10*stepsPerTwo // 128 KiB in grains of 8
)

func makeClasses(pageSize int, grainShift uint8) classes {
	c := classes{grainShift: grainShift}
	pageUnits := uint32(pageSize >> grainShift)
	for i := range numClasses {
		c.units[i] = classUnits(i)
		c.perPage[i] = pageUnits / c.units[i]
	}
	return c
}

func classUnits(class int) uint32 {
	if class < linearClasses {
		return uint32(class) + 1
	}
	doubling, step := (class-linearClasses)/stepsPerTwo, (class-linearClasses)%stepsPerTwo
	return uint32(stepsPerTwo+step+1) << (doubling + 1)
}

// of is the class of the smallest cell that holds n > 0 bytes.
func (c *classes) of(n int) int {
	last := uint32(n-1) >> c.grainShift // the grain that the last byte falls into
	if last < linearClasses {
		return int(last)
	}
	shift := bits.Len32(last) - 4
	return linearClasses + (shift-1)*stepsPerTwo + int(last>>shift) - stepsPerTwo
}

func (c *classes) size(class int) int { return int(c.units[class]) << c.grainShift }
