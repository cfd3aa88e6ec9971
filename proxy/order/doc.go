// Package order decides in which order the commands of a proxy's clients reach the nodes, and what
// becomes of them when a node refuses them, falls silent or is lost.
//
// A Machine does that for one worker. It is a step function: methods are events, and what is to be
// done about them is collected as Actions, which the caller, its shell, takes and does. The Machine
// has no goroutine, clock or socket, so the simulation in test/sim drives it as the proxy does.
//
//	client ─> Enter, Submit ─> Machine ─> Pipe.Queued ─> written to the node
//	node ──> Pipe.Front, Pop: a reply, which is the shell's business
//	     └─> Refused ─> latch, hold ─> RetryTimer, FollowMoves, Opened, Install ─> RETRY, sent again
//	Dial, Close, Write, Fail, Undone, Proceed, Arm, Refresh <─ Actions
//
// # Terms
//
// A Session is what the Machine knows of one client, a Node of one node, and a Pipe of the
// connection of one Lane to it. A Request is one command or a part of one. It is queued in a pipe,
// outstanding until its reply has come, and held when it came back undone or cannot be sent yet. A
// Part gathers replies to several requests: a Scattered one's requests have keys in several
// partitions and may have to be divided, an Asker's are not held, since it asks again by itself. A
// stray is a request that a node may still execute although its pipe was lost.
//
// # Invariants
//
//   - All outstanding requests of a session travel in one lane, by one route. A partition has one
//     owner, hence one pipe, which the node reads in order.
//   - A session with held requests sends nothing new. They are sent again in the order of its
//     commands, when nothing of it is on its way any more.
//   - Requests leave a pipe in the order in which they entered. Their bytes stay until then.
//   - What a broken pipe may have brought to its node is sent again only if it may be executed
//     twice.
//   - A session that has strays at a node sends that node nothing in another lane before the node
//     has acknowledged the next generation of the lost pipe.
//   - Nothing is sent for a latched partition before RETRY, and RETRY is said when all that was on
//     its way at the last refusal has come back.
//   - A node refuses commands on a partition that it has gained since a pipe opened until RETRY
//     names the epoch: what a proxy once gave up may arrive when the partition has been elsewhere
//     and come back.
//   - The route changes by a newer table or by a node's own -MOVED, and by nothing else.
//   - A held request is given up after Config.Patience, counted from when its node could last be
//     reached.
package order
