// Package config holds the parameters of one process: what CONFIG GET shows and CONFIG SET changes.
//
// # Terms
//
//   - Parameter: a name of CONFIG GET with the values that it accepts. parameter.go has all of
//     them.
//   - Policy: the name of an eviction policy, Redis's or Dunlin's. policy.go pairs them.
//   - Node parameter: one that takes effect in nodes. A proxy asks its nodes for the value and
//     sends a change to all of them; nodes.go decides and merges.
//   - Parameter of the cluster: a node parameter that all members have alike; see cluster.go.
//
// # Where a parameter takes effect
//
//	CONFIG SET ──▶ Config.Set: check all names, then all values, then apply in order
//	                   │
//	                   ├─▶ Options.SetMaxMemory, SetPolicy: may refuse, and nothing is stored then
//	                   ├─▶ Options.SetCluster: every member calls ApplyCluster
//	                   ├─▶ values: read by MaxClients, IdleTimeout, SlowerThan, ... when needed
//	                   └─▶ Options.Changed: for what must know at once
//
// # Invariants
//
//   - CONFIG SET applies all of its parameters or none: what a refusal follows is taken back.
//   - A value in Config has passed parameter.check.
//   - A Config is safe for all goroutines. Its lock is never held across a hook.
//   - Values live as long as the process, those of the cluster as long as the cluster. There is no
//     file to write them to.
//   - Replies are those of Redis 7, byte for byte.
package config
