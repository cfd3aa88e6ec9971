// Dunlin is a Redis-protocol cache cluster in one binary.
//
//	dunlin local    three nodes and a proxy in this process, to try it out
//	dunlin node     a storage node
//	dunlin proxy    the front door: any Redis client connects here
//	dunlin status   who is in the cluster and what it is doing
//	dunlin top      the same, refreshed
//	dunlin drain    have a node hand over its data and stay
//	dunlin rebalance --pause, --resume
//	dunlin version
//
// This package only joins the others: it reads settings (flags before DUNLIN_* variables before the
// YAML file of --config), checks them, starts the parts bottom up and stops them top down.
//
//	admin HTTP -> event loops -> node or proxy -> gossip      (start)
//	admin HTTP <- event loops <- node or proxy <- gossip      (stop)
//
//	commands, options, settings, size    what a user may say, and from where it is read
//	process, member, local, stop         servers: what they start and how they end
//	memory*                              how the memory of a process is divided
//	trust, secret, tls, address          who is believed, and under which name
//	status*, top, steer*                 commands about a running cluster
//
// Nothing here is on the path of a command.
package main
