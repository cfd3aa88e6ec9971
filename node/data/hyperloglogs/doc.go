// Package hyperloglogs executes PFADD, PFCOUNT and PFMERGE on strings in the format of Redis's
// HyperLogLogs, which internal/hyperloglog reads and writes.
package hyperloglogs
