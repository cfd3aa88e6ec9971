// Package keys executes the commands on keys whatever they hold: expiry, names, copies, DUMP and
// RESTORE, OBJECT, and the commands over all keys. It knows no type: it asks the value's exec.Type.
//
// A command over all keys (DBSIZE, FLUSHALL, KEYS, SCAN, RANDOMKEY) covers the partitions that its
// Host names: all that the node serves for a client of its own, or a part for a proxy.
package keys
