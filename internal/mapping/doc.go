// Package mapping provides memory outside the Go heap: address space that is reserved once, becomes
// writable in steps, is backed by pages at the first write, and gives them back on request.
//
//	Reserve ─> [ read only: addresses, and nothing else                       ]
//	Grow    ─> [ in use: written, backed by pages │ read only                 ]
//	Shrink  ─> [ in use │ idle: writable, no pages │ read only                ]
//
// A system that commits memory when it is mapped, and not when it is written (vm.overcommit_memory=2
// on Linux), counts writable addresses only. So a space can be as large as is convenient, and counts
// for what is in use, rounded to steps, and for a few idle steps.
//
// It also gives back the pages of the program's own file (ForgetProgram).
//
// Invariants:
//
//   - Fresh and released memory reads as zeros. Reads never fault before Free. Writes fault outside
//     of what is in use.
//   - Grow fails when the system does not commit the memory. What is in use stays writable.
//   - The garbage collector neither scans nor moves a space, so it must not hold Go pointers.
//   - The calls are safe for concurrent use on ranges that do not overlap.
//
// What such a system counts is exact to a step: one page in use keeps its whole step writable, so a
// node that has shrunk may count for more than it uses. Only its data could be moved together,
// which would copy most of it for a number that other systems do not look at.
//
// On Linux the package uses what that kernel offers. The portable form, for every other system and
// for Linux with the build tag portable, replaces pages by fresh ones and ignores hints about huge
// pages.
package mapping
