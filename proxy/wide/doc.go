// Package wide implements the commands that concern the whole cluster, one file each: what they ask
// the nodes, how they merge the answers, and what they reply to the client.
//
//	client ─> question ─> Rounds ─> DUNLIN EACH partitions question ─> every node that owns some of them
//	                        ^ again, about what is not covered     <─ partitions covered, answer ─> merge ─> reply
//
// Partitions may move between the questions. So Rounds counts partitions, not nodes: each answer
// says which partitions it covers, and Rounds asks again until all 4,096 are covered or its
// deadline has passed.
package wide
