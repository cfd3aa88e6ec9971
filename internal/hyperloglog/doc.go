// Package hyperloglog estimates how many different elements a set has, from a value of at most 12
// KiB, within a standard error of 0.81 %. A value is, byte for byte, the string that Redis 7 keeps
// under a key after the same additions, so that values can be carried from one to the other and
// back. The low 14 bits of an element's hash choose one of 16,384 registers. The register remembers
// the longest run of zeros seen in the rest of such hashes, plus one. The registers' histogram
// gives the estimate (estimate.go). The union of two sets has the greater of each pair of their
// registers.
//
//	byte 0     4          5        8             16
//	     │HYLL │ encoding │ unused │ cardinality │ registers
//
// The cardinality is the last estimate, in little-endian order; its highest bit says that registers
// have changed since. Registers come in two encodings:
//
//   - dense (0): six bits each, the first in the lowest bits of the first byte.
//   - sparse (1): runs of equal registers, from the first to the last. Not more than 3000 bytes,
//     and no register above 32; otherwise the value is promoted, and stays dense for good.
//
// The runs of the sparse encoding:
//
//	00nnnnnn           ZERO   n+1 registers are 0
//	01nnnnnn nnnnnnnn  XZERO  the same for up to 16,384
//	1vvvvvnn           VAL    n+1 registers are v+1
//
// Which of the possible sparse encodings of the same registers a value has depends on the order of
// additions; sparse.go cuts and joins runs as Redis does. Values come from clients, which can SET
// any string. Is reports whether a string can be a value. All other functions accept any string
// that Is accepts, and return ErrCorrupt if its registers do not add up.
package hyperloglog
