package ring

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// SettingsLevel is the lowest level whose tables name settings.
const SettingsLevel = 1

// FunctionPrefix begins the names of libraries of functions in a settings document. A library is never empty: a change
// of such a value to "" removes it.
const FunctionPrefix = "function/"

// ErrSettingsChanged is the error of a change that was made for another document than the present one.
var ErrSettingsChanged = errors.New("the settings have changed meanwhile")

// MaxSettingsBytes bounds the encoding of a settings document, in bytes.
const MaxSettingsBytes = 16 << 20

// SettingsID names a settings document.
type SettingsID struct {
	Version uint64 // counts the documents along a lineage, 0: there is none
	Hash    [32]byte
}

// Settings is a document of names and values that hold for the whole cluster beside the table, such
// as "config/timeout". The coordinator issues documents, and the table names the current one; a
// member that has another fetches it. A build keeps names that it does not know and ignores them. A
// document is immutable; nil is the empty document, which no table names.
type Settings struct {
	id     SettingsID
	values map[string]string // documents that follow on each other share them, and nodes their libraries of functions
	size   int               // of the encoding, in bytes
}

const (
	settingsMagic   = "DLS"
	settingsVersion = 1
)

// ID returns the document's name: its version, and the SHA-256 of its encoding.
func (s *Settings) ID() SettingsID {
	if s == nil {
		return SettingsID{}
	}
	return s.id
}

// Get returns the value of name; set is false if the document has none.
func (s *Settings) Get(name string) (value string, set bool) {
	if s == nil {
		return "", false
	}
	value, set = s.values[name]
	return value, set
}

// Libraries are the names, without FunctionPrefix, and values of the libraries of functions, in no order.
func (s *Settings) Libraries() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if s == nil {
			return
		}
		for name, value := range s.values {
			if short, is := strings.CutPrefix(name, FunctionPrefix); is && !yield(short, value) {
				return
			}
		}
	}
}

// removes reports whether a change of name to value removes it.
func removes(name, value string) bool { return value == "" && strings.HasPrefix(name, FunctionPrefix) }

// With returns a new document: s with the changes, numbered version. s may be nil. The error says
// that the document would exceed MaxSettingsBytes.
func (s *Settings) With(version uint64, changes map[string]string) (*Settings, error) {
	next := &Settings{values: make(map[string]string)}
	if s != nil {
		maps.Copy(next.values, s.values)
	}
	for name, value := range changes {
		if removes(name, value) {
			delete(next.values, name)
		} else {
			next.values[name] = value
		}
	}
	next.id.Version = version
	hash := sha256.New()
	for part := range next.Parts() {
		hash.Write(part)
		next.size += len(part)
	}
	if next.size > MaxSettingsBytes {
		return nil, fmt.Errorf("cannot keep settings of %d bytes, the limit is %d", next.size, MaxSettingsBytes)
	}
	hash.Sum(next.id.Hash[:0])
	return next, nil
}

// ShareWith has s, which was decoded just now and is nobody else's yet, take the values that another document has too
// from there, so that both keep them once.
func (s *Settings) ShareWith(other *Settings) {
	if s == nil || other == nil {
		return
	}
	for name, value := range s.values {
		if same, set := other.values[name]; set && same == value {
			s.values[name] = same
		}
	}
}

// WithoutLibraries returns the document for a member that calls no functions: it has the same name. Whoever keeps that
// must not send it to others.
func (s *Settings) WithoutLibraries() *Settings {
	if s == nil {
		return nil
	}
	without := &Settings{id: s.id, values: maps.Clone(s.values), size: s.size}
	maps.DeleteFunc(without.values, func(name, _ string) bool { return strings.HasPrefix(name, FunctionPrefix) })
	return without
}

// Has reports whether s is as the changes make it.
func (s *Settings) Has(changes map[string]string) bool {
	for name, want := range changes {
		if got, set := s.Get(name); got != want || set == removes(name, want) {
			return false
		}
	}
	return true
}

// Size is the length of the encoding of s in bytes, at most MaxSettingsBytes.
func (s *Settings) Size() int { return s.size }

const (
	// sharedFrom is the length from which a value is a part of its own, in bytes.
	sharedFrom = 4 << 10
	// SharedPart is the length from which a part of a document is certainly the document's own memory, in bytes: other
	// parts end with a name and a value of less than sharedFrom, and a name is far shorter.
	SharedPart = 2 * sharedFrom
)

// Parts are the encoding of s, in order. They never change, and nobody may change them: long values are s's own, see
// SharedPart.
//
//	"DLS" 1, version, count, then (name value) of each in the order of names
//
// Numbers are unsigned varints, and a text follows its length.
func (s *Settings) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		b := append([]byte(settingsMagic), settingsVersion)
		b = binary.AppendUvarint(b, s.id.Version)
		b = binary.AppendUvarint(b, uint64(len(s.values)))
		for _, name := range slices.Sorted(maps.Keys(s.values)) {
			value := s.values[name]
			if len(b) >= sharedFrom {
				if !yield(b) {
					return
				}
				b = nil
			}
			if len(value) < sharedFrom {
				b = appendString(appendString(b, name), value)
				continue
			}
			b = binary.AppendUvarint(appendString(b, name), uint64(len(value)))
			if !yield(b) || !yield(bytesOf(value)) {
				return
			}
			b = nil
		}
		yield(b)
	}
}

// DecodeSettings decodes the Parts of a document. It copies b.
func DecodeSettings(b []byte) (*Settings, error) {
	s, err := decodeSettings(b)
	if err != nil {
		return nil, fmt.Errorf("cannot decode settings of %d bytes: %w", len(b), err)
	}
	return s, nil
}

func decodeSettings(b []byte) (*Settings, error) {
	header := settingsMagic + string([]byte{settingsVersion})
	if len(b) > MaxSettingsBytes || len(b) < len(header) || string(b[:len(header)]) != header {
		return nil, fmt.Errorf("begins with %q, want %q", b[:min(len(b), len(header))], header)
	}
	r := reader{rest: b[len(header):]}
	s := &Settings{values: make(map[string]string), size: len(b)}
	s.id = SettingsID{Version: r.upTo(maxEpoch, "version"), Hash: sha256.Sum256(b)}
	last := ""
	for n := r.upTo(MaxSettingsBytes, "number of values"); n > 0 && r.err == nil; n-- {
		name := r.string(len(r.rest), "length of a name")
		if len(s.values) > 0 && name <= last {
			r.fail(errors.New("names are out of order"))
		}
		s.values[name], last = r.string(len(r.rest), "length of a value"), name
	}
	size := 0
	for part := range s.Parts() {
		size += len(part)
	}
	if r.err == nil && size != len(b) { // it would be sent to others with another hash
		r.err = fmt.Errorf("%d bytes would be encoded in %d", len(b), size)
	}
	return s, r.err
}

// Settle returns the successor of cur that names the settings document id and is otherwise equal.
func Settle(cur *Table, self Member, id SettingsID) *Table {
	next := cur.successor(self)
	next.Settings = id
	return next
}
