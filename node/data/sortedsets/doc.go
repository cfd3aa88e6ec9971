// Package sortedsets executes the commands on sorted sets.
//
//	small: a packed value, its members in the order of score and name      shape.PackedZSet
//	big:   a ranked tree of members    rank, range, position               shape.Tree
//	       a table member ─> score     ZSCORE, ZADD, ZSCAN, ZRANDMEMBER    shape.Table
//
// # Terms
//
//   - rank: the 8 bytes by which shapes order members, made of the score (score.go). Clients call the
//     position of a member its rank; here that is its position.
//   - bounds: the two ends of a range of scores, or of names (bounds.go).
//
// # Invariants
//
//   - Tree and table of a big sorted set have the same members, and both the same scores.
//   - A change of a big sorted set first does what can fail, for all members that the command names in
//     one run, and then what cannot: it removes the entries with the old scores from the tree. If one
//     fails, those before are undone, and the value is as it was (big_change.go).
//   - -0 is stored as 0, as Redis does in its small encoding.
package sortedsets
