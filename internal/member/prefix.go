package member

import (
	"encoding/binary"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A pipe has no selected database: its requests are those of many sessions. From ring.DatabasesLevel on, two bytes
// directly before a request name its database, unless that is 0:
//
//	# 3 *2 GET k             of database 3
//	*2 GET k                 of database 0
//	# 3 *5 DUNLIN EXEC …     a transaction that begins in database 3
//
// The second byte is the number itself, 1 to 15. The prefix belongs to the request behind it, of clients as of members
// (WATCH, EXEC, CLAIM, PASS, EACH). AS has none: it stands before the prefix of the request that it is about.
//
// From ring.WaitedLevel on, a blocking command that waited elsewhere before says for how long, behind the name of its
// database: 8 bytes with microseconds. Its place among those who wait for a key is that of its age, to whichever node
// the key moves:
//
//	@ 2500000 *3 BLPOP k 0         it has waited for 2.5 seconds
//	# 3 @ 2500000 *3 BLPOP k 0     in database 3

// databasePrefix and waitedPrefix begin the parts of a request's prefix. No request begins with these bytes.
const databasePrefix, waitedPrefix = '#', '@'

// WaitedRoom is how long the part of a prefix is that says for how long the command has waited, in bytes.
const WaitedRoom = 9

// maxWaited is more microseconds than any command has waited, and few enough for a time.Duration.
const maxWaited = 1 << 53

// AppendWaited appends the part of a prefix that says for how long the command has waited.
func AppendWaited(dst []byte, waited time.Duration) []byte {
	micros := min(max(0, waited.Microseconds()), maxWaited-1)
	return binary.BigEndian.AppendUint64(append(dst, waitedPrefix), uint64(micros))
}

// Prefix is what stands before a request.
type Prefix struct {
	Database uint8
	Waited   time.Duration // 0: it says nothing
}

// CutPrefix returns the prefix of the request with which in begins, and how many bytes of in it takes: 0 if there is
// none. If the rest of it has not come yet, these are all of in. ok is false if the prefix is malformed.
func CutPrefix(in []byte) (p Prefix, n int, ok bool) {
	if len(in) == 0 || in[0] != databasePrefix && in[0] != waitedPrefix {
		return p, 0, true
	}
	if p.Database, n, ok = cutDatabase(in); !ok || n == len(in) || in[n] != waitedPrefix {
		return p, n, ok
	}
	if len(in) < n+WaitedRoom {
		return p, len(in), true
	}
	waited := binary.BigEndian.Uint64(in[n+1:])
	p.Waited = time.Duration(waited) * time.Microsecond
	return p, n + WaitedRoom, waited < maxWaited
}

// DatabaseRoom is how long a prefix is, in bytes.
const DatabaseRoom = 2

// AppendDatabase appends the prefix of a request of that database: nothing for database 0.
func AppendDatabase(dst []byte, database uint8) []byte {
	if database == 0 {
		return dst
	}
	return append(dst, databasePrefix, database)
}

// cutDatabase is CutPrefix for the name of a database.
func cutDatabase(in []byte) (database uint8, n int, ok bool) {
	switch {
	case len(in) == 0 || in[0] != databasePrefix:
		return 0, 0, true
	case len(in) == 1:
		return 0, 1, true
	}
	return in[1], DatabaseRoom, 0 < in[1] && in[1] < ring.MaxDatabases
}

// The version of a watched key that is not in database 0 begins with the same prefix. Versions of nodes never do.

// AppendWatched appends a key of a database and the version that WATCH gave it.
func AppendWatched(dst []byte, database uint8, key, version []byte) []byte {
	dst = resp.AppendBulk(dst, key)
	if database == 0 {
		return resp.AppendBulk(dst, version)
	}
	dst = resp.AppendBulkHeader(dst, DatabaseRoom+len(version))
	return append(append(AppendDatabase(dst, database), version...), "\r\n"...)
}

// CutWatched takes the version in EXEC of a watched key apart: the database of the key, and the version that WATCH gave
// it, a view.
func CutWatched(version []byte) (database uint8, rest []byte, ok bool) {
	database, n, ok := cutDatabase(version)
	return database, version[n:], ok && n != 1
}
