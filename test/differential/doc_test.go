// Package differential compares Dunlin with a real redis-server: generated inputs, broken ones
// above all, and random pipelines must have the same replies, byte for byte.
package differential
