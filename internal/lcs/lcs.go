package lcs

import "math/bits"

// Pair is two strings of which the longest common subsequence is wanted. Of Redis's table of
// lengths, D[i][j] for the first i bytes of one and the first j of the other, it keeps only where
// neighbours in a row differ, one bit a cell, and makes 64 cells at a time: Hyyrö, "Bit-parallel
// LCS-length computation revisited", 2004. The rows are those of the shorter string.
type Pair struct {
	A, B  []byte
	words int      // of a row
	rows  []uint64 // bit j-1 of row i-1: D[i][j] is one more than D[i][j-1]
}

func (s *Pair) short() []byte {
	if len(s.B) < len(s.A) {
		return s.B
	}
	return s.A
}

func (s *Pair) long() []byte {
	if len(s.B) < len(s.A) {
		return s.A
	}
	return s.B
}

// Steps returns about how many nanoseconds solve takes.
func (s *Pair) Steps() int {
	return len(s.A) + len(s.B) + len(s.A)*len(s.B)/32
}

// Memory returns about how many bytes solve takes.
func (s *Pair) Memory(all bool) int64 {
	row := int64(len(s.long())+63) / 64 * 8
	masks := row * int64(min(len(s.short()), 256))
	if !all {
		return masks + row
	}
	return masks + row*int64(len(s.short())+1)
}

// smallRoom is how many words Solve has without allocating: strings of a few hundred bytes need fewer.
const smallRoom = 256

// Solve returns the length of the longest common subsequence. With all it keeps every row, for
// matches.
func (s *Pair) Solve(all bool) (length int) {
	short, long := s.short(), s.long()
	s.words = (len(long) + 63) / 64
	places, distinct := places(short)
	var small [smallRoom]uint64
	room := small[:]
	if need := (distinct + 1) * s.words; need > len(room) {
		room = make([]uint64, need)
	}
	v, masks := room[:s.words], room[s.words:(distinct+1)*s.words]
	s.mark(masks, &places)
	if all {
		s.rows = make([]uint64, len(short)*s.words)
	}
	for j := range v { // v is the complement of a row
		v[j] = ^uint64(0)
	}
	for i, c := range short {
		mask, carry := masks[int(places[c]-1)*s.words:][:len(v)], uint64(0)
		for j, x := range v {
			u := x & mask[j]
			var sum uint64
			sum, carry = bits.Add64(x, u, carry)
			v[j] = sum | x&^u
		}
		if all {
			row := s.row(i)
			for j, x := range v {
				row[j] = ^x
			}
		}
	}
	for j := range v {
		v[j] = ^v[j]
	}
	return ones(v, len(long))
}

// places numbers the bytes that text has, from 1 on.
func places(text []byte) (places [256]uint16, distinct int) {
	for _, c := range text {
		if places[c] == 0 {
			distinct++
			places[c] = uint16(distinct)
		}
	}
	return places, distinct
}

// mark sets, in the mask of each byte of the shorter string, where the longer one has it.
func (s *Pair) mark(masks []uint64, places *[256]uint16) {
	for j, c := range s.long() {
		if p := int(places[c]); p != 0 {
			masks[(p-1)*s.words+j/64] |= 1 << (j % 64)
		}
	}
}

func (s *Pair) row(i int) []uint64 { return s.rows[i*s.words : (i+1)*s.words] }

// ones returns how many of the first n bits of a row are set: D[i][n].
func ones(row []uint64, n int) (sum int) {
	for _, x := range row[:n/64] {
		sum += bits.OnesCount64(x)
	}
	if n%64 != 0 {
		sum += bits.OnesCount64(row[n/64] << (64 - n%64))
	}
	return sum
}

// Match is a run of bytes that both strings have, from position a of one and b of the other on.
type Match struct{ A, B, Length int }

// path goes from the end of both strings to a beginning.
type path struct {
	*Pair
	i, j        int // in the shorter and in the longer string
	here, above int // D[i][j], D[i-1][j]
}

// rise returns D[i][j] - D[i][j-1].
func (w *path) rise(i int) int {
	if i == 0 {
		return 0
	}
	return int(w.row(i - 1)[(w.j-1)/64] >> ((w.j - 1) % 64) & 1)
}

func (w *path) left() {
	w.here -= w.rise(w.i)
	w.above -= w.rise(w.i - 1)
	w.j--
}

func (w *path) up() {
	w.here, w.above = w.above, 0
	if w.i--; w.i > 1 {
		w.above = ones(w.row(w.i-2), w.j)
	}
}

// Matches returns the runs that make up the longest common subsequence, the last one first. Where
// there is a choice it goes the way that Redis goes. solve(true) must have returned length.
func (s *Pair) Matches(length int) (all []Match) {
	swapped := len(s.B) < len(s.A)
	w := path{Pair: s, i: len(s.short()), j: len(s.long()), here: length}
	if w.i > 1 {
		w.above = ones(s.row(w.i-2), w.j)
	}
	for running := false; w.i > 0 && w.j > 0; {
		same := s.short()[w.i-1] == s.long()[w.j-1]
		switch before := w.here - w.rise(w.i); {
		case same:
			w.left()
			w.up()
			if !running {
				all = append(all, Match{})
			}
			last := &all[len(all)-1]
			last.A, last.B, last.Length = w.i, w.j, last.Length+1
		case before > w.above || before == w.above && !swapped:
			w.left()
		default:
			w.up()
		}
		running = same
	}
	if swapped {
		for i := range all {
			all[i].A, all[i].B = all[i].B, all[i].A
		}
	}
	return all
}
