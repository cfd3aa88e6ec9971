// Package sim runs whole clusters in virtual time: nodes, proxies and clients over a network that
// is slow, loses packets and breaks. Each history follows from its seed, and thousands run in a
// minute. They check the promises of the protocol of moves, copies, fencing and pipes.
//
//	history ──mischief──> procs ──events──> world: clock, links, connections
//	                        │
//	        agent: members_test.go, steer_test.go, issuer_test.go, with ring.Plan and ring.Heal themselves
//	        node: node_test.go, fence_test.go, serve_test.go, with node/ownership itself
//	              stream_test.go, unit_test.go, copies_test.go, with node/replica itself
//	              queue_test.go
//	              channels_test.go, with node/broker itself
//	        proxy: proxy_test.go, session_test.go, with proxy/order and wide.Rounds themselves
//	               waits_test.go, with order.Claims themselves
//	               subscribers_test.go
//	        client: client_test.go, consumers_test.go, journals_test.go, moves_test.go
//	                        │
//	                        v
//	        truth_test.go: one server a partition, nothing stale, lost, twice, or half done
//	        elements_test.go: each element to one client, who has waited longest first
//
// Package ring itself decides about tables, package node/ownership what a node serves, and package
// proxy/order in which order commands reach nodes. The rest models packages ring/gossip and node,
// in their words and with their names: a change there needs a change here. The model leaves out
// large values, evictions, pauses of rebalancing, and more than one loop and shard a node.
//
// In histories with claims, producers push elements to two lists of each partition, and entries to a
// stream. Consumers pop from lists, or read streams as consumers of one group. They wait with commands
// that name several keys, of one partition or of several; a read of several partitions reads all that
// are ready. Consumers time out, vanish and are unblocked. Each element goes to one client or stays in
// its list, unless its partition is lost, or its reply with its connection; what was read for a client
// that is gone is not returned. Of those who stand in a queue, or were told that they can pop, nobody
// is overtaken by others who wait there. A command that has not popped ends in time. In the end nobody
// waits for a list that has elements. queue_test.go models the queues of node/engine.
//
// In histories with moves, clients move elements between lists of two places (LMOVE with --cross-slot
// relaxed): the owners hold both places, and the element is stored before it is taken. It stays in
// both lists only if a process that takes part has died or stood still, or a connection has broken,
// and is in one of them otherwise (moves_test.go, reserve_test.go). If the first list's partition
// loses that it was taken, it is there again.
//
// In histories with reads, writers add entries to two journals of each partition, and readers follow
// them with XREAD, behind the last ID that they have seen or behind $, in journals of one partition
// or of several. Each gets every entry behind its position, or behind the ID that a node has said a $
// is, also when the partition moves or a pipe breaks meanwhile, unless the partition is lost. In the
// end nobody waits for a journal that goes on behind its position (journals_test.go).
//
// In histories with channels, clients publish on a channel of each place, to which each proxy
// listens. It hears all messages, in the order in which they were published, except where it has
// counted a gap, and it counts none unless a process has died or stood still, or a connection has
// broken. subscribers_test.go models what proxies do for that, and channels_test.go what nodes do
// around node/broker.
//
// options_test.go names the rules that can be broken. TestBrokenRules shows that the simulation
// notices when they are.
package sim
