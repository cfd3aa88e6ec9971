// Package sets has the commands of sets.
//
// A small set is a packed value, a big one a table (package shape). Random members are chosen
// uniformly: from a packed value by number, from a table by Table.Random, which takes the same time
// when SPOP has nearly emptied the set, because tables shrink.
//
// Set algebra (algebra_walk.go) looks at all of its keys under one lock if that is a few hundred
// steps. Otherwise the command holds its partition and goes on in runs; what it stores is built
// aside.
package sets
