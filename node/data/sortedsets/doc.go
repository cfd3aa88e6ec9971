// Package sortedsets executes the commands on sorted sets.
//
//	small: a packed value, its members in the order of score and name      shape.PackedZSet
//	big:   a ranked tree of its members, with an index by name             shape.Tree
//
// # Terms
//
//   - rank: the 8 bytes by which shapes order members, made of the score (score.go). Clients call the
//     position of a member its rank; here that is its position.
//   - bounds: the two ends of a range of scores, or of names (bounds.go).
//
// # Invariants
//
//   - A change of a big sorted set first does what can fail, for all members that the command names in
//     one run, and then what cannot: it removes the entries with the old scores from the tree. If one
//     fails, those before are undone, and the value is as it was (big_change.go).
//   - -0 is stored as 0, as Redis does in its small encoding.
//
// # What a big sorted set takes
//
// The alternative is a table of members and scores beside the tree: each member is there twice. It
// was measured beside the index (BenchmarkSorted; members of 8 to 40 bytes, random scores; two busy
// processors, under chrt, alternating; a command's share of the lock, without protocol). Bytes are
// those beyond the name, score included; charged is with what is free on the value's pages.
//
//	                          1,000           100,000         1,000,000
//	                      index  table    index  table    index  table
//	bytes a member         17.8   47.9     17.6   47.7     17.6   47.7
//	after as many changes  18.5   48.3     17.8   47.8     18.0   47.9
//	charged                                55     90       23.6   56.6
//	ZSCORE, ns              240    280      420    600      640    545
//	ZSCORE of no member     160    270      150    390      205    460
//	ZRANK                   300    500      480   1250      910   1650
//	ZADD, another score    1300   1900     1900   3400     3200   5000
//	ZADD, a new member     1400   2100     1300   2500     2400   3400
//	ZINCRBY by 1            420   1700      530   2600     1150   3900
//
// In a million members ZSCORE reads one cell more than the table did, and takes 100 ns longer. What is
// left of the time is memory's: a name is found with four cells that are read one after the other.
package sortedsets
