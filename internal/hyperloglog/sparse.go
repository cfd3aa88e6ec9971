package hyperloglog

const (
	maxZero   = 1 << 6
	maxValRun = 1 << 2
	maxVal    = 1 << 5
	xzeroBit  = 1 << 6
	valBit    = 1 << 7

	joinReach = 5 // how many runs join looks at after a change
	maxCut    = 5 // bytes of the longest runs that can replace one run: XZERO VAL XZERO
)

// run is some registers of the same value, as encoded.
type run struct {
	size   int // bytes of the encoding; 0: cut off
	length int // registers
	value  uint8
}

// readRun reads the run at the beginning of b, which is not empty.
func readRun(b []byte) run {
	c := b[0]
	switch {
	case c&valBit != 0:
		return run{1, int(c&(maxValRun-1)) + 1, c&^valBit>>2 + 1}
	case c&xzeroBit == 0:
		return run{1, int(c) + 1, 0}
	case len(b) < 2:
		return run{}
	}
	return run{2, (int(c&^xzeroBit)<<8 | int(b[1])) + 1, 0}
}

// appendZeros appends the shortest run of n zeros, nothing for none.
func appendZeros(dst []byte, n int) []byte {
	switch {
	case n == 0:
		return dst
	case n <= maxZero:
		return append(dst, byte(n-1))
	}
	return append(dst, xzeroBit|byte((n-1)>>8), byte(n-1))
}

// appendVal appends a run of n registers, up to maxValRun, nothing for none.
func appendVal(dst []byte, value uint8, n int) []byte {
	if n == 0 {
		return dst
	}
	return append(dst, valBit|(value-1)<<2|byte(n-1))
}

func (r *Registers) mergeSparse(b []byte) error {
	if len(b) > maxSparseRuns {
		return ErrCorrupt
	}
	i := 0
	for len(b) > 0 {
		run := readRun(b)
		if run.size == 0 {
			return ErrCorrupt
		}
		if run.value > 0 {
			if run.length > registers-i {
				break // Redis accepts the value if the others were enough
			}
			for j := i; j < i+run.length; j++ {
				r[j] = max(r[j], run.value)
			}
		}
		i += run.length
		b = b[run.size:]
	}
	if i != registers {
		return ErrCorrupt
	}
	return nil
}

// writer sets registers of a value.
type writer struct {
	value []byte
	// A run of a sparse value before the one that was last changed, and its first register. When
	// registers are set in ascending order, the search for the next begins here instead of at the
	// first: a merge of values of 3000 bytes would take milliseconds otherwise.
	at, first int
}

// set makes register i at least n.
func (w *writer) set(i int, n uint8) (changed bool, err error) {
	if IsDense(w.value) {
		b := w.value[headerSize:]
		if denseRegister(b, i) >= n {
			return false, nil
		}
		setDenseRegister(b, i, n)
		return true, nil
	}
	if n > maxVal {
		return true, w.promote(i, n)
	}
	p, err := w.find(i)
	if err != nil || p.value >= n {
		return false, err
	}
	if !w.cut(&p, i, n) {
		return true, w.promote(i, n)
	}
	w.join()
	return true, nil
}

func (w *writer) promote(i int, n uint8) error {
	value, err := Promote(w.value)
	if err != nil {
		return err
	}
	w.value = value
	setDenseRegister(value[headerSize:], i, n)
	return nil
}

// found is the run that has a register.
type found struct {
	run
	at, first int
}

// find finds the run of register i. Afterwards w.at is the run before it, or the first run.
func (w *writer) find(i int) (found, error) {
	if w.at == 0 || i < w.first {
		w.at, w.first = headerSize, 0
	}
	p := found{at: w.at, first: w.first}
	for p.at < len(w.value) {
		p.run = readRun(w.value[p.at:])
		switch {
		case p.size == 0:
			return p, ErrCorrupt
		case i >= p.first+p.length:
			w.at, w.first = p.at, p.first
			p.at += p.size
			p.first += p.length
		case p.at == w.at && p.at > headerSize:
			w.at = 0 // start over, because w.at must be the run before this one
			return w.find(i)
		default:
			return p, nil
		}
	}
	return p, ErrCorrupt
}

// cut splits the run p so that register i has the value n. It returns false if the encoding would
// become too long.
func (w *writer) cut(p *found, i int, n uint8) bool {
	var buf [maxCut]byte
	before, after := i-p.first, p.first+p.length-1-i
	runs := buf[:0]
	if p.value > 0 {
		runs = appendVal(runs, p.value, before)
		runs = appendVal(runs, n, 1)
		runs = appendVal(runs, p.value, after)
	} else {
		runs = appendZeros(runs, before)
		runs = appendVal(runs, n, 1)
		runs = appendZeros(runs, after)
	}
	longer := len(runs) - p.size
	if longer > 0 && len(w.value)+longer > maxSparse {
		return false
	}
	w.replace(p.at, p.size, runs)
	return true
}

// replace replaces size bytes at at by others.
func (w *writer) replace(at, size int, others []byte) {
	end := len(w.value)
	if longer := len(others) - size; longer > 0 {
		var more [maxCut]byte
		w.value = append(w.value, more[:longer]...)
	}
	n := copy(w.value[at+len(others):], w.value[at+size:end])
	w.value = w.value[:at+len(others)+n]
	copy(w.value[at:], others)
}

// join joins neighbours with the same value among the few runs from w.at on.
func (w *writer) join() {
	at := w.at
	for range joinReach {
		if at >= len(w.value) {
			return
		}
		here := readRun(w.value[at:])
		if here.size == 0 {
			return
		}
		if here.value > 0 && at+1 < len(w.value) {
			next := readRun(w.value[at+1:])
			if length := here.length + next.length; next.value == here.value && length <= maxValRun {
				var one [1]byte
				w.replace(at, 2, appendVal(one[:0], here.value, length))
				continue // the next run may have the same value too
			}
		}
		at += here.size
	}
}
