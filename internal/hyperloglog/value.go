package hyperloglog

import (
	"encoding/binary"
	"errors"
)

const (
	indexBits = 14
	registers = 1 << indexBits
	hashBits  = 64 - indexBits // what of a hash is left for the run of zeros

	headerSize = 16
	// DenseSize is how long a dense value is. No function makes a longer one.
	DenseSize = headerSize + registers*registerBits/8
	// MaxSize is the length of the longest value that is none of ErrCorrupt: each of its registers
	// an XZERO of its own.
	MaxSize = headerSize + maxSparseRuns

	maxSparseRuns = 2 * registers
	// maxSparse is from where on values become dense, Redis's hll-sparse-max-bytes.
	maxSparse = 3000
)

// ErrCorrupt is that a value's registers are not 16,384, or not readable.
var ErrCorrupt = errors.New("corrupted HyperLogLog")

// The header.
const (
	magic      = "HYLL"
	encodingAt = 4
	cachedAt   = 8
	staleBit   = 1 << 7 // in the header's last byte

	dense  = 0
	sparse = 1
)

// AppendEmpty appends the value of the empty set, a sparse one.
func AppendEmpty(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, sparse, 0, 0, 0)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	return appendZeros(dst, registers)
}

// Is tells whether the value has the header and length of one.
func Is(value []byte) bool {
	return len(value) >= headerSize && string(value[:encodingAt]) == magic &&
		(value[encodingAt] == sparse || value[encodingAt] == dense && len(value) == DenseSize)
}

// IsDense tells which encoding a value has. A dense one never changes its length.
func IsDense(value []byte) bool { return value[encodingAt] == dense }

// Cached returns the last estimate, if it holds.
func Cached(value []byte) (n int64, ok bool) {
	return int64(binary.LittleEndian.Uint64(value[cachedAt:])), value[headerSize-1]&staleBit == 0
}

// Cache notes the estimate in the value.
func Cache(value []byte, n int64) { binary.LittleEndian.PutUint64(value[cachedAt:], uint64(n)) }

// Invalidate says that the noted estimate does not hold any more.
func Invalidate(value []byte) { value[headerSize-1] |= staleBit }

// Count estimates how many different elements the value has seen, from its registers.
func Count(value []byte) (int64, error) {
	var h histogram
	if IsDense(value) {
		h.addDense(value[headerSize:])
	} else if !h.addSparse(value[headerSize:]) {
		return 0, ErrCorrupt
	}
	return h.estimate(), nil
}

// Changes tells whether Add of the element would change a register of a dense value.
func Changes(value, element []byte) bool {
	i, n := place(element)
	return denseRegister(value[headerSize:], i) < n
}

// Add adds an element to the value, in its place while there is room behind it, like append: a
// capacity of DenseSize always suffices for a value that Redis made. changed: a register has. The
// noted estimate is left alone. After an error the value is of no use.
func Add(value, element []byte) (_ []byte, changed bool, err error) {
	i, n := place(element)
	w := writer{value: value}
	changed, err = w.set(i, n)
	return w.value, changed, err
}

// Promote makes the value dense, if it is not. Memory is used as by Add.
func Promote(value []byte) ([]byte, error) {
	if IsDense(value) {
		return value, nil
	}
	var r Registers
	if err := r.Merge(value); err != nil {
		return value, err
	}
	header := [headerSize]byte(value)
	header[encodingAt] = dense
	value = append(value[:0], header[:]...)
	return r.appendDense(value), nil
}

// place returns the element's register, and what it is to be at least.
func place(element []byte) (i int, n uint8) {
	h := hash(element)
	return int(h & (registers - 1)), zeros(h >> indexBits)
}
