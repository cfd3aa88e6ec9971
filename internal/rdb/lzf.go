package rdb

// LZF, the format of Marc Lehmann's liblzf: literal bytes, and copies of earlier bytes.
//
//	000nnnnn                    n+1 bytes follow
//	nnnooooo oooooooo           n+2 bytes (n below 7) from o+1 bytes back
//	111ooooo nnnnnnnn oooooooo  n+9 bytes from o+1 bytes back
// A copy may overlap the bytes that it produces: then it repeats them.

const (
	maxLiteral = 1 << 5
	longCopy   = 7
	maxCopy    = 255 + longCopy + 2
)

// piece is one step of decompression: literal bytes or, if there are none, a copy.
type piece struct {
	literal []byte
	length  int
	back    int
}

// nextPiece reads the next piece and removes it from in. ok is false if the piece is cut off.
func nextPiece(in *reader) (p piece, ok bool) {
	b, ok := in.next(1)
	if !ok {
		return p, false
	}
	control := int(b[0])
	if control < maxLiteral {
		p.length = control + 1
		p.literal, ok = in.next(p.length)
		return p, ok
	}
	p.length = control>>5 + 2
	if control>>5 == longCopy {
		if b, ok = in.next(1); !ok {
			return p, false
		}
		p.length += int(b[0])
	}
	if b, ok = in.next(1); !ok {
		return p, false
	}
	p.back = control&(maxLiteral-1)<<8 | int(b[0]) + 1
	return p, true
}

// decompressesTo reports whether in is valid and decompresses to n bytes, without decompressing it.
func decompressesTo(in reader, n int) bool {
	made := 0
	for len(in) > 0 {
		p, ok := nextPiece(&in)
		if !ok || p.back > made || p.length > n-made {
			return false
		}
		made += p.length
	}
	return made == n
}

// decompress writes the decompressed form of in, which decompressesTo must have accepted.
func decompress(to Sink, in reader) error {
	for len(in) > 0 {
		p, _ := nextPiece(&in)
		if p.literal == nil {
			var copied [maxCopy]byte
			p.literal = copied[:p.length]
			made := to.Value()
			n := copy(p.literal, made[len(made)-p.back:])
			for n < p.length {
				n += copy(p.literal[n:], p.literal[:n])
			}
		}
		if err := to.Write(p.literal); err != nil {
			return err
		}
	}
	return nil
}
