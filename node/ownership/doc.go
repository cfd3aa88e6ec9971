// Package ownership decides which partitions a node serves, and when.
//
// A View is a table as one node obeys it: serve, wait or refuse, for each partition.
package ownership
