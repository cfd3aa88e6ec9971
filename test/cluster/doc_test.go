// Package cluster tests whole clusters from outside, feature by feature: real processes, spoken to
// as clients and operators do.
package cluster
