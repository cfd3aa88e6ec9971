// Package netloop runs event loops: a few threads, each with many non-blocking TCP
// connections, and no goroutine per connection.
//
// # Terms
//
// A Group is the set of loops of a process. A Loop is one thread. A Conn is one socket,
// owned by one loop for life. A Handler is what a package above does with the bytes of a
// conn. A Listener accepts for all loops, Loop.Dial connects for one. A conn is dirty when
// it has output that was not offered to its socket yet, and blocked when its socket took
// only a part.
//
// # An iteration
//
//	  ┌────────────────────────────────────────────────────────────────────┐
//	  │                                                                    │
//	wait ─> stall ─> events ──> posted ─> timers ─> woken ─> hooks ─┐      │
//	        hooks    │ accept   functions           (OnData of      │      │
//	                 │ dial                          kept input)    │      │
//	                 └ one read,                                    │      │
//	                   OnData                                       │      │
//	  ┌─────────────────────────────────────────────────────────────┘      │
//	  └> flush Flushers ──> flush conns ──> OnClose ──> interest ──────────┘
//	     (requests leave)   (one write      of closed
//	                         each)          conns
//
// Everything is read before anything is written, unless that takes longer than 5 ms: the
// rest then comes in the next iteration. What fifty clients ask of one node in an
// iteration leaves in one write, and what a node answers them comes back in one read.
//
// # Buffers
//
// Input is read into the loop's scratch buffer and handed to OnData there. What the handler
// leaves is kept in a buffer of the conn's own; while it is small, it is put in front of the
// next read, so that the handler again sees one run of bytes of full length. Output is
// collected in a buffer of the conn's own until the flush. Both kinds are lent from the
// loop's pool, outside the Go heap, and go back when empty: an idle conn holds none.
//
//	socket ─> scratch (256 KiB, the loop's) ─> OnData(in) ─> Out/SetOut ─> socket
//	             ^            │ not consumed                  │ not taken
//	             └── Conn.in <┘                     Conn.out <┘
//
// Output that is too large to be copied there is inserted (Conn.Insert): it is sent from
// where it lies, in turns with what other conns move.
//
// What is lent counts in the conn's Account, before it exists, and is taken from that
// account's Budget, if it has one. A conn for which nothing is left is closed with
// ErrNoMemory; no other is harmed. Beyond that a loop has its scratch buffer, 4 MiB of
// free buffers at most, and what append takes in a handler until SetOut.
//
// # Invariants
//
//   - Conns, timers, handlers and counters of a loop are touched by its thread only, without
//     locks. From outside there are Post (one mutex), and what its comment says is for any
//     goroutine. The locks are Listener.mu, Group.mu and mailbox.mu; they may be taken in
//     this order.
//   - A handler may call any method of any conn of its loop at any time. Handlers are not
//     re-entered: Close, Wake and MarkDirty only put the conn on a list of the iteration.
//   - A closed conn stays on those lists and is passed over. Its buffers live until OnClose,
//     so that the input that a handler is looking at does not change.
//   - An event is the conn's only if descriptor and generation agree: descriptors are reused
//     at once, also within an iteration.
//   - Reading stops while any hold is set (see hold). Whatever ends the last one offers the
//     kept input again, because nothing new may ever arrive.
//   - Work put off by a stage that is already over (a conn woken while waking, or dirty while
//     flushing) is done in the next iteration, which then does not sleep first.
//   - Nothing is unbounded: unsent output by Config.HardOut and Config.Stall, kept input by
//     Conn.SetMaxInput, both by the Budget. The exception is Post, whose callers are bounded.
//   - A handler's view of a buffer is void when the call ends. A later look finds other
//     bytes, and after Group.Close a fault.
//   - Nothing is allocated per event or per message once buffers have found their size.
//
// # Waiting
//
// A loop with work waits by a raw system call: the Go scheduler is not told, and the thread
// keeps its processor. 150,000 unpipelined requests of 50 clients cost a loop that way 0.55
// s of processor time, and 0.83 s through the scheduler (median of 3, redis-benchmark
// beside it on 2 busy cores). In exchange GOMAXPROCS is raised to two more than there are
// loops, and the scheduler reaches a waiting thread by a signal only: after EINTR the loop
// yields, because the garbage collector may be waiting for it. A loop whose wait brought
// nothing is idle, and waits through the scheduler until something happens.
//
// A wait lasts 100 ms at most, so that a loop which was stopped together with its process
// notices, before it reads anything, how long it was away (see Group.OnStall).
package netloop
