// Dunlin is a Redis-protocol cache cluster in one binary.
//
//	dunlin local    three nodes and a proxy in this process, to try it out
//	dunlin node     a storage node
//	dunlin proxy    clients connect to it, with any Redis client
//	dunlin status   the members of a cluster, their state and load
//	dunlin top      the same and hot keys, refreshed
//	dunlin drain    move all data off a node, which keeps running
//	dunlin rebalance --pause, --resume
//	dunlin version
//
// This package only joins the others: it reads settings (flags before DUNLIN_* variables before the
// YAML file of --config), checks them, starts the parts bottom up and stops them top down.
//
//	admin HTTP -> event loops -> node or proxy -> gossip      (start)
//	admin HTTP <- event loops <- node or proxy <- gossip      (stop)
//
//	commands, options, settings, size    what a user can set, and where it is read from
//	process, member, local, stop         servers: what they start and how they stop
//	memory*, descriptors                 how the memory and the descriptors of a process are divided
//	trust, credentials, secret, tls      who is trusted, and with which proof
//	address                              under which name others reach a member
//	status*, top, steer*                 commands about a running cluster
//
// Nothing here is on the path of a command.
package main
