// Package soak runs hostile clients beside well-behaved ones on one cluster: whatever the hostile
// ones do, the others must be served, fast, and with the right replies.
//
// # Terms
//
//	behavior  one way in which a client tries to hurt others, repeated until its time is over
//	attack    some behaviors at once, in a process of their own that is killed at the end
//	base      honest clients in the place of an attack: as many, and as busy. One in three has
//	          values of a megabyte, one loads thousands of keys at once, one has short pipelines
//	segment   a base or an attack, for which the well-behaved clients' times are compared
//
// The well-behaved clients, and what judges their replies, are those of package chaos. An attack
// takes processor time, which no server can give back to the others. So the 99th percentile of
// their commands is compared with the one beside the base, not beside nobody.
//
// `make soak` runs each behavior alone, and then random attacks until the time is over.
package soak
