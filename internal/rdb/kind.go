package rdb

import (
	"encoding/binary"
	"fmt"
)

// Versions in the footers of payloads.
const (
	versionPlain   = 10 // Redis 7.0: every later server reads it
	versionActives = 11 // Redis 7.2, Valkey 7.2: streams whose consumers have two times
	versionRedis   = 12 // Redis 7.4: hashes whose fields expire
	versionValkey  = 80 // Valkey 9.0: the same, in another format

	lastRedis  = 14 // Redis 8.8
	lastValkey = 81 // Valkey 9.2
)

// dialect is whose table of types a payload uses. Redis and Valkey share the types below 22.
type dialect uint8

const (
	unknown dialect = iota
	redis
	valkey
)

func dialectOf(version uint16) dialect {
	switch {
	case version <= lastRedis:
		return redis
	case versionValkey <= version && version <= lastValkey:
		return valkey
	}
	return unknown
}

// Kind is what a payload contains.
type Kind uint8

// The kinds of values.
const (
	KindString Kind = iota + 1
	KindList
	KindSet
	KindSortedSet
	KindHash
	KindStream
)

// The types of payloads: how a value is encoded.
const (
	typeList           = 1
	typeSet            = 2
	typeSortedSetText  = 3
	typeHash           = 4
	typeSortedSet      = 5
	typeZipmap         = 9
	typeListZiplist    = 10
	typeIntset         = 11
	typeZiplist        = 12 // of a sorted set
	typeHashZiplist    = 13
	typeQuicklist      = 14
	typeHashListpack   = 16
	typeListpack       = 17 // of a sorted set
	typeQuicklist2     = 18
	typeSetListpack    = 20
	typeHashValkey     = 22 // fields may expire
	typeHashRedis      = 24
	typeHashTimedRedis = 25 // the same, as a listpack
	firstDisputed      = 22 // from here on the dialects differ
	typeStream         = 15
	typeStream2        = 19
	typeStream3        = 21 // consumers have two times
	typeModuleFirst    = 6
	typeModule         = 7
	typeEarlyHash      = 22
	typeEarlyTimed     = 23
	typeStreamIDs      = 26
	typeStreamNacks    = 27
	typeArray          = 28
	typeHashTemplate   = 29
	typeLastTemplate   = 32
	typeRateLimit      = 33
)

// kinds has what both dialects agree on.
var kinds = map[byte]Kind{
	TypeString: KindString,
	typeList:   KindList, typeListZiplist: KindList, typeQuicklist: KindList, typeQuicklist2: KindList,
	typeSet: KindSet, typeIntset: KindSet, typeSetListpack: KindSet,
	typeSortedSetText: KindSortedSet, typeSortedSet: KindSortedSet, typeZiplist: KindSortedSet, typeListpack: KindSortedSet,
	typeHash: KindHash, typeZipmap: KindHash, typeHashZiplist: KindHash, typeHashListpack: KindHash,
	typeStream: KindStream, typeStream2: KindStream, typeStream3: KindStream,
}

// KindOf returns what a payload contains that Check has accepted. The error is ErrFormat if the
// payload is empty, and an UnsupportedError if its type cannot be read.
func KindOf(payload []byte) (Kind, error) {
	n := len(payload) - FootSize
	if n <= 0 {
		return 0, ErrFormat
	}
	code, version := payload[0], binary.LittleEndian.Uint16(payload[n:])
	of := dialectOf(version)
	switch {
	case code < firstDisputed && kinds[code] != 0:
		return kinds[code], nil
	case of == valkey && code == typeHashValkey, of == redis && (code == typeHashRedis || code == typeHashTimedRedis):
		return KindHash, nil
	}
	if err := (UnsupportedError{code, version}); err.name() != "" {
		return 0, err
	}
	return 0, ErrFormat
}

// UnsupportedError is the error for a payload of a type that this package does not read. It is an
// ErrFormat.
type UnsupportedError struct {
	Code    byte
	Version uint16 // in the payload's footer
}

func (e UnsupportedError) Error() string {
	return fmt.Sprintf("payloads of type %d (%s, version %d) are not supported", e.Code, e.name(), e.Version)
}

// Is reports whether target is ErrFormat.
func (e UnsupportedError) Is(target error) bool { return target == ErrFormat }

func (e UnsupportedError) name() string {
	switch of := dialectOf(e.Version); {
	case e.Code == typeModuleFirst, e.Code == typeModule:
		return "module"
	case of == valkey:
	case e.Code == typeEarlyHash, e.Code == typeEarlyTimed:
		return "hash of a Redis 7.4 release candidate"
	case e.Code == typeStreamIDs, e.Code == typeStreamNacks:
		return "stream"
	case e.Code == typeArray:
		return "array"
	case typeHashTemplate <= e.Code && e.Code <= typeLastTemplate:
		return "hash with a template"
	case e.Code == typeRateLimit:
		return "rate limit"
	}
	return ""
}
