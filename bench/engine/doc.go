// Engine measures node/engine alone, in one process and without a network, beside other stores for
// a Go program's keys, and prints tables:
//
//	go run ./bench/engine                          # all tables
//	go run ./bench/engine -tables speed -quick     # less
//
// # Terms
//
// A table answers one question (its row in the variable tables). A case is a part of a table that
// runs in a process of its own, this program started again. Only then does the process's memory
// belong to one contender, and no contender's garbage collector runs while another one is measured.
// Parent and case exchange values by encoding/gob.
//
// The table of hits compares policies, which package sim simulates, in this process: it measures no
// time and no memory.
//
// # Invariants
//
//   - Only the engine's public API is used, and as the node uses it: Lock, operations, Unlock.
//   - Every child process ends with this one, which kills it by its id; if this one is killed, the
//     kernel does.
//   - A figure whose conditions did not hold (memory too small, a key not found) is not printed.
package main
