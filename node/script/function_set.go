package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
)

// Bounds of a FunctionSet. A library is as long as a script may be: command.MaxScript.
const (
	MaxLibraries     = 256
	MaxFunctions     = 2048    // of all libraries
	MaxLibrariesSize = 4 << 20 // of their encodings, in bytes
)

// ErrMemory is the error of ReadDump when there is no memory for the libraries.
var ErrMemory = errors.New("no memory for the libraries")

var errLongLibrary = errors.New("ERR the library is longer than 1 MiB")

var errManyFunctions = errors.New("ERR there are too many functions: a cluster can have 256 libraries with 2048 functions and 4 MiB")

// A FunctionSet is the libraries of a cluster, and their functions. It never changes; nil is empty.
type FunctionSet struct {
	libraries []*FunctionLibrary // by name
	functions map[string]*Function
}

// NewFunctionSet makes a set. Of libraries with the same name, or functions, one counts.
func NewFunctionSet(libraries []*FunctionLibrary) *FunctionSet {
	s := &FunctionSet{libraries: slices.Clone(libraries), functions: make(map[string]*Function)}
	slices.SortFunc(s.libraries, func(a, b *FunctionLibrary) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range s.libraries {
		for _, f := range l.Functions {
			s.functions[strings.ToLower(f.Name)] = f
		}
	}
	return s
}

// Libraries are those of the set, by name. Nobody changes the list.
func (s *FunctionSet) Libraries() []*FunctionLibrary {
	if s == nil {
		return nil
	}
	return s.libraries
}

// Library returns the library of that name, or nil.
func (s *FunctionSet) Library(name string) *FunctionLibrary {
	for _, l := range s.Libraries() {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Function returns the function of that name, in lower or upper case, or nil. It keeps nothing of name.
func (s *FunctionSet) Function(name []byte) *Function {
	if s == nil || len(name) > maxName {
		return nil
	}
	var lower [maxName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return s.functions[string(lower[:len(name)])]
}

// Count is how many functions there are.
func (s *FunctionSet) Count() int {
	if s == nil {
		return 0
	}
	return len(s.functions)
}

// Join returns the set with more libraries, which have different names. Without replace, none of them may be there.
// The error is the text of the reply.
func (s *FunctionSet) Join(more []*FunctionLibrary, replace bool) (*FunctionSet, error) {
	all := make(map[string]*FunctionLibrary)
	for _, l := range s.Libraries() {
		all[l.Name] = l
	}
	for _, l := range more {
		if all[l.Name] != nil && !replace {
			return nil, fmt.Errorf("ERR Library %s already exists", l.Name)
		}
		delete(all, l.Name)
	}
	taken, size := make(map[string]bool), 0
	for _, l := range all {
		size += len(l.Code) + int(l.size)
		for _, f := range l.Functions {
			taken[strings.ToLower(f.Name)] = true
		}
	}
	for _, l := range more {
		size += len(l.Code) + int(l.size)
		for _, f := range l.Functions {
			name := strings.ToLower(f.Name)
			if taken[name] {
				return nil, fmt.Errorf("ERR Function %s already exists", f.Name)
			}
			taken[name] = true
		}
		all[l.Name] = l
	}
	if len(all) > MaxLibraries || len(taken) > MaxFunctions || size > MaxLibrariesSize {
		return nil, errManyFunctions
	}
	return NewFunctionSet(slices.Collect(maps.Values(all))), nil
}

// Dump returns the payload of FUNCTION DUMP, which redis-server can read.
func (s *FunctionSet) Dump() []byte {
	codes, size := make([]string, 0, len(s.Libraries())), 0
	for _, l := range s.Libraries() {
		codes = append(codes, l.Code)
		size += len(l.Code)
	}
	return rdb.AppendFunctions(make([]byte, 0, size+64+rdb.MaxHead*len(codes)), codes)
}

// ReadDump returns the code of the libraries in the payload of a FUNCTION DUMP, redis-server's too. It has charge take
// the bytes that they take before it decompresses them. The error is the text of the reply, or ErrMemory.
func ReadDump(payload []byte, charge func(bytes int64) bool) (codes []string, err error) {
	if rdb.Check(payload) != nil {
		return nil, errors.New("ERR DUMP payload version or checksum are wrong")
	}
	libraries, err := rdb.ReadFunctions(payload, MaxLibraries)
	switch {
	case errors.Is(err, rdb.ErrLibrary):
		return nil, errors.New("ERR Failed loading library data")
	case err != nil:
		return nil, fmt.Errorf("ERR %w", err)
	}
	size := 0
	for i := range libraries {
		if libraries[i].Len() > command.MaxScript {
			return nil, errLongLibrary
		}
		size += libraries[i].Len()
	}
	switch {
	case len(libraries) > MaxLibraries || size > MaxLibrariesSize:
		return nil, errManyFunctions
	case !charge(int64(size)):
		return nil, ErrMemory
	}
	for i := range libraries {
		codes = append(codes, string(libraries[i].Append(nil)))
	}
	return codes, nil
}
