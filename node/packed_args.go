package node

import (
	"strings"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// packedArgs are the arguments of a command in one string, each behind its length. They take little memory, and
// the keys are parts of it.
type packedArgs string

// The length of an argument is a byte, or longArg and two bytes.
const longArg = 0xff

// packedSize returns how many bytes arguments take when they are packed.
func packedSize(args [][]byte) (size int) {
	for _, arg := range args {
		if size += 1 + len(arg); len(arg) >= longArg {
			size += 2
		}
	}
	return size
}

// packArgs packs arguments. Each has less than 64 KiB.
func packArgs(args [][]byte) packedArgs {
	var b strings.Builder
	b.Grow(packedSize(args))
	for _, arg := range args {
		if n := len(arg); n < longArg {
			b.WriteByte(byte(n))
		} else {
			b.Write([]byte{longArg, byte(n >> 8), byte(n)})
		}
		b.Write(arg)
	}
	return packedArgs(b.String())
}

// nextArg takes the first argument off packed ones. The results are views.
func nextArg[T packedArgs | []byte](packed T) (arg, rest T) {
	n, at := int(packed[0]), 1
	if n == longArg {
		n, at = int(packed[1])<<8|int(packed[2]), 3
	}
	return packed[at : at+n], packed[at+n:]
}

// unpackArgs appends packed arguments to args, as views.
func unpackArgs(args [][]byte, packed []byte) [][]byte {
	for len(packed) > 0 {
		var arg []byte
		arg, packed = nextArg(packed)
		args = append(args, arg[:len(arg):len(arg)])
	}
	return args
}

// appendKeys appends where those arguments are that are the keys, which are among them in this order.
func (p packedArgs) appendKeys(parts []engine.Part, keys [][]byte) []engine.Part {
	for rest := p; len(keys) > 0; {
		var arg packedArgs
		if arg, rest = nextArg(rest); string(arg) == string(keys[0]) {
			at := len(p) - len(rest) - len(arg)
			parts, keys = append(parts, engine.Part{At: uint32(at), Len: uint16(len(arg))}), keys[1:]
		}
	}
	return parts
}
