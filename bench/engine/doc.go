// Engine measures node/engine alone, in one process without network, beside what else a Go program
// could keep its keys in, and prints tables:
//
//	go run ./bench/engine                          # all tables
//	go run ./bench/engine -tables speed -quick     # less
//
// # Terms
//
// A table answers one question (its row in the variable tables). A case is a part of a table that
// runs in a process of its own, this program started again: only then does the memory of the
// process belong to one contender, and no contender's garbage collector runs in the time of
// another. Parent and case exchange values by encoding/gob.
//
// The table of hits compares policies, which package sim simulates, in this process: it measures no
// time and no memory.
//
// # Invariants
//
//   - Only the engine's public API is used, and as the node uses it: Lock, operations, Unlock.
//   - Every process that was started ends with this one: killed by its id, or by the kernel if this
//     one is killed.
//   - A figure whose conditions did not hold (memory too small, a key not found) is not printed as
//     one.
package main
