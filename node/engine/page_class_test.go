package engine

import "testing"

// Every length has the smallest class that it fits in, and a page's end is used where a cell is a
// large part of it.
func TestClasses(t *testing.T) {
	for _, pageSize := range []int{minPageSize, maxPageSize} {
		for _, grainShift := range []uint8{3, 5} {
			c := makeClasses(pageSize, grainShift)
			for n := 1; n <= pageSize/bodiesPerPage+2*wordSize; n++ {
				class := c.of(n)
				size := c.size(class)
				if size < n || class > 0 && int(classUnits(class-1))<<grainShift >= n || class > linearClasses && c.size(class-1) >= n {
					t.Fatalf("%d bytes of pages of %d are in class %d of %d bytes", n, pageSize, class, size)
				}
				if waste := size - n; waste >= 1<<grainShift && waste > n/16 && size < pageSize/(4*stepsPerTwo) {
					t.Fatalf("%d bytes of pages of %d have a cell of %d", n, pageSize, size)
				}
				if left := pageSize - size*int(c.perPage[class]); left > pageSize/16 {
					t.Fatalf("a page of %d has %d bytes left behind its cells of %d", pageSize, left, size)
				}
			}
		}
	}
}
