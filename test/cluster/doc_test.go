// Package cluster tests whole clusters from outside, feature by feature. The members are real
// processes, and the tests use them as clients and operators do.
package cluster
