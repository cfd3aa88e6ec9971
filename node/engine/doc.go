// Package engine stores keys and values in memory outside the Go heap, within a hard limit.
package engine
