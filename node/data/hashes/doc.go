// Package hashes has the commands of hashes.
//
// A small hash is a packed value, a big one a table (package shape). A hash with a field that expires
// is always a table: then times are relative to the base of a value with parts, which the engine
// shifts between the clocks of nodes.
package hashes
