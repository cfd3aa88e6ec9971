package rdb

import "errors"

// The codes before a library of functions: that of Redis 7.0, and that of its release candidates.
const (
	opcodeFunction    = 245
	opcodeOldFunction = 246
)

// Errors about the payload of FUNCTION RESTORE.
var (
	ErrNoFunction   = errors.New("given type is not a function")
	ErrOldFunction  = errors.New("Pre-GA function format not supported")
	ErrLibrary      = errors.New("failed loading library data")
	ErrLongLibrary  = errors.New("the library is longer than 1 MiB")
	ErrManyFunction = errors.New("the payload has too many libraries")
)

// AppendFunctions appends the payload of FUNCTION DUMP for libraries of that code.
func AppendFunctions(dst []byte, libraries []string) []byte {
	begun := len(dst)
	for _, code := range libraries {
		dst = append(appendLength(append(dst, opcodeFunction), uint64(len(code))), code...)
	}
	return AppendFoot(dst, Sum(0, dst[begun:]))
}

// ReadFunctions returns the code of the libraries in a payload that Check has accepted: up to most of them, each up
// to longest bytes.
func ReadFunctions(payload []byte, most, longest int) (libraries []string, err error) {
	r := reader(payload[:len(payload)-FootSize])
	for len(r) > 0 {
		switch kind, _ := r.next(1); kind[0] {
		case opcodeFunction:
		case opcodeOldFunction:
			return nil, ErrOldFunction
		default:
			return nil, ErrNoFunction
		}
		s, err := r.string()
		switch {
		case err != nil:
			return nil, ErrLibrary
		case s.Len() > longest:
			return nil, ErrLongLibrary
		case len(libraries) == most:
			return nil, ErrManyFunction
		}
		libraries = append(libraries, string(s.Append(make([]byte, 0, s.Len()))))
	}
	return libraries, nil
}
