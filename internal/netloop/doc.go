// Package netloop runs event loops: a few threads, each with many non-blocking TCP
// connections, and no goroutine per connection.
//
// # Terms
//
//   - Group: the set of loops of a process.
//   - Loop: one thread.
//   - Conn: one socket, which belongs to one loop for life. It is dirty while it has output that
//     was not yet offered to its socket, and blocked while its socket has accepted only a part.
//   - Handler: what a package above does with the bytes of a conn.
//   - Listener: accepts for all loops; Loop.Dial connects for one.
//   - Newcomer: the handler of a conn that waits behind others while loops are strained.
//   - Gauge, Strain: how hard it is for the loops to keep up, for work that can wait.
//   - Account, Budget: what counts the memory of buffers, and what grants it.
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
// A loop reads everything before it writes anything, unless that takes longer than 5 ms: the rest
// then waits for the next iteration. When replies have taken nearly all memory for buffers, conns are
// flushed earlier (Loop.makeRoom). What fifty clients ask of one node in an iteration leaves in
// one write, and the node's replies come back in one read.
//
// While loops are strained, new conns come last: they are read from after the other events. Accepting
// rests then. Each takes a quarter of a loop's time at most (newcomers.go).
//
// # Buffers
//
// A loop reads input into its scratch buffer and passes it to OnData there. How much one read returns
// follows the time that the handler takes with it (Conn.pace). A buffer of the conn's own keeps what
// the handler leaves. While that is small, the loop puts it in front of the next read, so that the
// handler again sees one run of bytes of full length. A buffer of the conn's own collects output until
// the flush. The loop's pool, outside the Go heap, lends both kinds, and gets them back when they are
// empty: an idle conn has none.
//
//	socket ─> scratch (256 KiB, the loop's) ─> OnData(in) ─> Out/SetOut ─> socket
//	             ^            │ not consumed                  │ not taken
//	             └── Conn.in <┘                     Conn.out <┘
//
// Output that is too large to be copied is inserted (Conn.Insert): the loop sends it from where it
// lies, and other conns have their turns meanwhile.
//
// The conn's Account counts a buffer before it is lent, and takes the bytes from its Budget if it
// has one. A conn for which no memory is left is closed with ErrNoMemory; no other conn suffers.
// Beyond that, a loop has its scratch buffer, at most Config.Keep of free buffers, and what append
// allocates in a handler until SetOut.
//
// # Invariants
//
//   - Only a loop's thread touches its conns, timers, handlers and counters, without locks. Other
//     goroutines may call Post (one mutex) and the methods whose comments say so. The locks are
//     Listener.mu, Group.mu and mailbox.mu, taken in this order.
//   - A handler may call any method of any conn of its loop at any time. Handlers are not
//     re-entered: Close, Wake and MarkDirty only put the conn on a list of the iteration.
//   - A closed conn stays on those lists and is skipped. Its buffers live until OnClose, so that
//     the input that a handler is reading does not change.
//   - An event is the conn's only if descriptor and generation agree: the system reuses
//     descriptors at once, even within an iteration.
//   - Reading stops while any readStop is set. Clearing the last one offers the kept input again,
//     because nothing new may ever arrive.
//   - A conn whose handler yields is offered what that left before it reads more. A Turn says when thousands of
//     short commands are enough for now.
//   - Work for a stage that is already over (a conn woken while waking, or dirty while flushing)
//     is done in the next iteration, which then does not sleep first.
//   - Nothing is unbounded: Config.HardOut and Config.Stall bound unsent output, Conn.SetMaxInput
//     bounds kept input, and the Budget both. The exception is Post, whose callers are bounded.
//   - A handler's view of a buffer is invalid when the call ends. Later it shows other bytes, and
//     after Group.Close it faults.
//   - Nothing is allocated per event or per message once buffers have found their size.
//
// # Waiting
//
// A loop with work waits by a raw system call: the Go scheduler does not know of it, and the thread
// keeps its processor. 150,000 unpipelined requests of 50 clients cost a loop 0.55 s of processor
// time that way, and 0.83 s through the scheduler (median of 3, redis-benchmark beside it on 2 busy
// cores). In exchange, GOMAXPROCS becomes two more than there are loops, and the scheduler can
// reach a waiting thread only by a signal: after EINTR the loop yields, because the garbage
// collector may be waiting for it.
//
// A loop is idle when a raw wait has lasted for 2 ms, or was interrupted, and until an event follows
// the one before within 2 ms. An idle loop waits as a goroutine, through Go's poller: it holds no
// thread, and the runtime's monitor sleeps. While a thread is in a system call instead, the monitor
// looks after it up to sixty times. Heartbeats of other members, one by one, leave a loop idle. Timers
// with the same period are due together (see Loop.Every).
//
// With Config.BusyPoll a loop looks for events for a while before it waits (busypoll.go). What comes
// meanwhile wakes no thread.
//
// A wait lasts 100 ms at most. So a loop that was stopped together with its process notices how
// long it was away before it reads anything (see Group.OnStall).
package netloop
