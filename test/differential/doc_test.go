// Package differential compares Dunlin with a real redis-server. The replies to generated inputs,
// mostly broken ones, and to random pipelines must be the same, byte for byte. Random commands on
// collections (TestTypes) may be answered differently where listed_test.go says so.
package differential
