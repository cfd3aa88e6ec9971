package hyperloglog

import "encoding/binary"

const (
	registerBits = 6
	registerMax  = 1<<registerBits - 1

	// Eight registers are six bytes, which are read and written together.
	groupLen   = 8
	groupBytes = groupLen * registerBits / 8
)

// Registers has all registers of a set, a byte each. The zero value has those of the empty set.
type Registers [registers]uint8

// Merge makes r the registers of the union of r's set and the value's set. After an error r must
// not be used.
func (r *Registers) Merge(value []byte) error {
	if !IsDense(value) {
		return r.mergeSparse(value[headerSize:])
	}
	for i, b := 0, value[headerSize:]; i < registers; i += groupLen {
		word := loadGroup(b)
		b = b[groupBytes:]
		for j := i; j < i+groupLen; j++ {
			r[j] = max(r[j], uint8(word&registerMax))
			word >>= registerBits
		}
	}
	return nil
}

// Count estimates how many different elements there are in the union.
func (r *Registers) Count() int64 {
	var h histogram
	for _, n := range r {
		h[n&registerMax]++
	}
	return h.estimate()
}

// Store sets the registers of value, which must have been merged into r, to those of r. Like Add,
// it works in place while there is room behind the value, and does not touch the stored estimate.
func (r *Registers) Store(value []byte) ([]byte, error) {
	w := writer{value: value}
	for i, n := range r {
		if n == 0 {
			continue
		}
		if _, err := w.set(i, n); err != nil {
			return w.value, err
		}
	}
	return w.value, nil
}

func (r *Registers) appendDense(dst []byte) []byte {
	for i := 0; i < registers; i += groupLen {
		word := uint64(0)
		for j := groupLen - 1; j >= 0; j-- {
			word = word<<registerBits | uint64(r[i+j]&registerMax)
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(word))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(word>>32))
	}
	return dst
}

func loadGroup(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:groupBytes]))<<32
}

// denseRegister reads register i of a dense encoding.
func denseRegister(b []byte, i int) uint8 {
	group := b[i/groupLen*groupBytes:]
	return uint8(loadGroup(group) >> (i % groupLen * registerBits) & registerMax)
}

func setDenseRegister(b []byte, i int, n uint8) {
	group := b[i/groupLen*groupBytes:]
	shift := i % groupLen * registerBits
	word := loadGroup(group)&^(registerMax<<shift) | uint64(n)<<shift
	binary.LittleEndian.PutUint32(group, uint32(word))
	binary.LittleEndian.PutUint16(group[4:], uint16(word>>32))
}
