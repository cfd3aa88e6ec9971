// Package sim runs whole clusters in virtual time: nodes, proxies and clients over a network that
// is slow, loses packets and breaks. Each history follows from its seed, and thousands run in a
// minute. They check the promises of the protocol of moves, copies, fencing and pipes.
//
//	history ──mischief──> procs ──events──> world: clock, links, connections
//	                        │
//	        agent: members_test.go, steer_test.go, with ring.Plan and ring.Heal themselves
//	        node: node_test.go, fence_test.go, serve_test.go, with node/ownership itself
//	              stream_test.go, unit_test.go, copies_test.go, with node/replica itself
//	        proxy: proxy_test.go, session_test.go, with proxy/order and wide.Rounds themselves
//	        client: client_test.go
//	                        │
//	                        v
//	        truth_test.go: one server a partition, nothing stale, lost, twice, or half done
//
// Package ring itself decides about tables, package node/ownership what a node serves, and package
// proxy/order in which order commands reach nodes. The rest models packages ring/gossip and node,
// in their words and with their names: a change there needs a change here. The model leaves out
// large values, evictions, pauses of rebalancing, and more than one loop and shard a node.
//
// options_test.go names the rules that can be broken. TestBrokenRules shows that the simulation
// notices when they are.
package sim
