package ring

import (
	"bytes"
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
	id      SettingsID
	values  map[string]string
	encoded []byte // kept, because a node sends a document of up to 16 MiB from one of its loops
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
	next.encoded = next.encode()
	if len(next.encoded) > MaxSettingsBytes {
		return nil, fmt.Errorf("cannot keep settings of %d bytes, the limit is %d", len(next.encoded), MaxSettingsBytes)
	}
	next.id.Hash = sha256.Sum256(next.encoded)
	return next, nil
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

// Encoded returns the encoding of s, at most MaxSettingsBytes. The document keeps it: callers share
// the bytes and must not change them.
//
//	"DLS" 1, version, count, then (name value) of each in the order of names
//
// Numbers are unsigned varints, and a text follows its length.
func (s *Settings) Encoded() []byte {
	if s == nil {
		return nil
	}
	return s.encoded
}

func (s *Settings) encode() []byte {
	b := append([]byte(settingsMagic), settingsVersion)
	b = binary.AppendUvarint(b, s.id.Version)
	b = binary.AppendUvarint(b, uint64(len(s.values)))
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		b = appendString(appendString(b, name), s.values[name])
	}
	return b
}

// DecodeSettings decodes what Encoded returned. It copies b.
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
	s := &Settings{values: make(map[string]string), encoded: bytes.Clone(b)}
	s.id = SettingsID{Version: r.upTo(maxEpoch, "version"), Hash: sha256.Sum256(b)}
	last := ""
	for n := r.upTo(MaxSettingsBytes, "number of values"); n > 0 && r.err == nil; n-- {
		name := r.string(len(r.rest), "length of a name")
		if len(s.values) > 0 && name <= last {
			r.fail(errors.New("names are out of order"))
		}
		s.values[name], last = r.string(len(r.rest), "length of a value"), name
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.rest))
	}
	return s, r.err
}

// Settle returns the successor of cur that names the settings document id and is otherwise equal.
func Settle(cur *Table, self Member, id SettingsID) *Table {
	next := cur.successor(self)
	next.Settings = id
	return next
}
