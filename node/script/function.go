package script

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/lua"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A FunctionLibrary is what FUNCTION LOAD loads: code that registers functions when it is executed. Nobody changes it
// once it is in a FunctionSet.
type FunctionLibrary struct {
	Name      string
	Code      string      // with its first line
	Functions []*Function // by name, as strings.ToLower makes it

	size  int64 // of names and descriptions
	proto *lua.Prototype
}

// A Function is one that a library has registered.
type Function struct {
	Name        string
	Description string
	Described   bool
	Flags       Flags

	script *Script
}

const (
	// maxName is the longest name of a library or a function, and maxDescription the longest description, in bytes.
	maxName, maxDescription = 256, 4 << 10
	// maxFunctions is how many functions a library has at most.
	maxFunctions = MaxFunctions
	// libraryChunk is how messages name a library.
	libraryChunk = "@user_function"
)

// Errors of FUNCTION LOAD and RESTORE, as texts of replies.
var (
	errNoMetadata   = errors.New("ERR Missing library metadata")
	errMetadata     = errors.New("ERR Invalid library metadata")
	errNamedTwice   = errors.New("ERR Invalid metadata value, name argument was given multiple times")
	errUnnamed      = errors.New("ERR Library name was not given")
	errName         = errors.New("ERR " + badName)
	errNoFunctions  = errors.New("ERR No functions registered")
	errLongName     = errors.New("ERR the name of a library has at most 256 bytes")
	errLibraryValue = errors.New("it is no library")
)

const badName = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"

// ParseLibrary reads the first line of a library. The error is the text of the reply.
func ParseLibrary(code string) (*FunctionLibrary, error) {
	if !strings.HasPrefix(code, "#!") {
		return nil, errNoMetadata
	}
	line, _, found := strings.Cut(code, "\n")
	if !found || len(line) > maxDescription {
		return nil, errMetadata
	}
	words, ok := resp.SplitWords([]byte(line))
	if !ok || len(words) == 0 {
		return nil, errMetadata
	}
	l, named := &FunctionLibrary{Code: code}, false
	for _, w := range words[1:] {
		word := string(w)
		if len(word) < len("name=") || !strings.EqualFold(word[:len("name=")], "name=") {
			return nil, errors.New(cut(oneLine("ERR Invalid metadata value given: " + word)))
		}
		if named {
			return nil, errNamedTwice
		}
		l.Name, named = word[len("name="):], true
	}
	engine := strings.TrimPrefix(string(words[0]), "#!")
	switch {
	case !named:
		return nil, errUnnamed
	case !isName(l.Name):
		return nil, errName
	case len(l.Name) > maxName:
		return nil, errLongName
	case !strings.EqualFold(engine, "lua"):
		return nil, errors.New(cut(oneLine("ERR Engine '" + engine + "' not found")))
	}
	return l, nil
}

// isName reports whether a library or a function may have that name.
func isName(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
		if !letter {
			return false
		}
	}
	return name != ""
}

// Compile compiles the library, unless it is compiled. The error is the text of the reply.
func (l *FunctionLibrary) Compile() (err error) {
	if l.proto != nil {
		return nil
	}
	// The first line is left out, but not its end, so that lines are counted from 1.
	if l.proto, err = lua.Compile(libraryChunk, l.Code[strings.IndexByte(l.Code, '\n'):]); err != nil {
		return errors.New(cut("ERR Error compiling function: " + err.Error()))
	}
	for _, f := range l.Functions {
		f.script = &Script{SHA: f.Name, Body: l.Code, Flags: f.Flags, proto: l.proto, function: f}
	}
	return nil
}

// Forget forgets what Compile has made.
func (l *FunctionLibrary) Forget() { l.proto = nil }

// Size is about how many bytes the library takes.
func (l *FunctionLibrary) Size() int64 {
	size := int64(len(l.Code)) + l.size + int64(len(l.Functions))*400 + 1000
	if l.proto != nil {
		size += int64(l.proto.Size())
	}
	return size
}

// Script is what a Machine runs; nil if the library of the function is not compiled.
func (f *Function) Script() *Script { return f.script }

// insert adds a function in its place. It reports false if there is one of that name.
func (l *FunctionLibrary) insert(f *Function) bool {
	at, found := slices.BinarySearchFunc(l.Functions, f.Name, func(other *Function, name string) int {
		return strings.Compare(strings.ToLower(other.Name), strings.ToLower(name))
	})
	if !found {
		l.Functions = slices.Insert(l.Functions, at, f)
		l.size += int64(len(f.Name) + len(f.Description))
	}
	return !found
}

// libraryFormat is the first byte of an encoded library.
const libraryFormat = 1

// Encode encodes the library and what it has registered, without its name:
//
//	1, number of functions, then (name, flags, 0 | 1 description) of each, code
//
// Numbers are unsigned varints, and a text but the last follows its length.
func (l *FunctionLibrary) Encode() string {
	b := binary.AppendUvarint([]byte{libraryFormat}, uint64(len(l.Functions)))
	for _, f := range l.Functions {
		b = append(appendText(b, f.Name), byte(f.Flags), 0)
		if f.Described {
			b[len(b)-1] = 1
			b = appendText(b, f.Description)
		}
	}
	return string(append(b, l.Code...))
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// DecodeLibrary decodes what Encode has returned for the library of that name. The texts are parts of value.
func DecodeLibrary(name, value string) (*FunctionLibrary, error) {
	if value == "" || value[0] != libraryFormat || !isName(name) {
		return nil, errLibraryValue
	}
	r := textReader{rest: value[1:]}
	l := &FunctionLibrary{Name: name}
	for n := r.number(); n > 0 && r.ok(); n-- {
		f := &Function{Name: r.text(), Flags: Flags(r.byte())}
		if f.Described = r.byte() == 1; f.Described {
			f.Description = r.text()
		}
		if !isName(f.Name) || !l.insert(f) {
			return nil, errLibraryValue
		}
	}
	l.Code = r.rest
	if !r.ok() || !strings.HasPrefix(l.Code, "#!") || !strings.Contains(l.Code, "\n") {
		return nil, errLibraryValue
	}
	return l, nil
}

// textReader reads an encoding. Behind an error it reads nothing more.
type textReader struct {
	rest   string
	failed bool
}

func (r *textReader) ok() bool { return !r.failed }

func (r *textReader) take(n uint64) string {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

func (r *textReader) byte() byte {
	if text := r.take(1); text != "" {
		return text[0]
	}
	return 0
}

func (r *textReader) number() (n uint64) {
	for shift := 0; shift < 63; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.failed = true
	return 0
}

func (r *textReader) text() string { return r.take(r.number()) }
