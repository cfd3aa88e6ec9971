// Package order decides in which order the commands of a proxy's clients reach the nodes, and what
// becomes of them when a node refuses them, falls silent or is lost.
//
// A Machine decides that for one worker. It is a step function: its methods are events, and it
// collects what is to be done as Actions. The caller, its shell, takes the Actions and performs
// them. The Machine has no goroutine, clock or socket, so the simulation in test/sim drives it as
// the proxy does.
//
//	client ─> Enter, Submit ─> Machine ─> Pipe.Queued ─> written to the node
//	node ──> Pipe.Front, Pop: a reply, which the shell delivers
//	     ├─> Later ─> deferred ─> Completed, RefusedLater
//	     └─> Refused ─> latch, park ─> RetryTimer, RetryTurn, FollowMoves, Opened, Install ─> RETRY, sent again
//	Dial, Close, Write, Fail, Undone, Proceed, Arm, Post, Refresh, Claim… <─ Actions
//
// # Terms
//
// A Session is what the Machine knows of one client, a Node of one node, and a Pipe of the
// connection of one Lane to it. A Request is one command or a part of one. It is queued in a pipe,
// outstanding until its reply has come, deferred while it is outstanding and its node will complete it
// by a push, and parked when it came back undone or cannot be sent yet. A Part gathers the replies to
// several requests. The requests of a Scattered Part have keys in several partitions and may have to
// be divided. Those of an Asker are never parked, because it asks again by itself. A stray is a request
// that may write, and that a node may still execute although its pipe was lost.
//
// # Invariants
//
//   - All outstanding requests of a session travel in one lane, by one route. A partition has one
//     owner, hence one pipe, which the node reads in order.
//   - A session with parked requests sends nothing new. When none of its requests is outstanding any
//     more, the parked ones are sent again in the order of its commands, and of the chunks of each.
//   - Requests leave a pipe in the order in which they entered. Their bytes stay until then.
//   - A request that may have reached its node before the pipe broke is sent again only if it may
//     be executed twice, and no later write of its session to the same key may have reached the node,
//     too: others may have seen that one, and would see the earlier one again.
//   - A session that has strays at a node sends that node nothing in another lane before the node
//     has acknowledged the next generation of the lost pipe.
//   - Nothing is sent for a latched partition before RETRY, and RETRY is sent only when everything
//     that was outstanding at the last refusal has come back or is deferred.
//   - Nothing is sent for a partition on a pipe on which a write to it, or a request with keys in
//     several partitions and in this one, is deferred.
//   - A Keyless request concerns no partition: it waits for no other because of one, and none waits for it.
//   - Claims are questions of a Claimant: they wait like blocking commands, and come back like questions.
//   - A command that has Claims pops from one key at a time, and nothing else of its session is outstanding
//     then. A turn ends behind the pop, a claim that came back is made again, and each claim says for how
//     long its command has waited.
//   - A session whose blocking command is not answered sends nothing else (waits.go). However many such
//     commands are deferred, they keep nobody from their partitions and pipes. One that is sent again says for how long
//     it has waited.
//   - A node refuses commands on a partition that it has gained since a pipe opened, until RETRY
//     names the epoch. Otherwise a command that the proxy gave up could arrive after the partition
//     has been elsewhere and come back.
//   - Only a newer table or a node's own -MOVED changes the route.
//   - A node that is silent for Config.SilentTicks is given up, with what it has deferred. Only long
//     requests, transactions below ring.OfferLevel, and all that is slow at nodes that do not answer
//     later, may take LargePatience times as long.
//   - A parked request is given up after Config.Patience, counted from when its node could last be
//     reached. A blocking command has a deadline, or none, however often and for however long it is parked.
//   - The bytes of a parked request are charged to its session before they are copied. Without memory
//     for them the request fails.
//   - The buffers of all pipes of a process stay within Config.Room, apart from 16 KiB a pipe. Beyond
//     it sessions wait, and a request for an idle pipe is parked.
package order
