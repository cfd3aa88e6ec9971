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
//   - -0 is stored as 0. Redis does so in a listpack, which stores whole numbers as integers, and keeps
//     the sign in a skiplist. Here it cannot: ranks are compared as numbers, and equal scores must be equal.
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
//	bytes a member         17.8   47.9     17.7   47.7     17.6   47.7
//	after as many changes  18.0   48.3     17.7   47.8     17.7   47.9
//	charged                                  55     90     23.6   56.6
//	ZSCORE, ns              240    370      290    690      670    545
//	ZSCORE of no member     160    350      160    390      225    460
//	ZRANK                   290    590      430   1330      870   1650
//	ZADD, another score    1250   1980     1670   3430     3200   5000
//	ZADD, a new member     1150   2190     1350   2540     2700   3400
//	ZINCRBY by 1            380   1720      510   2670     1100   3900
//	ZREM and ZADD          1480   3260     1900   4790     3300   6150
//	ZPOPMIN and ZADD       1310   2460     2000   3640     2900   5000
//
// In a million members ZSCORE reads one cell more than the table did, and takes 125 ns longer: four
// cells are read one after the other, and most of the time is memory's. About 200 ns of each ZADD
// are the benchmark's, which writes and reads a score of 17 digits.
//
// ZREMRANGEBYRANK of 180,000 of 200,000 members takes a client 12 ms, when it takes redis-server
// 7.0.15 74 ms (one connection, both processors busy, six rounds in turn, medians). It took 29 ms
// when each member was looked for in the index: now the leaves that go whole leave that for later.
// What remains is mostly the sweep, which looks at 1.6 entries of the index for each member that is
// removed.
package sortedsets
