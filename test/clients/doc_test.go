// Package clients runs real client libraries, frameworks and tools against a cluster, unmodified
// and with their defaults.
package clients
