// Package sim runs whole clusters in virtual time: nodes, proxies and clients over a network that
// is slow, loses, and breaks, thousands of histories a minute and each from a seed, to find out
// whether the protocol of moves, copies, fencing and pipes keeps what it promises.
//
//	history ──mischief──> procs ──events──> world: clock, links, connections
//	                        │
//	        agent: members_test.go, steer_test.go, with ring.Plan and ring.Heal themselves
//	        node: node_test.go, fence_test.go, serve_test.go, with node/ownership itself
//	              stream_test.go, copies_test.go, with node/replica itself
//	        proxy: proxy_test.go, session_test.go, with proxy/order and wide.Rounds themselves
//	        client: client_test.go
//	                        │
//	                        v
//	        truth_test.go: one server a partition, nothing stale, nothing lost, nothing twice
//
// What is decided about tables is package ring itself, what a node serves is package
// node/ownership, and in which order commands reach nodes is package proxy/order. The rest is a
// model of packages ring/gossip and node, in their words and with their names, and must be kept
// like them. What it leaves out: large values and evictions, more than one loop and shard a node,
// and pauses of rebalancing.
//
// Each rule that can be broken is named in options_test.go, and TestBrokenRules shows what becomes
// of that.
package sim
