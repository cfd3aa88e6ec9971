package member

import (
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

// databasePrefix begins the prefix of a request. No request begins with that byte.
const databasePrefix = '#'

// DatabaseRoom is how long a prefix is, in bytes.
const DatabaseRoom = 2

// AppendDatabase appends the prefix of a request of that database: nothing for database 0.
func AppendDatabase(dst []byte, database uint8) []byte {
	if database == 0 {
		return dst
	}
	return append(dst, databasePrefix, database)
}

// CutDatabase returns the database of the request with which in begins, and how many bytes of in are its prefix: 0 if
// it has none. Of 1 byte the rest has not come yet. ok is false if the prefix is malformed.
func CutDatabase(in []byte) (database uint8, n int, ok bool) {
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
	database, n, ok := CutDatabase(version)
	return database, version[n:], ok && n != 1
}
