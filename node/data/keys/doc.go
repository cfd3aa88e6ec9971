// Package keys executes the commands that concern keys of every type: expiry, names, copies, DUMP
// and RESTORE, OBJECT, and the commands over all keys. It knows no type: it asks the value's
// exec.Type.
//
// MOVE and COPY … DB reach a second database of the partition under one lock (engine.Txn.Select).
//
// A command over all keys (DBSIZE, FLUSHALL, KEYS, SCAN, RANDOMKEY) covers the partitions that
// exec.Keyspace names: for the node's own client all that the node serves, for a proxy the part of
// these that the proxy asks for.
package keys
