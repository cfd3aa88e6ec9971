package exec

// MinRate is how many bytes must move between two looks at whoever holds memory that others need:
// a client that sends a large value, or that reads a pinned one.
const MinRate = 16 << 10

// Pace is how fast the holder of some memory goes on. The caller looks at equal intervals. The zero
// Pace is ready to use.
type Pace struct {
	moved  int64 // as of the last look
	looked bool
}

// Look returns how many looks it will take at this pace until the memory is free, and whether the
// holder crawls: less than MinRate has moved since the last look. left is how many bytes are still
// to move, moved how many have moved so far. The first look at a holder returns 0 and false.
func (p *Pace) Look(left, moved int64) (looks int64, crawls bool) {
	came := moved - p.moved
	first := !p.looked || came < 0 // below 0: it is another value
	p.moved, p.looked = moved, true
	switch {
	case first || left == 0:
		return 0, false
	case came < MinRate:
		return 0, true
	}
	return left / came, false
}
