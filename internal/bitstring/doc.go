// Package bitstring counts, finds, reads, writes and combines the bits of byte strings, numbered as
// Redis numbers them: bit 0 is the highest of byte 0. It is a leaf: bytes in, bytes out.
package bitstring
