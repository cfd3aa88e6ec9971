// Package hashes has the commands of hashes.
//
//	small   record: header │ key │ packed fields and values        up to 1,024 bytes and 128 fields
//	big     record: header │ key │ root ─> head ─> table            see package shape
//
// # Expiry of fields
//
// A hash with a field that expires is always a table. The times in a table are relative to the base
// of the value, the only word that the engine shifts between the clocks of nodes, so a packed hash
// has no times and its record is the same on all nodes. When the last expiry is gone (HPERSIST,
// HDEL), a small hash is packed again. The price is paid by small hashes: MEMORY USAGE of one with
// two fields and values of 15 bytes is 90 packed, and 322 with an expiry on one of them
// (TestFieldsTakeMemory). The other way would be hooks of the engine that shift, expire and find
// the times of packed records. In a table a time takes 6 bytes.
//
// An expired field is absent for every command at once, and only the owner of the partition removes
// it: a few blocks of the table whenever the key is looked up, and the engine's sweep the rest.
// Each removal reaches copies as a deletion. The last field takes the key along. A command that
// counts fields first has all removed that have expired (withCounted). A walk over the table keeps
// its place in the value's own bytes; at its end the hash is due when the next field expires.
//
// # Invariants
//
//   - A hash has at least one field.
//   - Memory is taken before the first change: a command that answers OOM has changed nothing, unless it
//     names so many fields that it goes on in several runs.
//   - A long value is pinned for a reply and not copied; a long hash is read from a pin, in slices.
package hashes
