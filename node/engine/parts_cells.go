package engine

// Part is a view of a part. It has at least as many bytes as Add or Resize asked for (all of its
// cell); a part too big for a cell has exactly that many. It is not to be changed. nil: the plane
// has no such part.
func (v Parts) Part(plane, number int) []byte {
	s := v.t.s
	ref := s.cells.cellOf(&v.head().planes[plane], uint32(number))
	if ref == 0 {
		return nil
	}
	return s.cells.partBytes(ref)
}

// SizeOf is what Reserve and Add are asked for, so that the new part is as long as this one: a part
// may be longer than was asked for, and its type may use all of it. 0: the plane has no such part.
func (v Parts) SizeOf(plane, number int) int {
	s := v.t.s
	part := v.Part(plane, number)
	if part == nil {
		return 0
	}
	ref := *s.cells.partAt(&v.head().planes[plane], uint32(number))
	if s.cells.partWord(ref).away() {
		return len(part)
	}
	class := int(s.e.pool.pages[s.cells.pageOf(ref)].class)
	if class == 0 {
		return 1
	}
	return max(1, s.e.classes.size(class-1)+1-partHeadSize)
}

// CellOf is how many bytes of a part its cell holds: all of them, unless the part is too big for a cell.
// The part itself is not read.
func (v Parts) CellOf(plane, number int) int {
	c := v.t.s.cells
	return c.partSize(c.cellOf(&v.head().planes[plane], uint32(number))) - partHeadSize
}

// Edit is Part for a caller that changes the part. nil also if the part is too big for a cell and
// pinned: Resize gives it another extent.
func (v Parts) Edit(plane, number int) []byte {
	v.save(plane, uint32(number))
	s := v.t.s
	ref := s.cells.cellOf(&v.head().planes[plane], uint32(number))
	if ref == 0 || s.cells.partWord(ref).away() && s.e.large.isShared(*s.cells.second(ref)) {
		return nil
	}
	return s.cells.partBytes(ref)
}

// partBytes is what the part in the cell has.
func (c *cells) partBytes(ref handle) []byte {
	if w := c.partWord(ref); w.away() {
		return c.e.large.bytes(*c.second(ref), int(*c.third(ref)))
	}
	return c.view(ref, partHeadSize, c.partSize(ref)-partHeadSize)
}

func (c *cells) partWord(ref handle) partWord { return partWord(*c.word(ref)) }

// partSize is how long the part's cell is.
func (c *cells) partSize(ref handle) int {
	return c.e.classes.size(int(c.e.pool.pages[c.pageOf(ref)].class))
}

// maxPart is how many bytes a part can have that is not in an extent.
func (e *Engine) maxPart() int { return e.cells.maxInline - partHeadSize }

// Add adds a part of at least n bytes to a plane, up to MaxValueLen; their content is undefined.
// ErrMemory: Reserve was not called for it; nothing has changed.
func (v Parts) Add(plane, n int) (number int, part []byte, err error) {
	s := v.t.s
	if n > s.e.maxPart() {
		return v.addAway(plane, n)
	}
	ref := s.values.takePart(partHeadSize + n)
	if ref == 0 {
		return 0, nil, ErrMemory
	}
	number, err = v.place(plane, ref, 0)
	if err != nil {
		return 0, nil, err
	}
	return number, s.cells.partBytes(ref), nil
}

// addAway adds a part in an extent that was reserved.
func (v Parts) addAway(plane, n int) (number int, part []byte, err error) {
	s := v.t.s
	off, ok := s.values.unstash(n)
	if !ok {
		return 0, nil, ErrMemory
	}
	ref := s.values.takePart(awaySize)
	if ref != 0 {
		*s.cells.second(ref), *s.cells.third(ref) = off, uint64(n)
		number, err = v.place(plane, ref, awayBit)
	}
	if ref == 0 || err != nil {
		s.values.stash = append(s.values.stash, stashed{off, n})
		return 0, nil, ErrMemory
	}
	v.charge(largeCost(n))
	return number, s.cells.partBytes(ref), nil
}

// AddStaged is Add of a staged value, which is complete, with an empty key. Unless it fails, st is
// ended.
func (v Parts) AddStaged(plane int, st *Staged) (number int, err error) {
	if st.Left() > 0 || st.keyLen > 0 {
		panic("BUG: a staged part is not complete, or has a key")
	}
	s := v.t.s
	ref := s.values.takePart(awaySize)
	if ref == 0 {
		return 0, ErrMemory
	}
	*s.cells.second(ref), *s.cells.third(ref) = st.off, uint64(st.valueLen)
	if number, err = v.place(plane, ref, awayBit); err != nil {
		return 0, err
	}
	v.charge(largeCost(st.valueLen))
	st.end()
	return number, s.e.large.leave()
}

