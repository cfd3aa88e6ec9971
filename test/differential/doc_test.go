// Package differential compares Dunlin with a real redis-server. The replies to generated inputs,
// mostly broken ones, and to random pipelines must be the same, byte for byte.
package differential
