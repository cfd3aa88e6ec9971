package rdb

import "errors"

// The codes before a library of functions: that of Redis 7.0, and that of its release candidates.
const (
	opcodeFunction    = 245
	opcodeOldFunction = 246
)

// Errors about the payload of FUNCTION RESTORE.
var (
	ErrNoFunction  = errors.New("given type is not a function")
	ErrOldFunction = errors.New("Pre-GA function format not supported")
	ErrLibrary     = errors.New("failed loading library data")
)

// AppendFunctions appends the payload of FUNCTION DUMP for libraries of that code.
func AppendFunctions(dst []byte, libraries []string) []byte {
	begun := len(dst)
	for _, code := range libraries {
		dst = append(appendLength(append(dst, opcodeFunction), uint64(len(code))), code...)
	}
	return AppendFoot(dst, Sum(0, dst[begun:]))
}

// ReadFunctions returns the code of the libraries in a payload that Check has accepted: of one more than most, if there
// are as many.
func ReadFunctions(payload []byte, most int) (libraries []String, err error) {
	r := reader(payload[:len(payload)-FootSize])
	for len(r) > 0 && len(libraries) <= most {
		switch kind, _ := r.next(1); kind[0] {
		case opcodeFunction:
		case opcodeOldFunction:
			return nil, ErrOldFunction
		default:
			return nil, ErrNoFunction
		}
		s, err := r.string()
		if err != nil {
			return nil, ErrLibrary
		}
		libraries = append(libraries, s)
	}
	return libraries, nil
}