// place gives the part in the cell a number, and takes its bytes into account. The cell is freed if
// there is no memory for that.
func (v Parts) place(plane int, ref handle, flags partWord) (number int, err error) {
	s := v.t.s
	n, at := v.takeNumber(plane)
	if at == nil {
		s.slabs.put(ref)
		return 0, ErrMemory
	}
	v.save(plane, n)
	*s.cells.word(ref) = uint64(makePartWord(v.at, plane, 0, n) | flags)
	*at = ref
	v.head().planes[plane].parts++
	v.charge(int64(s.cells.partSize(ref)))
	return int(n), nil
}

// charge notes that the value has n bytes more.
func (v Parts) charge(n int64) {
	v.head().bytes += n
	v.t.s.sums.Parts += n
}

// Resize gives a part at least n bytes, and returns them. The old bytes stay as far as they fit;
// new bytes are undefined. ErrMemory: Reserve was not called for a part of n bytes; nothing has
// changed.
func (v Parts) Resize(plane, number, n int) ([]byte, error) {
	s := v.t.s
	v.save(plane, uint32(number))
	at := s.cells.partAt(&v.head().planes[plane], uint32(number))
	from := *at
	if n > s.e.maxPart() || s.cells.partWord(from).away() {
		return v.resizeAway(plane, at, n)
	}
	if s.e.classes.of(partHeadSize+n) == int(s.e.pool.pages[s.cells.pageOf(from)].class) {
		return s.cells.partBytes(from), nil
	}
	to := s.values.takePart(partHeadSize + n)
	if to == 0 {
		return nil, ErrMemory
	}
	size := s.cells.partSize(to)
	copy(s.cells.view(to, 0, size), s.cells.view(from, 0, s.cells.partSize(from)))
	v.charge(int64(size - s.cells.partSize(from)))
	*at = to
	s.slabs.put(from)
	return s.cells.partBytes(to), nil
}

// resizeAway is Resize of a part that is in an extent, or will be: it becomes another one under its
// number.
func (v Parts) resizeAway(plane int, at *handle, n int) ([]byte, error) {
	s := v.t.s
	from, number := *at, s.cells.partWord(*at).number()
	size, flags, off := partHeadSize+n, partWord(0), uint64(0)
	if n > s.e.maxPart() {
		var ok bool
		if off, ok = s.values.unstash(n); !ok {
			return nil, ErrMemory
		}
		size, flags = awaySize, awayBit
	}
	to := s.values.takePart(size)
	if to == 0 {
		if flags != 0 {
			s.values.stash = append(s.values.stash, stashed{off, n})
		}
		return nil, ErrMemory
	}
	*s.cells.word(to) = uint64(makePartWord(v.at, plane, 0, number) | flags)
	bytes := int64(s.cells.partSize(to))
	if flags != 0 {
		*s.cells.second(to), *s.cells.third(to) = off, uint64(n)
		bytes += largeCost(n)
	}
	copy(s.cells.partBytes(to), s.cells.partBytes(from))
	*at = to
	v.charge(bytes - s.values.freePart(from))
	return s.cells.partBytes(to), nil
}

// Free removes a part. Its number is free for Add, at once or later; if it was the highest, Len
// falls.
func (v Parts) Free(plane, number int) {
	s := v.t.s
	v.save(plane, uint32(number))
	p := &v.head().planes[plane]
	at := s.cells.partAt(p, uint32(number))
	ref := *at
	*at = 0
	p.parts--
	v.charge(-s.values.freePart(ref))
	v.trimNumbers(p)
}

// freePart gives back a part's cell, and its extent, and returns how many bytes they had.
func (v *values) freePart(ref handle) (bytes int64) {
	bytes = int64(v.s.cells.partSize(ref))
	if v.s.cells.partWord(ref).away() {
		bytes += largeCost(int(*v.s.cells.third(ref)))
		if v.s.e.large.abandon(*v.s.cells.second(ref)) {
			v.s.gains++
		}
	}
	v.s.slabs.put(ref)
	return bytes
}

// Pin pins a part that is too big for a cell. It returns false if the part is in a cell: the caller
// copies it then.
func (v Parts) Pin(plane, number int) (Pin, bool) {
	s := v.t.s
	ref := *s.cells.partAt(&v.head().planes[plane], uint32(number))
	if !s.cells.partWord(ref).away() {
		return Pin{}, false
	}
	return s.e.large.pin(*s.cells.second(ref), 0, int(*s.cells.third(ref))), true
}
