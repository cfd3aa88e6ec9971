package hyperloglog

import (
	"encoding/binary"
	"errors"
)

const (
	indexBits = 14
	registers = 1 << indexBits
	hashBits  = 64 - indexBits // the rest of a hash, for the run of zeros

	headerSize = 16
	// DenseSize is the length of a dense value in bytes. No function makes a longer one.
	DenseSize = headerSize + registers*registerBits/8
	// MaxSize is the length of the longest value that is not corrupt: each of its registers is an
	// XZERO of its own.
	MaxSize = headerSize + maxSparseRuns

	maxSparseRuns = 2 * registers
	// maxSparse is the longest sparse encoding in bytes, Redis's hll-sparse-max-bytes. Longer ones
	// become dense.
	maxSparse = 3000
)

// ErrCorrupt says that a value does not have 16,384 registers, or that they cannot be read.
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

// Is reports whether the value has the header and length of a HyperLogLog.
func Is(value []byte) bool {
	return len(value) >= headerSize && string(value[:encodingAt]) == magic &&
		(value[encodingAt] == sparse || value[encodingAt] == dense && len(value) == DenseSize)
}

// IsDense reports whether a value is dense. A dense value never changes its length.
func IsDense(value []byte) bool { return value[encodingAt] == dense }

// Cached returns the stored estimate; ok is false if the value has changed since.
func Cached(value []byte) (n int64, ok bool) {
	return int64(binary.LittleEndian.Uint64(value[cachedAt:])), value[headerSize-1]&staleBit == 0
}

// Cache stores the estimate in the value.
func Cache(value []byte, n int64) { binary.LittleEndian.PutUint64(value[cachedAt:], uint64(n)) }

// Invalidate marks the stored estimate as outdated.
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

// Changes reports whether Add of the element would change a register of a dense value.
func Changes(value, element []byte) bool {
	i, n := place(element)
	return denseRegister(value[headerSize:], i) < n
}

// Add adds an element to the value. Like append, it works in place while there is room behind the
// value: a capacity of DenseSize always suffices for a value that Redis made. changed reports
// whether a register has changed. Add does not touch the stored estimate. After an error the value
// must not be used.
func Add(value, element []byte) (_ []byte, changed bool, err error) {
	i, n := place(element)
	w := writer{value: value}
	changed, err = w.set(i, n)
	return w.value, changed, err
}

// Promote makes the value dense, if it is not yet. It uses memory as Add does.
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

// place returns the element's register, and the least value that the register must have.
func place(element []byte) (i int, n uint8) {
	h := hash(element)
	return int(h & (registers - 1)), zeros(h >> indexBits)
}
