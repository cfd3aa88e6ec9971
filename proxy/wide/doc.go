// Package wide has the commands that concern the whole cluster, one file each: what nodes are
// asked, how their answers are merged, and what the client is told.
//
//	client ─> question ─> Rounds ─> DUNLIN EACH partitions question ─> every node that owns some of them
//	                        ^ again, about what is not covered     <─ partitions covered, answer ─> merge ─> reply
//
// Partitions may move while nodes are asked. So partitions are counted, not nodes: each answer says
// which it covers, and Rounds goes on until all are, or until its deadline.
package wide
