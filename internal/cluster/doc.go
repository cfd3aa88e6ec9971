// Package cluster answers the CLUSTER commands: it shows Dunlin's table to clients of Redis
// Cluster.
//
// # Terms
//
//   - View: the cluster as one member shows it. A node shows the table; a proxy shows itself as the
//     one node with all slots, so that clients work through it.
//   - Topology: a View turned into nodes and ranges of slots, of which every reply is made.
//   - Server: the View of the moment, with the encoded replies of the present table.
//
// # Invariants
//
//   - Only owners are listed. Followers do not serve reads, and a client that was shown them as
//     replicas would try.
//   - A node's id is a digest of its member's id, so it survives a restart.
//   - A reply that depends on the table alone is encoded once a table; it is shared, and copied
//     from.
//   - A Server is safe for all goroutines. Its hooks are called on the loop of the asking
//     connection and must not block.
//   - Formats are those of Redis 7, byte for byte. INFO says cluster_enabled:0 all the same, so
//     that a client that looks there first does not take a proxy for one node of many.
package cluster
